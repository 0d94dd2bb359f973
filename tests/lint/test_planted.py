"""Planted errors and the probabilities measured on them."""

import numpy as np
import pytest

from csl_dist.lint.statistics.planted import (
    drop_step,
    insert_step,
    move_step,
    own_above,
    probabilities,
    rename_step,
    swap_neighbours,
)

CLASSES = np.arange(6)
PLANTS = (swap_neighbours, move_step, drop_step, rename_step, insert_step)


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_error_changes_the_steps_and_leaves_no_equal_neighbours(plant) -> None:
    rng = np.random.default_rng(0)
    codes = np.array([0, 1, 2, 3, 4, 1])
    for _ in range(50):
        planted, places = plant(codes, CLASSES, rng)
        assert planted.tolist() != codes.tolist()
        assert (planted[1:] != planted[:-1]).all()
        assert ((places >= 0) & (places < len(planted))).all()


def test_swap_joins_what_then_touches() -> None:
    codes, places = swap_neighbours(np.array([0, 1, 0]), CLASSES, np.random.default_rng(0))
    assert sorted(codes.tolist()) == [0, 1]
    assert places.tolist() == [0, 1]


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_error_without_room_is_none(plant) -> None:
    assert plant(np.array([0]), np.array([0]), np.random.default_rng(0)) is None


def test_probability_rises_with_the_score_and_stays_in_range() -> None:
    rng = np.random.default_rng(0)
    given = np.sort(rng.normal(0, 1, 3000))
    measured = probabilities(rng.normal(4, 1, 300), given, np.arange(3000))
    assert (np.diff(measured) >= 0).all()
    assert measured[0] < 0.05
    assert 0.8 < measured[-1] <= 1


def test_probability_where_clean_places_score_as_high_is_the_error_rate() -> None:
    scores = np.arange(1000.0)
    measured = probabilities(scores, scores, np.arange(1000))
    assert measured[500] == pytest.approx(0.01, abs=1e-3)


def test_probability_of_a_place_does_not_count_its_own_unit() -> None:
    scores = np.array([5.0, 5.0, *np.zeros(98)])
    alone = probabilities(np.full(100, 4.0), scores, np.repeat(np.arange(50), 2))
    shared = probabilities(np.full(100, 4.0), scores, np.arange(100))
    assert alone[0] > shared[0]


def test_own_above_counts_ties_and_itself() -> None:
    scores, units = np.array([1.0, 3.0, 3.0, 2.0]), np.array([0, 0, 0, 1])
    assert own_above(scores, units).tolist() == [3, 2, 2, 1]
