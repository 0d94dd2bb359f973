"""What the rule makes of planted errors, from scores in storage."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_run import NUM_FRAMES, config_of, make_run

from csl_dist.audit.reader import open_audit
from csl_dist.config import AuditConfig, FlagConfig, RunConfig
from csl_dist.data.annotations import Annotations
from csl_dist.features.source import timelines
from csl_dist.flag.calibrate import threshold_calibration
from csl_dist.flag.calibration import Calibration
from csl_dist.flag.stage import settings_of
from csl_dist.score.store import ScoreStore
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.types import Split, Video

FLAG = FlagConfig(rule="validation", scorer="transformer", score="csl")


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    make_run(tmp_path, FLAG)
    return replace(config_of(tmp_path, FLAG), audit=AuditConfig(swapped_copies=10))


@pytest.fixture
def inputs(config: RunConfig) -> Inputs:
    return open_inputs(config)


def calibrated(inputs: Inputs, *, level: float) -> Calibration:
    """With scores of the copies: 0, and a level where steps are swapped."""
    store, config = ScoreStore(inputs.run.paths.scores), inputs.run.config
    versions = {s: dict(made) for s, made in open_audit(config.root).record.scores.items()}
    for copy in inputs.labels.swapped_copies:
        score = np.zeros(NUM_FRAMES)
        for span in copy.spans:
            score[span.start : span.stop] = level
        for scorer in config.scorers:
            versions[scorer][copy.wrong.video] = f"made {level}"
            store.write(copy.wrong, scorer, f"made {level}", {"csl": score}, np.ones(3))
    return threshold_calibration(inputs, versions, settings_of(config))


def labels_of(inputs: Inputs, videos: tuple[Video, ...]) -> Annotations:
    """The labels of a run whose list of videos is another."""
    dataset = replace(inputs.run.dataset, videos=videos)
    base = inputs.features.base
    return Annotations(dataset, inputs.run.config, lambda ids: timelines(base, ids))


def without_validation(inputs: Inputs) -> tuple[Video, ...]:
    return tuple(v for v in inputs.run.dataset.videos if v.split is not Split.VAL)


def test_copies_are_of_validation_videos_and_show_swapped_frames(inputs: Inputs) -> None:
    [copy] = inputs.labels.swapped_copies
    assert (copy.wrong.video, copy.wrong.original) == ("v1~swapped", "v1")
    order_T = inputs.labels.derived(Split.VAL)["v1~swapped"].order_T
    assert sorted(order_T) == list(range(NUM_FRAMES))
    assert np.array_equal(copy.wrong.labels_T, copy.clean.labels_T[order_T])
    assert np.array_equal(copy.wrong.source_times_T, copy.clean.times_T[order_T])
    [span] = copy.spans
    moved = np.flatnonzero(order_T != np.arange(NUM_FRAMES))
    assert (moved[0], moved[-1] + 1) == (span.start, span.stop)


def test_video_whose_copy_would_have_the_id_of_another_is_not_copied(inputs: Inputs) -> None:
    first, *others = without_validation(inputs)
    labels = labels_of(inputs, (first, replace(first, id="v2~swapped"), *others))
    assert [copy.wrong.video for copy in labels.swapped_copies] == ["v3~swapped"]


def test_without_validation_videos_copies_are_of_audited_ones(inputs: Inputs) -> None:
    labels = labels_of(inputs, without_validation(inputs))
    copies = [copy.wrong.video for copy in labels.swapped_copies]
    assert copies == ["v2~swapped", "v3~swapped"]


@pytest.mark.parametrize(("level", "share"), [(9.0, 1.0), (0.0, 0.0)])
def test_swaps_count_as_found_where_their_scores_are_high(
    inputs: Inputs, level: float, share: float
) -> None:
    found = calibrated(inputs, level=level)
    assert found.swaps is not None
    assert (found.swaps.planted, found.swaps.flagged) == (1, share)
    assert f"of 1 pairs of steps swapped there, {share:.0%} are flagged (0% of" in found.sentence()


def test_calibration_follows_what_copies_score(inputs: Inputs) -> None:
    assert calibrated(inputs, level=9.0) != calibrated(inputs, level=0.0)
