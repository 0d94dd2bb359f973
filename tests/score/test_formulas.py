import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.config import ScoreConfig
from csl_dist.flag.edit_rule import read_families
from csl_dist.score.formulas import (
    chosen_rows,
    frame_losses,
    frame_scores,
    late_classes,
    late_probabilities,
    outlying_videos,
    smooth,
    smooth_by_segment,
    trajectory_scores,
    usual_csl,
)
from csl_dist.types import Span, runs_of


class Stored:
    """A trajectory in memory."""

    def __init__(self, logp_ETC: np.ndarray, epochs: list[int] | None = None):
        self.logp_ETC = logp_ETC
        self.epochs = epochs or list(range(1, len(logp_ETC) + 1))
        self.shape = logp_ETC.shape
        self.blocks: list[int] = []

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        self.blocks.append(self.logp_ETC[:, start:stop].shape[1])
        return self.logp_ETC[:, start:stop]


def video_scores(
    logp: np.ndarray, labels: np.ndarray, alpha: np.ndarray, **reduce: object
) -> dict[str, np.ndarray]:
    return trajectory_scores(Stored(logp), labels, alpha, ScoreConfig(**reduce))


def log_probabilities(num_checkpoints: int, num_frames: int, num_classes: int) -> np.ndarray:
    logits = np.random.default_rng(0).normal(size=(num_checkpoints, num_frames, num_classes))
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def test_losses_and_csl_equal_the_papers_equations() -> None:
    logp = log_probabilities(4, 6, 3)
    labels = np.array([0, 2, 1, 1, 0, 2])
    alpha = np.array([0.5, 1.0, 3.0])
    scores = video_scores(logp, labels, alpha)
    for t in range(6):
        losses = []
        for e in range(4):
            loss = 0.0
            for c in range(3):
                loss -= alpha[c] * (labels[t] == c) * logp[e, t, c]
            losses.append(loss)
        assert scores["csl"][t] == pytest.approx(sum(losses) / 4)
        assert scores["final"][t] == pytest.approx(losses[-1])


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
    scores = video_scores(logp, labels, np.ones(2))
    for score in scores.values():
        assert np.array_equal(np.isnan(score), labels == -1)
    smoothed = smooth(scores["csl"], 3)
    assert smoothed[1] == pytest.approx(scores["csl"][:2].mean())
    assert smoothed[4] == pytest.approx(scores["csl"][4:6].mean())


def test_blocks_do_not_change_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    logp = log_probabilities(2, 50, 3)
    labels = np.random.default_rng(1).integers(-1, 3, size=50)
    whole = video_scores(logp, labels, np.ones(3))
    monkeypatch.setattr("csl_dist.score.formulas.BLOCK_VALUES", 2 * 3 * 7)
    stored = Stored(logp)
    scores = trajectory_scores(stored, labels, np.ones(3), ScoreConfig())
    assert max(stored.blocks) == 7
    for name, score in scores.items():
        assert np.allclose(score, whole[name], equal_nan=True), name


def test_one_frame_video() -> None:
    logp = log_probabilities(2, 1, 2)
    scores = video_scores(logp, np.array([1]), np.ones(2))
    assert smooth(scores["csl"], 9)[0] == pytest.approx(-logp[:, 0, 1].mean())


def test_margins_equal_their_definitions_over_all_and_later_checkpoints() -> None:
    logp = log_probabilities(5, 7, 4)
    labels = np.random.default_rng(2).integers(0, 4, size=7)
    scores = frame_scores(logp, labels, np.ones(4))
    for t in range(7):
        margins, areas = [], []
        for e in range(5):
            others = [logp[e, t, c] for c in range(4) if c != labels[t]]
            margins.append(np.exp(max(others)) - np.exp(logp[e, t, labels[t]]))
            areas.append(max(others) - logp[e, t, labels[t]])
        assert scores["margin"][t] == pytest.approx(np.mean(margins))
        assert scores["margin_late"][t] == pytest.approx(np.mean(margins[2:]))
        assert scores["aum"][t] == pytest.approx(np.mean(areas))
        assert scores["aum_late"][t] == pytest.approx(np.mean(areas[2:]))


def test_selected_checkpoints_alone_make_the_scores() -> None:
    logp = log_probabilities(6, 5, 3)
    labels = np.array([0, 1, 2, 0, 1])
    scores = video_scores(logp, labels, np.ones(3), checkpoints="every_2nd")
    losses = frame_losses(logp, labels, np.ones(3))
    assert np.allclose(scores["csl"], losses[[1, 3, 5]].mean(axis=0))
    last = video_scores(logp, labels, np.ones(3), checkpoints="last")
    assert np.allclose(last["csl"], last["final"])


def test_rows_are_those_of_the_epochs_that_a_trajectory_has() -> None:
    assert chosen_rows([3, 5, 9], (9,)) == [2]
    assert chosen_rows([3, 5, 9], "full") == slice(None)


@given(st.lists(st.tuples(st.integers(-1, 2), st.floats(0, 10)), min_size=1, max_size=30))
def test_smoothing_by_segment_sees_the_own_segment_alone(frames: list[tuple[int, float]]) -> None:
    labels = np.array([label for label, _ in frames])
    values = np.array([np.nan if label == -1 else value for label, value in frames])
    got = smooth_by_segment(values, labels, 5)
    for segment in runs_of(labels):
        inside = values[segment.start : segment.stop]
        for t in range(len(inside)):
            local = np.mean(inside[max(0, t - 2) : t + 3])
            expected = (local + np.mean(inside)) / 2
            assert got[segment.start + t] == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_video_with_another_ones_labels_lies_far_off() -> None:
    rng = np.random.default_rng(0)
    csl = {f"v{i}": rng.exponential(0.1 + 0.02 * i, size=300) for i in range(20)}
    csl["v7"][:40] += 5  # a mislabelled span
    csl["v3"] = csl["v3"] + 3  # all labels
    csl["unlabelled"] = np.full(4, np.nan)
    table = outlying_videos({video: usual_csl(csl_T) for video, csl_T in csl.items()})
    assert table.video[table.outlier].tolist() == ["v3"]
    assert "unlabelled" not in set(table.video)


def test_outliers_of_nothing_or_of_equal_videos_are_none() -> None:
    assert len(outlying_videos({})) == 0
    equal = usual_csl(np.ones(3))
    assert not outlying_videos({"a": equal, "b": equal}).outlier.any()


@pytest.mark.parametrize("block_values", [1 << 24, 4 * 3 * 2])
def test_late_probabilities_are_the_mean_over_a_span_and_later_checkpoints(
    block_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csl_dist.score.formulas.BLOCK_VALUES", block_values)
    logp = log_probabilities(4, 20, 3)
    got = late_probabilities(Stored(logp), Span(3, 12), "full")
    assert np.allclose(got, np.exp(logp[2:, 3:12]).mean(axis=(0, 1)))
    last = late_probabilities(Stored(logp), Span(3, 12), "last")
    assert np.allclose(last, np.exp(logp[3, 3:12]).mean(axis=0))


def test_opinion_of_few_checkpoints_rests_on_those_that_flags_rest_on() -> None:
    """Of epochs 10 and 16 both are late, where half of the rows would be the last one alone."""
    logp = log_probabilities(2, 40, 3)
    early = Stored(logp, epochs=[10, 16])
    [flags_rest_on] = read_families("v", ["framewise"], lambda *_: early)
    assert np.allclose(flags_rest_on.mean_TC, logp.mean(axis=0))
    probability = np.exp(logp).mean(axis=0)
    assert np.allclose(late_probabilities(early, Span(0, 40), "full"), probability.mean(axis=0))
    assert late_classes(early, "full", window=1).tolist() == probability.argmax(axis=1).tolist()
    assert (probability.argmax(axis=1) != logp[1].argmax(axis=1)).any(), "not the last one's alone"
