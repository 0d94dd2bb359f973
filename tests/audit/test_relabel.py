"""Auditing again under corrected labels, from the run root alone."""

import io
import json
from dataclasses import replace
from pathlib import Path

import builder
import made_run
import numpy as np
import pytest
from made_run import CLASSES, NUM_FRAMES, TRUE_LABELS, WRONG
from rich.console import Console

import csl_dist
from csl_dist.audit.changes import _changed_settings, audit_lines, flag_changes
from csl_dist.audit.reader import Audit
from csl_dist.audit.relabel import relabel
from csl_dist.config import (
    ActivityNetConfig,
    Cholec80Config,
    CorruptConfig,
    DatasetConfig,
    EgoperConfig,
    FlagConfig,
    MstcnConfig,
    ScoreConfig,
)
from csl_dist.data.layouts import corrected_labels
from csl_dist.errors import DataError
from csl_dist.pipeline import put_run
from csl_dist.training.inputs import open_inputs
from csl_dist.types import Split, Video


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """A folder with one corrected label file."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    (folder / "v2.txt").write_text(made_run.label_text(TRUE_LABELS))
    return folder


def test_corrected_span_falls_below_the_threshold_and_its_flag_goes(
    made_root: str, fixed: Path
) -> None:
    made = relabel(made_root, fixed)
    assert len(made.corrections) == 1
    row = made.corrections.iloc[0]
    assert (row.video, row.start, row.stop) == ("v2", WRONG.start, WRONG.stop)
    assert (row.label, row.corrected) == ("c", "b")
    assert row.score_after < row.score_before
    assert row.below_threshold
    assert len(made.resolved) == 1
    assert len(made.new) == 0
    assert made.after.flags().empty
    assert made.after.known_errors == ()


def test_corrected_labels_of_a_validation_video_are_taken_too(tmp_path: Path, fixed: Path) -> None:
    """The default rule learns from them, though it scores audited videos alone."""
    root = made_run.make_run(tmp_path / "made", FlagConfig())
    labels_T = np.where(np.arange(NUM_FRAMES) < 20, 2, TRUE_LABELS)
    (fixed / "v1.txt").write_text(made_run.label_text(labels_T))
    made = relabel(root, fixed)
    by_video = {row.video: row for row in made.corrections.itertuples()}
    assert set(by_video) == {"v1", "v2"}
    assert np.isnan(by_video["v1"].score_before)
    assert np.isnan(by_video["v1"].score_after)
    assert by_video["v2"].score_after < by_video["v2"].score_before
    assert (made.after.annotation("v1").labels_T == labels_T).all()


def test_new_audit_reads_the_new_labels_and_the_earlier_one_stays(
    made_root: str, fixed: Path
) -> None:
    before = csl_dist.open_audit(made_root).csl("v2")
    relabel(made_root, fixed)
    newest, first = csl_dist.open_audit(made_root), csl_dist.open_audit(made_root, revision=1)
    assert (newest.revision, first.revision, newest.revisions) == (2, 1, [1, 2])
    assert (newest.annotation("v2").labels_T == TRUE_LABELS).all()
    assert newest.csl("v2") == pytest.approx(first.csl("v2", labels=TRUE_LABELS), rel=1e-5)
    assert (first.csl("v2") == before).all()
    assert len(first.flags()) == 1
    assert (newest.csl("v3") == first.csl("v3")).all(), "of a video that did not change"
    assert newest.corrections().video.tolist() == ["v2"]


def test_labels_corrected_twice_make_a_history(made_root: str, fixed: Path) -> None:
    relabel(made_root, fixed)
    worse = TRUE_LABELS.copy()
    worse[200:260] = 0
    (fixed / "v3.txt").write_text(made_run.label_text(worse))
    made = relabel(made_root, fixed)
    assert made.after.revision == 3
    assert set(made.corrections.video) == {"v3"}
    assert set(made.new.video) == {"v3"}
    audits = [csl_dist.open_audit(made_root, revision=n) for n in (1, 2, 3)]
    assert [set(audit.flags().video) for audit in audits] == [{"v2"}, set(), {"v3"}]
    assert (audits[2].annotation("v2").labels_T == TRUE_LABELS).all()
    assert audits[2].flags()["rank"].tolist() == list(range(1, len(made.new) + 1))


def audited_again(folder: Path, **flag: object) -> Audit:
    """What `csl audit` shows after the config's rule was changed."""
    config = made_run.config_of(folder, replace(made_run.PAPERS_FLAGS, **flag))  # type: ignore[arg-type]
    builder.finish_run(open_inputs(config))
    return csl_dist.open_audit(config.root)


def test_audit_by_another_rule_after_relabelling_is_what_people_see(
    tmp_path: Path, fixed: Path
) -> None:
    root = made_run.make_run(tmp_path / "made")
    relabel(root, fixed)
    assert csl_dist.open_audit(root).flags().empty
    newest = audited_again(tmp_path / "made", rule="top", percent=10.0)
    assert newest.revision == 3
    assert newest.settings.flag.rule == "top"
    assert len(newest.flags()) > 0
    assert (newest.annotation("v2").labels_T == made_run.labels_of("v2")).all()
    lines = audit_lines(root)
    assert lines[1].changes == ("labels that correct audit 1", "scores of 1 video")
    assert "the dataset's own labels again" in lines[2].changes
    assert "flag.rule validation → top" in lines[2].changes


def test_labels_corrected_in_place_are_told_as_the_datasets_own(tmp_path: Path) -> None:
    root = made_run.make_run(tmp_path / "made")
    own = Path(csl_dist.open_audit(root).videos_by_id["v2"].labels)
    fixed = made_run.label_text(made_run.TRUE_LABELS)
    (tmp_path / own.name).write_text(fixed)
    relabel(root, tmp_path / own.name)
    own.write_text(fixed)
    audited_again(tmp_path / "made")
    assert audit_lines(root)[2].changes == ("corrected labels of 1 video, now the dataset's own",)


def test_audit_of_unchanged_labels_after_relabelling_says_what_people_see(
    tmp_path: Path, fixed: Path
) -> None:
    relabel(made_run.make_run(tmp_path / "made"), fixed)
    said = io.StringIO()
    inputs = open_inputs(made_run.config_of(tmp_path / "made"))
    assert builder.finish_run(inputs, Console(file=said, width=400)) == 1
    assert "audited before, as audit 1" in said.getvalue()
    assert "show audit 2, whose labels were corrected" in said.getvalue()


def test_settings_that_are_gone_are_told() -> None:
    old = {"corrupt": {"audit": {"disorder": 0.5}}, "root": "a"}
    new: dict[str, object] = {"corrupt": {"audit": {}}, "root": "b"}
    assert _changed_settings(old, new) == ["corrupt.audit.disorder 0.5 → None"]


def test_audit_with_nothing_changed_after_relabelling_makes_none(
    tmp_path: Path, fixed: Path
) -> None:
    root = made_run.make_run(tmp_path / "made")
    relabel(root, fixed)
    newest = audited_again(tmp_path / "made")
    assert (newest.revision, newest.revisions) == (2, [1, 2]), "corrected labels stay in sight"


def test_other_settings_of_a_later_command_do_not_change_what_an_audit_shows(
    tmp_path: Path,
) -> None:
    root = made_run.make_run(tmp_path / "made")
    before = csl_dist.open_audit(root)
    deciding_T, tau = before.deciding_score("v2"), before.record.thresholds["v2"]
    config = made_run.config_of(tmp_path / "made")
    other = replace(config, score=ScoreConfig(window=101, weighted=False))
    put_run(open_inputs(other))
    after = csl_dist.open_audit(root)
    assert (after.deciding_score("v2") == deciding_T).all()
    assert after.record.thresholds["v2"] == tau
    assert after.config.score.window == config.score.window


def test_classes_of_a_later_command_do_not_rename_an_audit(tmp_path: Path) -> None:
    root = made_run.make_run(tmp_path / "made")
    (tmp_path / "made" / "classes.txt").write_text("z\na\nb\nc\n")
    put_run(open_inputs(made_run.config_of(tmp_path / "made")))
    audit = csl_dist.open_audit(root)
    assert audit.classes == CLASSES
    assert audit.flags().label.tolist() == ["c"]


def test_changes_of_flags_are_told_as_came_went_and_moved(tmp_path: Path) -> None:
    root = made_run.make_run(tmp_path / "made")
    audited_again(tmp_path / "made", rule="top", percent=60.0, min_frames=3)
    first, second = (csl_dist.open_audit(root, revision=n) for n in (1, 2))
    changes = flag_changes(first, second)
    assert len(changes.came) + len(changes.moved) + changes.num_same == len(second.flags())
    assert len(changes.came) > 0
    back = flag_changes(second, first)
    assert len(back.went) == len(changes.came)
    same = flag_changes(first, first)
    assert (len(same.came), len(same.went), len(same.moved), same.num_same) == (0, 0, 0, 1)


def test_root_that_was_moved_is_read_and_relabelled(tmp_path: Path, fixed: Path) -> None:
    root = Path(made_run.make_run(tmp_path / "made"))
    moved = root.rename(tmp_path / "elsewhere")
    audit = csl_dist.open_audit(str(moved))
    assert audit.config.root == str(moved)
    assert len(audit.flags()) == 1
    assert relabel(str(moved), fixed).after.flags().empty


def test_labels_that_change_nothing_are_told_so(made_root: str, tmp_path: Path) -> None:
    (tmp_path / "v3.txt").write_text(made_run.label_text(TRUE_LABELS))
    with pytest.raises(DataError, match="are those of audit 1 already"):
        relabel(made_root, tmp_path / "v3.txt")
    assert csl_dist.open_audit(made_root).revisions == [1]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("v9.txt", "a\n", "labels of none of the audited videos"),
        ("v2.txt", "a\n" * 10, "10 labels but 300 frames"),
        ("v2.txt", "z\n" * NUM_FRAMES, "unknown class 'z'"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    made_root: str, tmp_path: Path, name: str, text: str, words: str
) -> None:
    folder = tmp_path / "fixed"
    folder.mkdir()
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=words):
        relabel(made_root, folder)


def video(name: str, labels: str) -> Video:
    return Video(id=name, split=Split.AUDIT, labels=labels, source="")


def read_back(config: DatasetConfig, own: Video, path: Path) -> list[int]:
    dataset = corrected_labels(config, CLASSES, [own, video("other", "/d/none.txt")], path)
    assert [v.id for v in dataset.videos] == [own.id]
    return dataset.track(dataset.videos[0]).at(np.arange(4) / 10).tolist()


def test_labels_are_read_in_every_layout_without_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "groundTruth").mkdir()
    (tmp_path / "groundTruth/p1.txt").write_text("a\nb\nc\nc\n")
    config = MstcnConfig(path="/d", features_fps=10)
    assert read_back(config, video("p1", "/d/groundTruth/p1.txt"), tmp_path) == [0, 1, 2, 2]
    by_name = tmp_path / "groundTruth"
    assert read_back(config, video("p1", "/d/groundTruth/p1.txt"), by_name) == [0, 1, 2, 2]

    (tmp_path / "v1-phase.txt").write_text("Frame\tPhase\n0\ta\n1\tb\n2\tc\n3\tc\n")
    config = Cholec80Config(path="/d", labels_fps=10)
    own = video("v1", "/d/phase_annotations/v1-phase.txt")
    assert read_back(config, own, tmp_path) == [0, 1, 2, 2]

    entry = {"annotations": [{"segment": [0.1, 0.3], "label": "b"}]}
    (tmp_path / "all.json").write_text(json.dumps({"database": {"x": entry}}))
    config = ActivityNetConfig(path="/d/all.json")
    assert read_back(config, video("x", "/d/all.json"), tmp_path) == [-1, 1, 1, -1]

    labels = {"time_stamp": [[0, 0.2]], "action": [7], "action_type": [0]}
    task = {
        "action2idx": {"a": 3, "b": 7, "c": 9},
        "segments": [{"video_id": "x", "labels": labels}],
    }
    (tmp_path / "annotation.json").write_text(json.dumps({"tea": task}))
    config = EgoperConfig(path="/d", task="tea")
    assert read_back(config, video("x", "/d/annotation.json"), tmp_path) == [1, 1, -1, -1]


def test_order_that_was_planted_is_gone_with_its_setting(tmp_path: Path) -> None:
    root = made_run.make_run(tmp_path)
    plain = made_run.config_of(tmp_path)
    planted = replace(plain, corrupt=CorruptConfig(audit={"disorder": 1}))
    for config in (planted, plain):
        inputs = open_inputs(config)
        put_run(inputs)
        builder.finish_run(inputs)
    times = [
        csl_dist.open_audit(root, revision=number).annotation("v2").source_times_T
        for number in (1, 2, 3)
    ]
    assert (np.diff(times[1]) < 0).any(), "two steps are swapped"
    assert (times[2] == times[0]).all()
    with pytest.raises(DataError, match="are those of audit 3 already"):
        relabel(root, tmp_path)
