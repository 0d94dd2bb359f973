"""Reading an audit: against values computed naively from what was stored."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import made_run
import numpy as np
import pytest
from made_run import CLASS_WEIGHTS, CLASSES, NUM_EPOCHS, NUM_FRAMES, TRUE_LABELS, WRONG

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.audit.relabel import relabel
from csl_dist.config import FlagConfig
from csl_dist.errors import CslError, DataError, NotReadyError
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.url import Storage


def naive_losses(video: str, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    logp = made_run.log_probabilities(video, "transformer")
    return np.array(
        [
            [-weights[labels[t]] * float(logp[e, t, labels[t]]) for t in range(NUM_FRAMES)]
            for e in range(NUM_EPOCHS)
        ]
    )


@pytest.fixture(scope="module")
def audit(made_folder: Path) -> Audit:
    return csl_dist.open_audit(str(made_folder / "run"))


def test_flags_show_the_wrong_span_with_its_times_and_suggestion(audit: Audit) -> None:
    flags = audit.flags(top=20)
    assert len(flags) == 1
    flag = flags.iloc[0]
    assert (flag.video, flag.label, flag.suggested) == ("v2", "c", "b")
    assert abs(flag.start - WRONG.start) <= 4
    assert abs(flag.stop - WRONG.stop) <= 4
    assert flag.start_seconds == pytest.approx(flag.start / 10)
    assert flag.stop_seconds == pytest.approx(flag.stop / 10)


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"video": "v2"}, 1),
        ({"video": "v3"}, 0),
        ({"label": "c"}, 1),
        ({"label": "b"}, 1),
        ({"label": "a"}, 0),
        ({"kind": "mislabel"}, 1),
        ({"kind": "disorder"}, 0),
        ({"min_score": 1e9}, 0),
        ({"from_seconds": 14.0, "to_seconds": 15.0}, 1),
        ({"to_seconds": 5.0}, 0),
        ({"from_seconds": 20.0}, 0),
        ({"top": 0}, 0),
    ],
)
def test_flags_are_filtered(audit: Audit, filters: dict[str, object], count: int) -> None:
    assert len(audit.flags(**filters)) == count  # type: ignore[arg-type]


def test_csl_is_the_mean_weighted_loss_over_checkpoints(audit: Audit) -> None:
    expected = naive_losses("v2", made_run.labels_of("v2"), CLASS_WEIGHTS).mean(axis=0)
    assert audit.csl("v2") == pytest.approx(expected, rel=1e-5)


def test_csl_under_other_labels_checkpoints_and_weights(audit: Audit) -> None:
    fixed = naive_losses("v2", TRUE_LABELS, np.ones(3))
    under = audit.csl("v2", labels=TRUE_LABELS, weighted=False)
    assert under == pytest.approx(fixed.mean(axis=0), rel=1e-5)
    names = [CLASSES[label] for label in TRUE_LABELS]
    assert audit.csl("v2", labels=names, weighted=False) == pytest.approx(under)
    halved = audit.csl("v2", labels=TRUE_LABELS, weighted=False, checkpoints="every_2nd")
    assert halved == pytest.approx(fixed[[1, 3, 5]].mean(axis=0), rel=1e-5)


def test_frames_without_a_label_have_no_csl(audit: Audit) -> None:
    labels = TRUE_LABELS.copy()
    labels[:7] = -1
    csl = audit.csl("v2", labels=labels)
    assert np.isnan(csl[:7]).all()
    assert not np.isnan(csl[7:]).any()


def test_trajectory_is_the_losses_of_some_frames(audit: Audit) -> None:
    expected = naive_losses("v3", made_run.labels_of("v3"), CLASS_WEIGHTS)
    part = audit.trajectory("v3", frames=slice(120, 140))
    assert part == pytest.approx(expected[:, 120:140], rel=1e-5)
    assert audit.trajectory("v3", frames=299)[:, 0] == pytest.approx(expected[:, 299], rel=1e-5)
    assert audit.trajectory("v3").shape == (NUM_EPOCHS, NUM_FRAMES)


def test_xarray_has_named_dimensions(audit: Audit) -> None:
    array = audit.to_xarray("v2", frames=slice(90, 210))
    assert dict(array.sizes) == {"checkpoint": NUM_EPOCHS, "frame": 120, "class": 3}
    stored = made_run.log_probabilities("v2", "transformer")
    chosen = array.sel(checkpoint=6, frame=130)
    assert chosen.sel({"class": "b"}).item() == pytest.approx(float(stored[5, 130, 1]))
    assert chosen["label"].item() == "c"
    assert chosen["seconds"].item() == 13.0


def test_scores_are_a_table_of_frames(audit: Audit) -> None:
    table = audit.scores("v2")
    assert {"frame", "seconds", "label", "csl", "deciding", "final"} <= set(table.columns)
    assert "smoothed" not in table
    assert table.deciding.to_numpy() == pytest.approx(audit.score("v2", "csl_smoothed"))
    assert table.csl.to_numpy() == pytest.approx(audit.csl("v2"))
    assert table.label[130] == "c"


def test_videos_come_worst_first(audit: Audit) -> None:
    table = audit.videos()
    assert table.video.tolist() == ["v2", "v3"]
    assert table["flags"].tolist() == [1, 0]
    assert table.frames.tolist() == [300, 300]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda a: a.csl("v22"), "did you mean 'v2'"),
        (lambda a: a.csl("v0"), "trained on"),
        (lambda a: a.csl("v2", labels=[0, 1]), "300 frames"),
        (lambda a: a.csl("v2", labels=np.full(300, 3)), "run from 3 to 3"),
        (lambda a: a.csl("v2", labels=["d"] * 300), "unknown class 'd'"),
        (lambda a: a.csl("v2", checkpoints=(7,)), "only 1 to 6"),
        (lambda a: a.csl("v2", scorer="other"), "no scorer 'other'"),
        (lambda a: a.trajectory("v2", frames=slice(400, 500)), "not a range"),
    ],
)
def test_mistakes_are_told_in_a_sentence(audit: Audit, ask: object, words: str) -> None:
    with pytest.raises(CslError, match=words):
        ask(audit)  # type: ignore[operator]


def test_audit_is_read_where_the_dataset_is_absent_and_nothing_is_written(
    made_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is all that is opened, and is made read-only."""
    dataset = str(csl_dist.open_audit(made_root).config.dataset.path)
    storage = Storage(made_root)
    for key in ("run.json", "audits/0001/audit.json"):
        text = json.dumps(storage.read_json(key, dict))
        storage.put_json(key, json.loads(text.replace(dataset, "/nowhere")))
    kept = {p: p.stat().st_mtime_ns for p in Path(made_root).rglob("*")}
    audit = csl_dist.open_audit(made_root)
    audit.flags()
    audit.videos()
    audit.csl("v2", labels=TRUE_LABELS)
    audit.to_xarray("v3")
    assert audit.missing() == []
    assert {p: p.stat().st_mtime_ns for p in Path(made_root).rglob("*")} == kept


def test_run_in_progress_says_what_is_missing(made_root: str) -> None:
    root = Path(made_root)
    shutil.rmtree(root / "audits")
    shutil.rmtree(root / "scores.zarr/v3")
    for record in (root / "scores.zarr/records/v3").rglob("*.json"):
        record.unlink()
    for record in (root / "transformer/records/published/v1").rglob("*.json"):
        record.unlink()
    audit = csl_dist.open_audit(made_root)
    assert audit.missing() == [
        "1 of 3 videos have no trajectory of transformer yet (v1)",
        "1 of 3 videos have no score of transformer yet (v3)",
        "1 of 3 videos have no score of framewise yet (v3)",
        "there are no flags yet",
    ]
    assert audit.csl("v2").shape == (NUM_FRAMES,)
    assert audit.videos().worst.isna().tolist() == [False, True]
    with pytest.raises(NotReadyError, match="no flags yet"):
        audit.flags()
    with pytest.raises(NotReadyError, match="'v3' has no score"):
        audit.csl("v3")
    with pytest.raises(NotReadyError, match="'v1' has no trajectory"):
        audit.trajectory("v1")


def test_deciding_score_of_the_ensemble_is_that_of_its_flags(tmp_path: Path) -> None:
    """The ensemble's scale comes from all videos, but a reader has one at a time."""
    flag = FlagConfig(scorer="ensemble", score="aum_segment", rule="top", percent=20)
    audit = csl_dist.open_audit(made_run.make_run(tmp_path, flag))
    flags = audit.flags()
    assert len(flags) > 0
    for row in flags.itertuples():
        score = audit.deciding_score(row.video)
        assert score[row.start : row.stop].mean() == pytest.approx(row.score, rel=1e-5)
        assert score.max() > audit.record.thresholds[row.video]


def test_validation_video_has_no_suspicion(tmp_path: Path) -> None:
    audit = csl_dist.open_audit(made_run.make_run(tmp_path, FlagConfig(rule="edits")))
    assert "suspicion" in audit.scores("v2")
    assert "suspicion" not in audit.scores("v1")
    with pytest.raises(DataError, match="'v1' is not one to audit, so that it has no 'suspicion'"):
        audit.deciding_score("v1")


def test_package_import_is_cheap_and_reading_needs_neither_ray_nor_torch() -> None:
    code = (
        "import csl_dist, sys; heavy = {'ray', 'torch', 'pandas', 'zarr', 'numpy'};"
        "assert not heavy & set(sys.modules); csl_dist.open_audit;"
        "assert not {'ray', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


def test_score_under_labels_equals_that_of_an_audit_under_them(made_root: str) -> None:
    """Only changed frames are computed; a whole new audit must say the same."""
    audit = csl_dist.open_audit(made_root)
    fixed = TRUE_LABELS
    names = ("csl", "margin_late", "aum_late_segment", "final", "csl_smoothed")
    under = {name: audit.score("v2", name, labels=fixed) for name in names}
    deciding = audit.deciding_score("v2", labels=fixed)
    corrected = Path(made_root).parent / "corrected"
    corrected.mkdir()
    (corrected / "v2.txt").write_text(made_run.label_text(fixed))
    after = relabel(made_root, corrected).after
    for name, score in under.items():
        np.testing.assert_allclose(score, after.score("v2", name), rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(deciding, after.deciding_score("v2"), rtol=1e-5)
    assert deciding[WRONG].mean() < audit.deciding_score("v2")[WRONG].mean()


def test_trajectory_that_a_later_run_replaced_is_found(made_root: str) -> None:
    expected = csl_dist.open_audit(made_root).trajectory("v2", scorer="framewise")
    scorer = Storage(made_root).child("framewise")
    records = Ledger(scorer.child("records/published"))
    [unit] = records.done("v2")
    facts = records.read(unit, dict)
    later = Unit("v2/000009", unit.fingerprint)
    moved = f"trajectories.zarr/{later.name}"
    for key in scorer.list_keys(facts["array"]):
        scorer.put(key.replace(facts["array"], moved), scorer.read(key))
    records.write(later, **facts | {"array": moved})
    records.forget([unit])
    scorer.delete_folder(facts["array"])
    found = csl_dist.open_audit(made_root).trajectory("v2", scorer="framewise")
    assert np.array_equal(found, expected)


def test_labels_that_an_audit_saw_are_those_of_its_scores(made_root: str) -> None:
    audit = csl_dist.open_audit(made_root)
    for video in audit.held_out_videos():
        assert np.array_equal(audit.seen.labels(video.id), audit.annotation(video.id).labels_T)
