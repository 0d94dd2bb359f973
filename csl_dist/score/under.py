"""LabelledTrajectory: what stored log-probabilities say of labels, any that a caller gives."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from csl_dist.data.text import UNLABELLED_NAMES
from csl_dist.errors import DataError, nearest
from csl_dist.predict.published import Trajectory
from csl_dist.score.formulas import (
    cumulative_loss,
    own_and_rival,
    trajectory_blocks,
    weighted_losses,
)
from csl_dist.types import UNLABELLED, FloatArray, IntArray, Span

Labels = Sequence[str] | Sequence[int] | npt.NDArray[np.generic]
"""Labels (T,) of a video's frames: class names, or ids with -1 for frames without a label."""

Values = TypeVar("Values", FloatArray, IntArray)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTrajectory:
    """Some frames of a video, under labels and at some checkpoints; read when asked for."""

    trajectory: Trajectory
    labels_T: IntArray
    """Labels of these frames, -1 where there is none."""
    weights_C: FloatArray
    """Weights of the loss."""
    start: int
    """The first frame."""
    rows: slice | list[int]
    """Rows of the trajectory, which are its checkpoints."""

    @property
    def epochs(self) -> list[int]:
        return [int(epoch) for epoch in np.array(self.trajectory.epochs)[self.rows]]

    def loss(self) -> FloatArray:
        """Losses (E, T); NaN without a label."""
        logp_ET = self.trajectory.of_classes(np.maximum(self.labels_T, 0), self.start)
        return weighted_losses(logp_ET[self.rows], self.labels_T, self.weights_C)

    def csl(self) -> FloatArray:
        """CSL (T,), the mean loss over these checkpoints."""
        return cumulative_loss(self.loss())

    def margin(self) -> FloatArray:
        """The likeliest other class's probability minus the label's (E, T), -1 to 1."""

        def margin_ET(logp_ETC: FloatArray, labels_T: IntArray) -> FloatArray:
            own_ET, rival_ET = own_and_rival(logp_ETC, labels_T)
            return np.exp(rival_ET) - np.exp(own_ET)

        return np.concatenate([*self._each_block(margin_ET)], axis=1)

    def prediction(self) -> IntArray:
        """The likeliest class (E, T), whatever the labels."""
        return np.concatenate([*self._each_block(lambda logp, _: logp.argmax(axis=2))], axis=1)

    def _each_block(self, compute: Callable[[FloatArray, IntArray], Values]) -> Iterator[Values]:
        """What `compute` makes of log-probabilities (E, T, C) and labels, block by block."""
        span = Span(self.start, self.start + len(self.labels_T))
        for frames, logp_ETC in trajectory_blocks(self.trajectory, span=span):
            own = slice(frames.start - self.start, frames.stop - self.start)
            yield compute(logp_ETC[self.rows], self.labels_T[own])


def class_ids(labels: Labels, classes: Sequence[str], video: str, num_frames: int) -> IntArray:
    """Class ids (T,) of labels that a caller gave; DataError where they do not fit the video."""
    given = np.asarray(labels)
    if given.shape != (num_frames,):
        raise DataError(
            f"video {video!r} has {num_frames:,} frames, but labels of shape "
            f"{given.shape} were given; give one a frame"
        )
    if not np.issubdtype(given.dtype, np.integer):
        ids = dict.fromkeys(UNLABELLED_NAMES, UNLABELLED)
        ids |= {name: i for i, name in enumerate(classes)}
        unknown = sorted({str(name) for name in given} - set(ids))
        if unknown:
            raise DataError(f"unknown class {unknown[0]!r}; {nearest(unknown[0], classes)}")
        return np.array([ids[str(name)] for name in given], dtype=np.int64)
    if given.min() < UNLABELLED or given.max() >= len(classes):
        raise DataError(
            f"labels of video {video!r} run from {given.min()} to {given.max()}, but ids run "
            f"from 0 to {len(classes) - 1}, and -1 is no label"
        )
    return given
