import numpy as np
import pytest

from csl_dist.score.ensemble import ensemble_scores, scale_of


def test_low_framewise_scores_do_not_excuse_and_high_ones_add() -> None:
    temporal = {"a": np.array([0.0, 0.0, 4.0, 4.0]), "b": np.array([0.0, np.nan])}
    framewise = {"a": np.array([0.0, 9.0, 0.0, 0.0]), "b": np.array([0.0, np.nan])}
    got = ensemble_scores(temporal, framewise)
    assert got["a"][2] == got["a"][3]
    assert got["a"][1] > got["a"][0] == got["b"][0]
    assert np.isnan(got["b"][1])


def test_ensemble_equals_its_definition() -> None:
    rng = np.random.default_rng(0)
    temporal = {v: rng.normal(3, 2, size=50) for v in "ab"}
    framewise = {v: rng.normal(-1, 5, size=50) for v in "ab"}
    got = ensemble_scores(temporal, framewise)
    t, f = (np.concatenate(list(scores.values())) for scores in (temporal, framewise))
    for i in (0, 13, 49):
        z_t = (temporal["b"][i] - t.mean()) / t.std()
        z_f = (framewise["b"][i] - f.mean()) / f.std()
        assert got["b"][i] == pytest.approx(z_t + max(z_f - 1.5, 0))


def test_scale_of_constant_or_missing_scores_divides_by_one() -> None:
    assert scale_of([np.ones(3)]).deviation == 1.0
    assert scale_of([np.full(3, np.nan)]).deviation == 1.0
