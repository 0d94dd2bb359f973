"""DecodedActivations: what the frozen stages put out, computed from the video whenever it is read.

Activations of all frames of a dataset would take hundreds of gigabytes; nobody needs them twice.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import torch

from csl_dist.config import FeaturesConfig
from csl_dist.data.media.display import Pixels
from csl_dist.data.media.pixels import PixelSource, frames_of_span
from csl_dist.features.encoders import Encoder, encoder_spec, fit_frame, output_width
from csl_dist.features.families.family import EncoderSpec
from csl_dist.features.source import ALL_FRAMES, Features, FeatureSource, Frames
from csl_dist.types import FloatArray, Span, Timeline


def fitted_frames(
    pixels: PixelSource,
    times_T: FloatArray,
    span: Span,
    *,
    config: FeaturesConfig,
    spec: EncoderSpec,
) -> tuple[Pixels, list[float]]:
    """Frames (T, size, size, 3) of a span of times, and the seconds that another stands in for."""
    fitted = np.empty((len(span), config.size, config.size, 3), dtype=np.uint8)
    repeated = []
    frames = frames_of_span(pixels, times_T, span, on_bad_frame=config.on_bad_frame)
    for place, (frame, stands_in) in enumerate(frames):
        fitted[place] = fit_frame(frame, config.size, spec)
        if stands_in:
            repeated.append(float(times_T[span.start + place]))
    return fitted, repeated


class DecodedActivations:
    """A source of features that decodes frames and runs the frozen stages over them."""

    def __init__(
        self,
        known: FeatureSource,
        pixels: Mapping[str, PixelSource],
        config: FeaturesConfig,
    ):
        """`known` has the videos' times; its encoder is the one that is run."""
        self.encoder = known.encoder
        self._known = known
        self._pixels = pixels
        self._config = config

    def __repr__(self) -> str:
        return f"DecodedActivations({len(self._pixels)} videos)"

    def missing(self) -> list[str]:
        return self._known.missing()

    def timeline(self, video: str) -> Timeline:
        return self._known.timeline(video)

    def width(self) -> int:
        return output_width(self._config)

    def fingerprint(self, video: str) -> str:
        return self._known.fingerprint(video)

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        wanted_T = self.timeline(video).times_T[frames]
        # A file is read forwards, whatever the order in which frames are asked for.
        times_U, place_T = np.unique(wanted_T, return_inverse=True)
        fitted, _ = fitted_frames(
            self._pixels[video],
            times_U,
            Span(0, len(times_U)),
            config=self._config,
            spec=encoder_spec(self._config),
        )
        return self._encoder.encode(fitted)[place_T]

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self._config, "cuda" if torch.cuda.is_available() else "cpu")
