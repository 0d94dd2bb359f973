"""How badly models know somebody's videos, and what findings there lose by it."""

import numpy as np
import pytest

from csl_dist.flag.edits.surprise import (
    USUAL,
    WEIGHT,
    Surprise,
    moves_by_surprise,
    surprise_of,
)

PEOPLE = {"a": "Ada", "b": "Ada", "c": "Ada", "d": "Ben"}


def test_surprise_is_what_four_fifths_of_the_labelled_frames_stay_below() -> None:
    logp_TC = np.log(np.random.default_rng(0).dirichlet(np.ones(3), size=200))
    labels_T = np.random.default_rng(1).integers(-1, 3, size=200)
    nats = sorted(-logp_TC[t, labels_T[t]] for t in range(200) if labels_T[t] >= 0)
    found = surprise_of(logp_TC, labels_T)
    assert found.num_frames == len(nats)
    assert nats[int(0.79 * len(nats))] < found.nats < nats[int(0.81 * len(nats))]
    assert surprise_of(logp_TC, np.full(200, -1)).num_frames == 0


def test_findings_are_moved_by_the_other_videos_of_the_person() -> None:
    surprises = {
        "a": Surprise(5.0, 100),
        "b": Surprise(1.0, 100),
        "c": Surprise(2.0, 300),
        "d": Surprise(4.0, 50),
    }
    moves = moves_by_surprise(surprises, PEOPLE)
    assert moves["a"] == pytest.approx(WEIGHT * (USUAL - (1 * 100 + 2 * 300) / 400))
    assert moves["b"] == pytest.approx(WEIGHT * (USUAL - (5 * 100 + 2 * 300) / 400))
    everyone_else = (5 * 100 + 1 * 100 + 2 * 300) / 500
    assert moves["d"] == pytest.approx(WEIGHT * (USUAL - everyone_else)), "Ben has no other video"
    own_errors = moves_by_surprise({**surprises, "a": Surprise(0.1, 100)}, PEOPLE)
    assert own_errors["a"] == moves["a"], "a video's own labels have no part in it"
    assert own_errors["b"] > moves["b"], "who is known better is doubted more surely"


def test_video_without_company_is_moved_by_nothing() -> None:
    assert moves_by_surprise({"a": Surprise(4.0, 10)}, PEOPLE) == {"a": 0.0}
    unlabelled = {"a": Surprise(4.0, 10), "b": Surprise(0.0, 0)}
    assert moves_by_surprise(unlabelled, PEOPLE)["a"] == 0.0
