"""Flags and metrics from scores in storage, without Ray or a model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builder import MadeVideo, write_checkpoints, write_manifest, write_trajectories
from rich.console import Console

from csl_dist.audit.revision import AuditStore
from csl_dist.cluster.stage import Stage
from csl_dist.config import (
    AuditConfig,
    CorruptConfig,
    FlagConfig,
    ManifestConfig,
    RunConfig,
    ScorerConfig,
)
from csl_dist.errors import DataError
from csl_dist.evaluate.baselines import BASELINES
from csl_dist.evaluate.stage import evaluate
from csl_dist.flag.calibrate import threshold_calibration
from csl_dist.flag.calibration import Calibration
from csl_dist.flag.stage import flag, settings_of
from csl_dist.measures import BASES, SCORE_NAMES
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.score.table import read_score_tables
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.types import Split, Video

NUM_FRAMES = 40
VERSION = "made"
SUSPICIOUS = slice(10, 20)


def write_dataset(root: Path) -> RunConfig:
    rng = np.random.default_rng(0)
    videos = [
        MadeVideo(
            id=f"v{i}",
            split=split,
            names_T=["a"] * 25 + ["b"] * 15,
            features_TD=rng.normal(size=(NUM_FRAMES, 4)).astype(np.float32),
        )
        for i, split in enumerate(["train", "val", "audit", "audit"])
    ]
    write_manifest(root, videos, fps=10)
    return RunConfig(
        root=str(root / "run"),
        dataset=ManifestConfig(path=str(root)),
        scorers={
            "transformer": ScorerConfig(arguments={"preset": "tiny"}),
            "framewise": ScorerConfig(),
        },
        corrupt=CorruptConfig(lengths=(5, 9)),
        flag=FlagConfig(rule="validation", score="csl", quantile=0.99, min_frames=2, close_gap=0),
        audit=AuditConfig(swapped_copies=0),
    )


def write_scores(inputs: Inputs) -> None:
    """Low everywhere, but high in one span of every audit video."""
    scores = ScoreStore(inputs.run.paths.scores)
    for scorer in inputs.run.config.scorers:
        write_checkpoints(inputs, scorer, 1, with_weights=False)
        for video in inputs.run.dataset.in_split(Split.VAL, Split.AUDIT):
            score = np.linspace(0, 1, NUM_FRAMES)
            if video.split is Split.AUDIT and scorer == "transformer":
                score[SUSPICIOUS] = 5.0
            [annotation] = inputs.labels.of([video.id], video.split)
            made = {"csl": score, "margin": -0.6 + 0 * score}
            scores.write(annotation, scorer, VERSION, made, np.ones(2))
            write_trajectory(inputs, scorer, video)


def write_trajectory(inputs: Inputs, scorer: str, video: Video) -> None:
    """One checkpoint, which trusts the labels of the validation video and always says b else."""
    [annotation] = inputs.labels.of([video.id], video.split)
    probability_TC = np.where(np.eye(2)[annotation.labels_T] == 1, 0.8, 0.2)
    if video.split is Split.AUDIT:
        probability_TC[:] = 0.2, 0.8
    write_trajectories(
        inputs,
        scorer,
        {video.id: NUM_FRAMES},
        lambda _: np.log(probability_TC),
        num_epochs=1,
        dtype="float32",
    )


def versions_of(inputs: Inputs) -> Versions:
    """The scores that `write_scores` wrote."""
    videos = [video.id for video in inputs.run.dataset.in_split(Split.VAL, Split.AUDIT)]
    return {scorer: dict.fromkeys(videos, VERSION) for scorer in inputs.run.config.scorers}


def write_flags(config: RunConfig) -> int:
    """Flags a run whose scores are there; the number of its audit."""
    inputs = open_inputs(config)
    return flag(Stage(inputs=inputs, console=Console(quiet=True)), versions_of(inputs))


def store_at(config: RunConfig) -> AuditStore:
    return AuditStore(RunPaths(Storage(config.root)))


def flags_of(config: RunConfig) -> pd.DataFrame:
    store = store_at(config)
    return store.flags(store.numbers()[-1])


def calibration_of(config: RunConfig) -> Calibration:
    inputs = open_inputs(config)
    return threshold_calibration(inputs, versions_of(inputs), settings_of(config))


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    config = write_dataset(tmp_path)
    write_scores(open_inputs(config))
    return config


def test_suspicious_span_becomes_a_flag_with_kind_and_suggestion(config: RunConfig) -> None:
    assert write_flags(config) == 1
    flags = flags_of(config)
    assert flags.video.tolist() == ["v2", "v3"]
    first = flags.iloc[0]
    assert (first.start, first.stop, first.start_seconds) == (10, 20, 1.0)
    assert (first.label, first.suggested) == ("a", "b")
    assert first.suggested_probability == pytest.approx(0.8)
    assert first.kind == "disorder", "single frames look right"
    assert first.kind_confidence > 0.5
    assert first.why.startswith("The frames look like a, as labelled, but at this point")
    written = pd.read_csv(Path(config.root) / "audits/0001/flags.csv")
    assert written.video.tolist() == flags.video.tolist()
    assert list(written.columns) == list(flags.columns)


def test_audit_is_not_made_again_without_need(config: RunConfig) -> None:
    assert write_flags(config) == 1
    folder = Path(config.root) / "audits/0001"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert write_flags(config) == 1
    assert store_at(config).numbers() == [1]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_audit_that_was_not_finished_is_not_shown_and_its_number_is_used(config: RunConfig) -> None:
    folder = Path(config.root) / "audits/0001"
    folder.mkdir(parents=True)
    (folder / "flags.parquet").write_bytes(b"half")
    assert store_at(config).numbers() == []
    assert write_flags(config) == 1
    assert len(flags_of(config)) == 2


def test_other_rule_makes_another_audit_and_leaves_the_first_as_it_was(config: RunConfig) -> None:
    write_flags(config)
    folder = Path(config.root) / "audits/0001"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    rare = replace(config, flag=replace(config.flag, min_frames=30))
    assert write_flags(rare) == 2
    store = store_at(config)
    assert (len(store.flags(1)), len(store.flags(2))) == (2, 0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert write_flags(config) == 3, "back to the first rule is a new audit, which people see"


def test_removed_audit_leaves_its_number_and_shared_scores(config: RunConfig) -> None:
    write_flags(config)
    write_flags(replace(config, flag=replace(config.flag, min_frames=30)))
    store = store_at(config)
    store.remove(2)
    assert store.numbers() == [1]
    assert len(store.flags(1)) == 2
    assert write_flags(replace(config, flag=replace(config.flag, min_frames=31))) == 3
    store.remove(1)
    assert ScoreStore(RunPaths(Storage(config.root)).scores).done(), "audit 3 has them, too"
    store.remove(3)
    assert not ScoreStore(RunPaths(Storage(config.root)).scores).done()
    with pytest.raises(DataError, match="has no audit 3; it has none"):
        store.remove(3)


def test_flags_follow_a_video_that_changes_its_split(config: RunConfig) -> None:
    write_flags(config)
    manifest = Path(config.dataset.path) / "manifest.csv"
    manifest.write_text(manifest.read_text().replace("v3.txt,audit", "v3.txt,val"))
    write_flags(config)
    assert set(flags_of(config).video) <= {"v2"}


def test_flags_follow_a_scorer_that_is_taken_out(config: RunConfig) -> None:
    write_flags(config)
    scorers = {"transformer": config.scorers["transformer"]}
    write_flags(replace(config, scorers=scorers))
    flags = flags_of(config)
    assert set(flags.kind) == {"mislabel"}, "nobody tells what frames look like"
    assert flags.kind_confidence.isna().all()


def test_calibration_plants_errors_in_validation_videos_and_is_kept(config: RunConfig) -> None:
    found = calibration_of(config)
    assert (found.planted_in, found.videos) == (Split.VAL, 1)
    assert found.planted_spans >= 1
    assert found.recall == 1.0, "a label of 20 % stands out among labels of 80 %"
    write_flags(config)
    assert store_at(config).calibration(1) == found


def test_calibration_without_validation_videos_plants_in_those_to_audit(config: RunConfig) -> None:
    manifest = Path(config.dataset.path) / "manifest.csv"
    manifest.write_text(manifest.read_text().replace("v1.txt,val", "v1.txt,train"))
    found = calibration_of(config)
    assert (found.planted_in, found.videos) == (Split.AUDIT, 2)
    assert "2 audited videos" in found.sentence()


def test_ensemble_decides_where_it_is_asked_to(config: RunConfig) -> None:
    config = replace(config, flag=replace(config.flag, scorer="ensemble"))
    write_flags(config)
    assert len(flags_of(config)) == 2
    inputs = open_inputs(config)
    table = read_score_tables(
        ScoreStore(inputs.run.paths.scores),
        versions_of(inputs),
        {split: inputs.labels.in_split(split) for split in (Split.AUDIT, Split.VAL)},
        settings_of(config),
    )[Split.AUDIT]
    assert set(table.scores) == {"transformer", "framewise", "ensemble"}


def test_metrics_tell_scores_baselines_and_flags(config: RunConfig) -> None:
    truth = Path(config.dataset.path) / "truth.csv"
    truth.write_text(
        f"video,kind,start,stop,true_label\nv2,mislabel,{SUSPICIOUS.start},{SUSPICIOUS.stop},b\n"
    )
    dataset = replace(config.dataset, truth=str(truth))
    inputs = open_inputs(replace(config, dataset=dataset))
    scores = ScoreStore(inputs.run.paths.scores)
    for scorer in config.scorers:
        for video in ("v1", "v2", "v3"):
            score = scores.read(video, scorer, "csl", VERSION)
            annotation, weights_C = scores.read_annotation(video, scorer, VERSION)
            scores.write(annotation, scorer, VERSION, dict.fromkeys(BASES, score), weights_C)
    stage = Stage(inputs=inputs, console=Console(quiet=True))
    metrics = evaluate(stage, flag(stage, versions_of(inputs)))
    by_name = metrics["scorers"]["transformer"]["mislabel"]
    assert {*SCORE_NAMES, *BASELINES} == set(by_name)
    value, low, high = by_name["csl"]["auc_micro"]
    assert low <= value <= high
    assert value > 0.8
    assert metrics["flags"] == {
        "precision": 0.5,
        "recall": 1.0,
        "kind_accuracy": 0.0,
        "suggestion_accuracy": 1.0,
    }
    assert metrics["top_percent_minutes"]["mislabel"]["10"] == pytest.approx(0.01, abs=0.005)


def test_videos_are_listed_by_how_far_they_lie_off(config: RunConfig) -> None:
    write_flags(config)
    assert store_at(config).outliers(1) == []
    table = pd.read_csv(Path(config.root) / "audits/0001/videos.csv")
    assert set(table.video) == {"v2", "v3"}


def test_errors_for_training_are_planted_in_training_alone(config: RunConfig) -> None:
    planted = CorruptConfig(train={"mislabel": 1}, lengths=(5, 9))
    plain, noisy = (
        open_inputs(replace(config, corrupt=c)).labels for c in (config.corrupt, planted)
    )
    [before], [after] = (labels.of(["v0"], Split.TRAIN) for labels in (plain, noisy))
    assert (before.labels_T != after.labels_T).any()
    for split in (Split.VAL, Split.AUDIT):
        for one, two in zip(plain.in_split(split), noisy.in_split(split), strict=True):
            assert np.array_equal(one.labels_T, two.labels_T)
    assert not noisy.known_errors()


def test_planted_disorder_changes_what_models_see_and_mislabel_does_not(
    config: RunConfig,
) -> None:
    plain = open_inputs(config)
    for kind, moves in (("mislabel", False), ("disorder", True)):
        planted = CorruptConfig(audit={kind: 1}, lengths=(5, 9))
        inputs = open_inputs(replace(config, corrupt=planted))
        for annotation in inputs.labels.in_split(Split.AUDIT):
            seen = [
                one.seen_features("transformer", 0, Split.AUDIT).fingerprint(annotation.video)
                for one in (plain, inputs)
            ]
            assert (seen[0] != seen[1]) is moves
        errors = inputs.labels.known_errors()
        assert {error.video for error in errors} == {"v2", "v3"}
        assert {error.kind for error in errors} == {kind}
