"""Planted errors: where labels differ, and nowhere else."""

import numpy as np
import pytest

from csl_dist.data.mistakes import (
    PlantedKind,
    Planting,
    labels_for_length,
    plant,
    plant_mix,
)
from csl_dist.data.segments import segments_of
from csl_dist.errors import DataError

LABELS = np.repeat([-1, 0, 1, 2, 0, 3, 1, -1], [5, 40, 30, 50, 25, 60, 35, 5])
PLANTING = Planting(
    num_classes=5,
    fps=5.0,
    confusion_CC=np.ones((5, 5)),
    bigram_CC=np.log(np.full((5, 5), 0.2)),
)


@pytest.mark.parametrize("kind", list(PlantedKind))
def test_planted_errors_cover_exactly_the_frames_that_changed(kind):
    planted = plant(LABELS, kind, PLANTING, video="a", seed=0)
    wrong_T = np.zeros(len(LABELS), dtype=bool)
    for error in planted.errors:
        wrong_T[error.start : error.stop] = True
    if kind is PlantedKind.SWAP:
        assert (planted.labels_T == LABELS[planted.order_T]).all()
        assert (wrong_T == (planted.order_T != np.arange(len(LABELS)))).all()
    else:
        assert (wrong_T == (planted.labels_T != LABELS)).all()
        for error in planted.errors:
            assert (LABELS[error.start : error.stop] == error.label).all()
    assert ((planted.labels_T == -1) == (LABELS == -1)).all()


@pytest.mark.parametrize("kind", list(PlantedKind))
def test_planting_again_gives_the_same_and_another_seed_gives_others(kind):
    first = plant(LABELS, kind, PLANTING, video="a", seed=0)
    assert (first.labels_T == plant(LABELS, kind, PLANTING, video="a", seed=0).labels_T).all()
    others = [plant(LABELS, kind, PLANTING, video="a", seed=s).labels_T for s in range(1, 6)]
    assert any((other != first.labels_T).any() for other in others)


def test_shifts_have_a_median_of_a_second_and_a_tenth_above_twenty():
    labels_T = np.repeat(np.arange(40) % 5, 1000)
    planting = Planting(num_classes=5, fps=10.0, boundary_share=1.0)
    seconds = [
        (error.stop - error.start) / 10.0
        for seed in range(20)
        for error in plant(labels_T, PlantedKind.SHIFT, planting, video="v", seed=seed).errors
    ]
    assert 0.8 < np.median(seconds) < 1.3
    assert 0.07 < np.mean(np.array(seconds) > 20) < 0.13


def test_a_moved_boundary_says_where_it_was():
    planted = plant(LABELS, PlantedKind.SHIFT, PLANTING, video="a", seed=3)
    starts = {segment.start for segment in segments_of(LABELS)}
    assert all(error.boundary in starts for error in planted.errors)


def test_a_merged_segment_takes_the_name_of_a_neighbour():
    planted = plant(LABELS, PlantedKind.MERGE, PLANTING, video="a", seed=1)
    assert len(segments_of(planted.labels_T)) < len(segments_of(LABELS))


def test_a_video_of_one_segment_has_no_room_for_a_swap():
    with pytest.raises(DataError, match="no swap can be planted in video 'a'"):
        plant(np.zeros(10, dtype=int), PlantedKind.SWAP, PLANTING, video="a", seed=0)


def test_a_mix_tries_another_kind_where_one_finds_no_room():
    planting = Planting(
        num_classes=5, fps=5.0, kinds={PlantedKind.SWAP: 0.99, PlantedKind.RENAME: 0.01}
    )
    planted = plant_mix(np.zeros(10, dtype=int), planting, video="a", seed=0)
    assert planted is not None
    assert planted.errors[0].kind is PlantedKind.RENAME


def test_labels_of_another_length_are_cut_or_held_to_the_end():
    assert labels_for_length(np.array([1, 2]), 4).tolist() == [1, 2, 2, 2]
    assert labels_for_length(np.array([1, 2, 3]), 2).tolist() == [1, 2]
