import numpy as np
import pytest

from csl_dist.evaluate.baselines import confident_learning, random_score, trajectory_baselines


def test_cartography_and_forgetting_equal_their_definitions() -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.ones(3), size=(6, 10))
    labels = rng.integers(0, 3, size=10)
    labels[0] = -1
    probability[:, 1, labels[1]] = 1e-9  # never classified as labelled
    found = trajectory_baselines(np.log(probability), labels)
    for t in range(1, 10):
        own = [probability[e, t, labels[t]] for e in range(6)]
        right = [int(probability[e, t].argmax()) == labels[t] for e in range(6)]
        forgotten = sum(right[e] and not right[e + 1] for e in range(5)) if any(right) else 6
        assert found["cartography_confidence"][t] == pytest.approx(1 - np.mean(own))
        assert found["cartography_variability"][t] == pytest.approx(np.std(own))
        assert found["forgetting"][t] == forgotten
    assert found["forgetting"][1] == 6
    assert all(np.isnan(score[0]) for score in found.values())


def test_confident_learning_ranks_planted_noise_first_and_skips_unlabelled_frames() -> None:
    rng = np.random.default_rng(1)
    labels = {"a": rng.integers(0, 3, size=60), "b": rng.integers(0, 3, size=60)}
    # A fourth class that the model knows and nobody is labelled as.
    logp = {v: np.log(np.full((60, 4), 0.05) + 0.8 * np.eye(4)[y]) for v, y in labels.items()}
    labels["a"][:5] = (labels["a"][:5] + 1) % 3
    labels["b"][0] = -1
    found = confident_learning(logp, labels)
    assert found["a"][:5].min() > max(found["a"][5:].max(), np.nanmax(found["b"]))
    assert np.flatnonzero(np.isnan(found["b"])).tolist() == [0]


def test_confident_learning_of_a_single_class_tells_nothing() -> None:
    found = confident_learning({"a": np.log(np.full((3, 2), 0.5))}, {"a": np.array([1, 1, -1])})
    assert found["a"][:2].tolist() == [0, 0]
    assert np.isnan(found["a"][2])


def test_random_score_is_nan_without_a_label() -> None:
    score = random_score(np.array([0, -1, 1]), np.random.default_rng(0))
    assert np.isnan(score).tolist() == [False, True, False]
