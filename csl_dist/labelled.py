"""LabelledTrajectory: what stored log-probabilities say of labels, any labels."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from csl_dist.records import FloatArray, IntArray
from csl_dist.reduce import cumulative_loss, frame_blocks, own_and_rival, weighted_losses
from csl_dist.trajectories import Trajectory

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
        num_checkpoints, _, num_classes = self.trajectory.shape
        for block in frame_blocks(len(self.labels_T), num_checkpoints * num_classes):
            read = self.trajectory.read(self.start + block.start, self.start + block.stop)
            yield compute(read[self.rows], self.labels_T[block])
