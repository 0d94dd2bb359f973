"""Planted errors and the probabilities measured on them."""

from itertools import pairwise

import numpy as np
import pytest

from csl_dist.lint.statistics.planted import (
    PlantedScores,
    drop_step,
    insert_step,
    move_step,
    probabilities,
    rename_step,
    rising_blocks,
    swap_neighbours,
)
from csl_dist.types import FloatArray

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


def drawn(scores: FloatArray, places_per_error: int = 1) -> PlantedScores:
    return PlantedScores(scores=scores, num_errors=len(scores) // places_per_error)


def test_probability_rises_with_the_score_and_stays_in_range() -> None:
    rng = np.random.default_rng(0)
    given = np.sort(np.concatenate([rng.normal(0, 1, 2970), rng.normal(6, 1, 30)]))
    measured = probabilities(drawn(rng.normal(6, 1, 300)), given)
    assert (np.diff(measured) >= 0).all()
    assert measured[0] < 0.05
    assert 0.8 < measured[-1] <= 1


@pytest.mark.parametrize("places_per_error", [1, 2])
def test_probability_is_the_share_of_wrong_places_of_such_a_score(places_per_error: int) -> None:
    rng = np.random.default_rng(1)
    wrong = np.repeat(rng.random(20_000 // places_per_error) < 0.01, places_per_error)
    given = rng.normal(np.where(wrong, 15.0, 0.0), 5)
    rate = 0.01 / places_per_error
    planted = drawn(rng.normal(15.0, 5, 400), places_per_error)
    measured = probabilities(planted, given, error_rate=rate)
    for low, high in ((0.1, 0.4), (0.4, 0.7), (0.7, 1.01)):
        own = (measured >= low) & (measured < high)
        # Rather too low than too high.
        assert -0.1 < wrong[own].mean() - measured[own].mean() < 0.25


def test_probability_without_any_error_stays_low() -> None:
    rng = np.random.default_rng(2)
    measured = probabilities(drawn(rng.normal(30, 5, 400)), rng.normal(0, 5, 20_000))
    assert measured.max() < 0.5


def test_probability_where_clean_places_score_as_high_is_the_error_rate() -> None:
    scores = np.arange(1000.0)
    measured = probabilities(drawn(scores), scores)
    assert measured[500] == pytest.approx(0.01, abs=1e-3)


def test_blocks_are_those_of_isotonic_regression() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 40, 400):
        values = rng.normal(size=size).round(1) + np.linspace(0, 1, size)
        weights = rng.uniform(0.5, 3, size=size)
        expected = optimize.isotonic_regression(values, weights=weights)
        blocks = rising_blocks(values, weights)
        means = [np.average(values[a:b], weights=weights[a:b]) for a, b in pairwise(blocks)]
        np.testing.assert_allclose(np.repeat(means, np.diff(blocks)), expected.x)
