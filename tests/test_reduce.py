import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.reduce import BLOCK_FRAMES, frame_losses, smooth, video_scores


def log_probabilities(num_checkpoints: int, num_frames: int, num_classes: int) -> np.ndarray:
    logits = np.random.default_rng(0).normal(size=(num_checkpoints, num_frames, num_classes))
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def test_losses_and_csl_equal_the_papers_equations() -> None:
    logp = log_probabilities(4, 6, 3)
    labels = np.array([0, 2, 1, 1, 0, 2])
    alpha = np.array([0.5, 1.0, 3.0])
    scores = video_scores(lambda a, b: logp[:, a:b], labels, alpha, window=1)
    for t in range(6):
        losses = []
        for e in range(4):
            loss = 0.0
            for c in range(3):
                loss -= alpha[c] * (labels[t] == c) * logp[e, t, c]
            losses.append(loss)
        assert scores["csl"][t] == pytest.approx(sum(losses) / 4)
        assert scores["final"][t] == pytest.approx(losses[-1])
        assert scores["smoothed"][t] == pytest.approx(scores["csl"][t])


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.integers(1, 11))
def test_smoothing_equals_the_mean_of_neighbours_that_exist(
    values: list[float], window: int
) -> None:
    half = window // 2
    got = smooth(np.array(values), window)
    for t in range(len(values)):
        neighbours = values[max(0, t - half) : t + half + 1]
        assert got[t] == pytest.approx(sum(neighbours) / len(neighbours), abs=1e-9)


def test_unlabelled_frames_score_nan_and_touch_nothing_else() -> None:
    logp = log_probabilities(3, 8, 2)
    labels = np.array([0, 1, -1, -1, 1, 0, 1, -1])
    scores = video_scores(lambda a, b: logp[:, a:b], labels, np.ones(2), window=3)
    for score in scores.values():
        assert np.array_equal(np.isnan(score), labels == -1)
    assert scores["smoothed"][1] == pytest.approx(scores["csl"][:2].mean())
    assert scores["smoothed"][4] == pytest.approx(scores["csl"][4:6].mean())


def test_blocks_do_not_change_scores() -> None:
    num_frames = BLOCK_FRAMES + 5
    logp = log_probabilities(2, num_frames, 2)
    labels = np.random.default_rng(1).integers(0, 2, size=num_frames)
    scores = video_scores(lambda a, b: logp[:, a:b], labels, np.ones(2), window=5)
    assert np.allclose(scores["csl"], frame_losses(logp, labels, np.ones(2)).mean(axis=0))


def test_one_frame_video() -> None:
    logp = log_probabilities(2, 1, 2)
    scores = video_scores(lambda a, b: logp[:, a:b], np.array([1]), np.ones(2), window=9)
    assert scores["smoothed"][0] == pytest.approx(-logp[:, 0, 1].mean())
