"""Sample: the few frames of training videos that an encoder is adapted to.

Which frames of a video are in it follows from the video's own times, never from other videos.
"""

from dataclasses import dataclass

import numpy as np

from csl_dist.config import AdaptConfig
from csl_dist.data.media.timeline import sampled
from csl_dist.types import UNLABELLED, Annotation, DerivedFrames, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """So many frames a second of some videos, and no more than `max_frames` of each."""

    fps: float | None
    max_frames: int
    videos: frozenset[str]

    @classmethod
    def of(cls, config: AdaptConfig, videos: frozenset[str]) -> "Sample":
        return cls(fps=config.fps, max_frames=config.max_frames, videos=videos)

    def frames(self, video: str, times_T: FloatArray) -> IntArray:
        """Indices (S,) of the video's frames that are in the sample, ascending."""
        if video not in self.videos:
            return np.empty(0, dtype=int)
        _, index_S = sampled(times_T, self.fps)
        if len(index_S) > self.max_frames:
            chosen = np.linspace(0, len(index_S) - 1, self.max_frames).round().astype(int)
            index_S = index_S[chosen]
        return index_S

    def annotation(self, whole: Annotation, derived: DerivedFrames | None) -> Annotation:
        """The labels of the sample's frames.

        In a derived video each frame takes its label along to where it is in the original.
        """
        labels_T = whole.labels_T
        if derived is not None:
            labels_T = np.full(len(labels_T), UNLABELLED)
            labels_T[derived.order_T] = whole.labels_T
        index_S = self.frames(whole.video, whole.times_T)
        return Annotation(
            video=whole.video, labels_T=labels_T[index_S], times_T=whole.times_T[index_S]
        )
