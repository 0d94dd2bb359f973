"""Pages that are made from the source are as the source is now."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def test_config_reference_is_that_of_the_source() -> None:
    path = DOCS / "config_reference.py"
    spec = importlib.util.spec_from_file_location("config_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.reference()
    assert (DOCS / "config.md").read_text() == page, "run: python docs/config_reference.py"
    assert "| `batch_frames` | `auto` |" in page


def test_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(tmp_path)]
    built = subprocess.run(
        command,
        cwd=Path(__file__).parents[1],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    for page in ("index", "annotators/index", "engineers/index", "cluster/index", "api/index"):
        assert (tmp_path / f"{page}.html").exists()
    assert "Audit" in (tmp_path / "api/index.html").read_text(encoding="utf-8")


def test_parts_of_the_paper_are_where_the_page_says() -> None:
    """A module or test that moved, or a function that got another name, is noticed here."""
    root = DOCS.parent
    rows = [line for line in (DOCS / "paper.md").read_text().splitlines() if line.startswith("|")]
    for row in rows:
        named = re.findall(r"`([\w/]+\.py)`((?:, `[A-Za-z_]+`)*)", row)
        for path, names in named:
            found = [
                f
                for f in (root / "csl_dist" / path, root / "tests" / path, root / path)
                if f.exists()
            ]
            assert found, f"{path} in: {row}"
            source = found[0].read_text()
            for name in re.findall(r"\w+", names):
                assert re.search(rf"^(def|class) {name}\b", source, re.M), f"{name} of {path}"
    assert len(rows) > 40
