"""What notebooks show; the quickstart runs from its first cell to its last."""

import json
from pathlib import Path

import pandas as pd
import pytest

import csl_dist
from csl_dist.audit.reader import Audit

QUICKSTART = Path(__file__).parents[2] / "docs/quickstart.ipynb"


@pytest.fixture(scope="module")
def audit(made_folder: Path) -> Audit:
    return csl_dist.open_audit(str(made_folder / "run"))


def test_audit_shows_what_it_is_of_and_its_first_flags(audit: Audit) -> None:
    html = audit._repr_html_()
    assert "1 flag in 1 video" in html
    assert "<td>v2</td>" in html
    assert "0:12" in html


def test_flags_show_the_columns_that_people_read_and_have_all(audit: Audit) -> None:
    flags = audit.flags()
    assert "0:12" in repr(flags)
    assert "fix_start" not in repr(flags)
    assert "fix_start" not in flags._repr_html_()
    assert flags.fix_start.isna().all()
    assert type(flags[flags.kind == "mislabel"]) is pd.DataFrame
    assert "0 flags in 0 videos" in repr(audit.flags(video="v3"))


def test_video_is_drawn_with_labels_predictions_and_score(audit: Audit) -> None:
    shown = csl_dist.view(audit, "v2")
    assert repr(shown) == "VideoView('v2', 0:30, 5 steps, 1 flag)"
    html = shown._repr_html_()
    assert html.count("<svg") == 3
    assert "models say" in html
    assert "mislabel" in html


def test_quickstart_runs(made_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSL_ROOT", str(made_folder / "run"))
    cells = json.loads(QUICKSTART.read_text())["cells"]
    names: dict[str, object] = {}
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for source in code:
        exec(compile(source, str(QUICKSTART), "exec"), names)
    assert names["after"] < names["before"], "the first fix is a fix"
    assert all(not cell.get("outputs") for cell in cells), "outputs are made, not kept"
