"""The wheel: it has all that the package needs, and works outside the repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, as setuptools leaves a build folder behind, whose old files the next wheel would have.
    source = folder / "source"
    source.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "csl_dist"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in [*filter(None, files), "pyproject.toml", "README.md"]:
        if (REPOSITORY / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((REPOSITORY / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    made = subprocess.run(
        [*command, "-w", str(folder), str(source)], capture_output=True, text=True, check=False
    )
    if "setuptools" in made.stderr and made.returncode:
        pytest.skip(f"no setuptools to build with: {made.stderr.splitlines()[-1]}")
    assert made.returncode == 0, made.stderr
    [path] = folder.glob("csl_dist-*.whl")
    return path


def test_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        packed = set(opened.namelist())
    source = wheel.parent / "source"
    own = {str(p.relative_to(source)) for p in (source / "csl_dist").rglob("*") if p.is_file()}
    assert not own - packed


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_demo_runs_from_the_wheel_outside_the_repository(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(installed)
    environment = os.environ | {"PYTHONPATH": str(installed)}
    where = [sys.executable, "-c", "import csl_dist; print(csl_dist.__file__)"]
    found = subprocess.run(
        where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith(str(installed)), "the wheel's package is the one that is used"
    command = [sys.executable, "-m", "csl_dist.cli", "demo", "--root", "demo"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Known errors found" in done.stdout
    assert (tmp_path / "demo/report.html").exists()
