"""What the rule makes of planted errors, from scores in storage."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_run import NUM_FRAMES, config_of, make_run

from csl_dist.config import AuditConfig, FlagConfig
from csl_dist.flag.rehearse import swapped_copies, write_calibration
from csl_dist.run import Run, open_run
from csl_dist.types import Split

FLAG = FlagConfig(scorer="transformer", score="csl")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    make_run(tmp_path, FLAG)
    return open_run(replace(config_of(tmp_path, FLAG), audit=AuditConfig(swapped_copies=10)))


def write_copies(run: Run, *, level: float) -> None:
    """Scores of the copies: 0, and a level where steps are swapped."""
    held_out = {split: run.split_annotations(split) for split in (Split.AUDIT, Split.VAL)}
    for copy in swapped_copies(run, held_out):
        score = np.zeros(NUM_FRAMES)
        for span in copy.spans:
            score[span.start : span.stop] = level
        for scorer in run.config.scorers:
            unit = run.scores.unit(copy.wrong.video, scorer, f"made {level}")
            run.scores.retire([unit])
            run.scores.write(copy.wrong.video, scorer, unit, {"csl": score})


def test_copies_are_of_validation_videos_and_show_swapped_frames(run: Run) -> None:
    held_out = {split: run.split_annotations(split) for split in (Split.AUDIT, Split.VAL)}
    [copy] = swapped_copies(run, held_out)
    assert (copy.wrong.video, copy.wrong.footage) == ("v1~swapped", "v1")
    order_T = copy.wrong.order_T
    assert order_T is not None
    assert sorted(order_T) == list(range(NUM_FRAMES))
    assert np.array_equal(copy.wrong.labels_T, copy.clean.labels_T[order_T])
    [span] = copy.spans
    moved = np.flatnonzero(order_T != np.arange(NUM_FRAMES))
    assert (moved[0], moved[-1] + 1) == (span.start, span.stop)


def test_video_whose_copy_would_have_the_id_of_another_is_not_copied(run: Run) -> None:
    first = run.dataset.videos[0]
    videos = (*run.dataset.videos, replace(first, id="v2~swapped"))
    run = replace(run, dataset=replace(run.dataset, videos=videos))
    held_out = {Split.AUDIT: run.split_annotations(Split.AUDIT), Split.VAL: []}
    assert [copy.wrong.video for copy in swapped_copies(run, held_out)] == ["v3~swapped"]


def test_without_validation_videos_copies_are_of_audited_ones(run: Run) -> None:
    held_out = {Split.AUDIT: run.split_annotations(Split.AUDIT), Split.VAL: []}
    copies = swapped_copies(run, held_out)
    assert [copy.wrong.video for copy in copies] == ["v2~swapped", "v3~swapped"]


@pytest.mark.parametrize(("level", "share"), [(9.0, 1.0), (0.0, 0.0)])
def test_swaps_count_as_found_where_their_scores_are_high(
    run: Run, level: float, share: float
) -> None:
    write_copies(run, level=level)
    found = write_calibration(run)
    assert found.swaps is not None
    assert (found.swaps.planted, found.swaps.flagged) == (1, share)
    assert f"of 1 pairs of steps swapped there, {share:.0%} are flagged (0% of" in found.sentence()


def test_calibration_is_made_again_when_copies_score_otherwise(run: Run) -> None:
    write_copies(run, level=9.0)
    before = write_calibration(run)
    write_copies(run, level=0.0)
    assert write_calibration(run) != before
