"""From decisions to corrected labels, and on to the next audit."""

import uuid
from pathlib import Path
from typing import Any

import made_run
import numpy as np
import pytest
from made_run import TRUE_LABELS, WRONG
from typer.testing import CliRunner

import csl_dist
from csl_dist.cli.app import app
from csl_dist.errors import DataError
from csl_dist.review.store import Decision, NewReview, store_of


def decide(root: str, span: tuple[int, int], reviewer: str = "Ada", **values: Any) -> None:
    store = store_of(root, None)
    store.create()
    store.append(
        NewReview(
            key=uuid.uuid4().hex,
            revision=csl_dist.open_audit(root).revision,
            video="v2",
            start=span[0],
            stop=span[1],
            reviewer=reviewer,
            **values,
        )
    )


def flagged(root: str) -> tuple[int, int]:
    flag = csl_dist.open_audit(root).flags().iloc[0]
    return int(flag.start), int(flag.stop)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_export_writes_labels_that_relabel_reads(made_root: str, tmp_path: Path) -> None:
    span = flagged(made_root)
    decide(
        made_root,
        span,
        decision=Decision.BOUNDARY,
        label="b",
        new_start=WRONG.start,
        new_stop=WRONG.stop,
    )
    out = tmp_path / "fixed"
    said = run("reviews", "export", made_root, "--out", str(out))
    assert "1 span of 1 video in" in said
    assert (out / "v2.txt").read_text() == made_run.label_text(TRUE_LABELS)
    assert not (out / "v3.txt").exists()
    assert "1 resolved" in run("relabel", made_root, str(out))
    report = Path(made_root, "report.html")
    written = report.read_bytes()
    report.write_text("of the audit before: killed before the new one was written")
    with pytest.raises(DataError, match="are those of audit 2 already"):
        run("relabel", made_root, str(out))
    assert report.read_bytes() == written
    after = csl_dist.open_audit(made_root)
    np.testing.assert_array_equal(after.annotation("v2").labels_T, TRUE_LABELS)
    with pytest.raises(DataError, match="no decision"):
        run("reviews", "export", made_root, "--out", str(out))


def test_review_of_a_relabelled_audit_goes_on_from_its_labels(
    made_root: str, tmp_path: Path
) -> None:
    """The second export starts from the labels of the first, not from the dataset's."""
    first = TRUE_LABELS.copy()
    first[WRONG] = 2
    first[:10] = 1
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "v2.txt").write_text(made_run.label_text(first))
    run("relabel", made_root, str(tmp_path / "first"))
    decide(made_root, (WRONG.start, WRONG.stop), decision=Decision.WRONG, label="b")
    run("reviews", "export", made_root, "--out", str(tmp_path / "second"))
    expected = TRUE_LABELS.copy()
    expected[:10] = 1
    assert (tmp_path / "second" / "v2.txt").read_text() == made_run.label_text(expected)


def test_last_decision_counts_and_disputes_are_told(made_root: str, tmp_path: Path) -> None:
    span = flagged(made_root)
    decide(made_root, span, "Ada", decision=Decision.WRONG, label="a")
    decide(made_root, span, "Bob", decision=Decision.WRONG, label="b")
    said = run("reviews", "export", made_root, "--out", str(tmp_path / "out"))
    assert "disputed: 1 span, decided" in said
    lines = (tmp_path / "out" / "v2.txt").read_text().split()
    assert set(lines[span[0] : span[1]]) == {"b"}


def test_decisions_that_change_no_label_export_nothing(made_root: str, tmp_path: Path) -> None:
    span = flagged(made_root)
    decide(made_root, span, decision=Decision.WRONG, label="b")
    decide(made_root, span, decision=Decision.WITHDRAWN)
    decide(made_root, span, "Bob", decision=Decision.CORRECT)
    decide(made_root, span, "Cid", decision=Decision.UNSURE)
    with pytest.raises(DataError, match="no decision that changes a label yet;"):
        run("reviews", "export", made_root, "--out", str(tmp_path / "out"))


def test_export_after_relabel_says_that_decisions_are_in_the_labels(
    made_root: str, tmp_path: Path
) -> None:
    span = flagged(made_root)
    decide(made_root, span, decision=Decision.WRONG, label="b")
    said = run("reviews", "export", made_root, "--out", str(tmp_path / "out"))
    assert "only the label files that change (1); next: `csl relabel" in " ".join(said.split())
    run("relabel", made_root, str(tmp_path / "out"))
    with pytest.raises(DataError, match="left that changes a label: 1 of audit 1 are in"):
        run("reviews", "export", made_root, "--out", str(tmp_path / "more"))


def test_export_onto_labels_that_are_read_is_refused(
    made_root: str, made_folder: Path, tmp_path: Path
) -> None:
    decide(made_root, flagged(made_root), decision=Decision.WRONG, label="b")
    before = (made_folder / "v2.txt").read_text()
    (tmp_path / "linked").symlink_to(made_folder)
    for out in (made_folder, tmp_path / "linked", made_folder / "run" / ".."):
        with pytest.raises(DataError, match="is a file that the audit reads"):
            run("reviews", "export", made_root, "--out", str(out))
    assert (made_folder / "v2.txt").read_text() == before
    out = tmp_path / "fixed"
    for _ in range(2):
        run("reviews", "export", made_root, "--out", str(out))
    run("relabel", made_root, str(out))
    decide(made_root, (0, 10), decision=Decision.WRONG, label="b")
    with pytest.raises(DataError, match="is a file that the audit reads"):
        run("reviews", "export", made_root, "--out", str(out))
