"""The install without extras: what reads labels and audits needs neither torch nor Ray."""

import json
import os
import subprocess
import sys
from pathlib import Path

import builder
import lerobot_files
import numpy as np
import pandas as pd
import pytest

EXTRAS = (
    *("PIL", "av", "cleanlab", "fastapi", "h5py", "matplotlib", "psycopg", "prometheus_client"),
    *("pyarrow", "ray", "safetensors", "scipy", "sklearn", "sqlalchemy", "starlette", "torch"),
    *("torchvision", "uvicorn", "xarray"),
)
"""Packages that only extras bring."""
LIGHT = f"""
import sys
sys.modules |= dict.fromkeys({EXTRAS!r})  # as if they were not installed
from csl_dist.cli import main

def csl(*arguments):
    sys.argv = ["csl", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code
"""


def python(code: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
    )


@pytest.fixture
def features_config(tmp_path: Path) -> Path:
    """A config of four videos with ready features."""
    rng = np.random.default_rng(0)
    videos = [
        builder.MadeVideo(
            id=f"v{number}",
            split="train" if number < 2 else "audit",
            names_T=["a"] * 20 + ["b"] * 20,
            features_TD=rng.normal(size=(40, 8)).astype(np.float32),
        )
        for number in range(4)
    ]
    builder.write_manifest(tmp_path / "data", videos, fps=5)
    config = tmp_path / "csl.yaml"
    config.write_text(f"root: {tmp_path}/features_run\ndataset: {{path: {tmp_path}/data}}\n")
    return config


def test_labels_and_audits_are_read_without_any_extra(
    made_root: str, features_config: Path, small_config_file: Path, tmp_path: Path
) -> None:
    commands = [
        ["lint", str(small_config_file), "--segments", str(tmp_path / "lint.parquet")],
        ["check", str(features_config)],
        ["init", "manifest", str(tmp_path / "data"), "--out", str(tmp_path / "new.yaml")],
        *(["query", made_root, what] for what in ("top", "flags", "videos")),
        ["report", made_root],
        ["export", made_root, "--format", "csv", "--out", str(tmp_path / "flags.csv")],
        ["export", made_root, "--format", "parquet", "--out", str(tmp_path / "flags.parquet")],
        ["audits", made_root],
        ["status", made_root],
    ]
    code = f"{LIGHT}\nfor command in {commands!r}:\n    assert not csl(*command), command\n"
    code += f"import csl_dist\nassert len(csl_dist.open_audit({made_root!r}).flags()) > 0\n"
    result = python(code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "not checked: models, weights, time and disk" in result.stdout
    assert "no pictures of frames; these need: pip install 'csl_dist[video]'" in result.stdout
    assert (tmp_path / "flags.csv").exists()
    for name in ("flags", "lint"):
        assert len(pd.read_parquet(tmp_path / f"{name}.parquet")) > 0


@pytest.mark.parametrize(
    ("command", "extra"),
    [("train", "run"), ("serve", "serve"), ("run", "run"), ("check", "video")],
)
def test_command_that_needs_an_extra_says_which(
    small_config_file: Path, command: str, extra: str
) -> None:
    result = python(f"{LIGHT}\nsys.exit(csl({command!r}, {str(small_config_file)!r}))")
    assert result.returncode == 2
    assert result.stderr.startswith("error: this needs ")
    assert f"pip install 'csl_dist[{extra}]'" in result.stderr


def test_tables_of_lerobot_say_which_extra_reads_them(tmp_path: Path) -> None:
    lerobot_files.write_lerobot(tmp_path / "data")
    result = python(f"{LIGHT}\nsys.exit(csl('lint', {str(tmp_path / 'data')!r}))")
    assert result.returncode == 2
    assert (
        result.stderr == "error: this needs pyarrow; install it: pip install 'csl_dist[formats]'\n"
    )


def modules_after(code: str) -> set[str]:
    """Top-level packages that are not Python's own, after some code."""
    tail = "\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    result = python(f"{code}{tail}")
    assert result.returncode == 0, result.stderr
    names = {name.partition(".")[0] for name in json.loads(result.stdout.splitlines()[-1])}
    return {name for name in names if not name.startswith("_")} - set(sys.stdlib_module_names)


def test_import_of_the_package_imports_nothing_else() -> None:
    before = modules_after("pass")
    assert modules_after("import csl_dist") - before == {"csl_dist"}


def test_help_imports_what_draws_the_terminal_and_no_more() -> None:
    """Seconds differ between machines; what is imported does not."""
    needed = {"csl_dist", "typer", "rich", "shellingham", "annotated_doc", "typing_extensions"}
    needed |= {"click", "pygments", "markdown_it", "mdurl"}
    assert modules_after("import csl_dist.cli") - modules_after("pass") <= needed
