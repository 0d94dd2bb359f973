"""Bytes that a run stores, by how its stores lay out what they hold.

Checkpoints and trajectories are not compressed, so that their sizes are known. What compression
leaves of features follows from how many of them are zeros: it is tried on some frames of a video
where that can be done, and else is what ImageNet's weights have on surgical video.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numcodecs
import numpy as np
import torch

from csl_dist.config import FeaturesConfig
from csl_dist.data.media.pixels import PixelSource, whole_frames
from csl_dist.data.media.timeline import sampled
from csl_dist.features.encoders import Encoder, fit_frame
from csl_dist.training.models import ModelSpec, build_scorer

if TYPE_CHECKING:
    from csl_dist.data.media.display import Pixels

PLAIN_TYPE_BYTES = {"float16": 2, "float32": 4}
TIMES_PER_FRAME, SCORES_PER_FRAME = 2.0, 32.0
"""Bytes of a frame's time; and of all its scores under one scorer, with its label and times."""
FEATURES_PER_VIDEO, SCORES_PER_VIDEO = 1.85e3, 2.3e3
"""Bytes of what says what arrays are, and of records; for each video of a store."""
TRAJECTORY_PER_VIDEO, TRAJECTORY_PER_ROW = 0.8e3, 27.0
"""The same of trajectories; a record names each of its checkpoints."""
CHECKPOINT_FACTS = 1.5e3
"""Bytes of what stands beside an epoch's weights. All of these are of `benchmarks/storage.py`."""
TRIED_FRAMES, TRIED_FPS = 16, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What compression leaves, 0 to 1."""

    features: float = 0.88
    activations: float = 0.51
    """Of what frozen stages put out; half of them are zeros."""


USUAL_SHARES = Shares()
"""ImageNet's weights on 224 pixels of surgical video."""


def tried_shares(config: FeaturesConfig, video: PixelSource) -> Shares:
    """The shares of the first frames of a video; the usual ones where weights are not at hand.

    An adapted encoder is not there yet; features of the one that it starts from stand in.
    """
    if config.weights == "imagenet" or len(config.sets()) > 1:
        return USUAL_SHARES
    times_T = sampled(video.times(), TRIED_FPS)[0].times_T[:TRIED_FRAMES]
    frames = [fit_frame(frame, config.size) for frame in whole_frames(video.decode(times_T))]
    pixels_THWC = np.stack(frames)
    features = _share(replace(config, adapt=None), pixels_THWC)
    if config.adapt is None:
        return Shares(features=features)
    return Shares(features=features, activations=_share(config, pixels_THWC))


def _share(config: FeaturesConfig, pixels_THWC: "Pixels") -> float:
    stored = Encoder(replace(config, compile=False)).encode(pixels_THWC).astype(config.dtype)
    return len(numcodecs.Zstd().encode(stored)) / stored.nbytes


def store_bytes(
    lengths: Sequence[int], *, num_rows: int, width: int, dtype: str, share: float
) -> float:
    """A feature store of videos of these lengths, with features of `num_rows` frames of them."""
    return (
        num_rows * width * PLAIN_TYPE_BYTES[dtype] * share
        + sum(lengths) * TIMES_PER_FRAME
        + len(lengths) * FEATURES_PER_VIDEO
    )


def checkpoint_bytes(spec: ModelSpec, num_epochs: int) -> float:
    """Weights of the epochs that stay, and the optimiser's two moments of the newest."""
    with torch.device("meta"):
        scorer = build_scorer(spec)
    weights = sum(tensor.numel() for tensor in scorer.state_dict().values())
    trained = sum(parameter.numel() for parameter in scorer.parameters())
    return 4.0 * (weights * num_epochs + 2 * trained) + num_epochs * CHECKPOINT_FACTS


def audit_bytes(lengths: Sequence[int], *, num_classes: int, num_epochs: int, dtype: str) -> float:
    """Trajectories and scores of one scorer."""
    per_frame = num_classes * num_epochs * PLAIN_TYPE_BYTES[dtype] + SCORES_PER_FRAME
    per_video = TRAJECTORY_PER_VIDEO + num_epochs * TRAJECTORY_PER_ROW + SCORES_PER_VIDEO
    return sum(lengths) * per_frame + len(lengths) * per_video
