"""Small pictures of flagged spans, if the video can be read."""

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.data.media.display import Pixels
from csl_dist.data.media.pixels import pixel_source
from csl_dist.errors import CslError
from csl_dist.storage.files import exists
from csl_dist.types import IntArray, Media, Span

if TYPE_CHECKING:
    from PIL import Image

WIDTH = 112
PER_SPAN = 3
NO_PICTURES = (CslError, ModuleNotFoundError)
"""A video that can't be decoded, or an install without what decodes."""


def span_pictures(audit: Audit, video: str, spans: Sequence[Span]) -> dict[Span, list[str]]:
    """Data URIs of a few frames of each span, first to last; empty if they can't be decoded."""
    found = audit.videos_by_id[video]
    if found.media is Media.FEATURES or not exists(found.source):
        return {}
    annotation = audit.annotation(video)
    pictures: dict[Span, list[str]] = {}
    try:
        from PIL import Image

        source = pixel_source(found)
        for span in spans:
            frames = np.unique(np.linspace(span.start, span.stop - 1, PER_SPAN).astype(int))
            shown = source.decode(np.sort(annotation.source_times_T[frames]))
            pictures[span] = [
                _data_uri(Image.fromarray(pixels))
                for pixels in shown
                if not isinstance(pixels, CslError)
            ]
    except NO_PICTURES:  # a report without pictures is better than none
        pass
    return pictures


def frame_pictures(audit: Audit, video: str, frames: IntArray) -> list[Pixels]:
    """The pixels of some frames, in their order; empty if not all can be decoded."""
    found = audit.videos_by_id[video]
    if found.media is Media.FEATURES or not exists(found.source):
        return []
    times_T = audit.annotation(video).source_times_T[frames]
    order = np.argsort(times_T, kind="stable")  # a derived video shows its frames in another order
    try:
        source = pixel_source(found)
        shown = list(source.decode(times_T[order]))
    except NO_PICTURES:
        return []
    pixels = [picture for picture in shown if not isinstance(picture, CslError)]
    if len(pixels) < len(frames):
        return []
    return [pixels[place] for place in np.argsort(order, kind="stable")]


def _data_uri(picture: "Image.Image") -> str:
    height = max(1, round(picture.height * WIDTH / picture.width))
    buffer = io.BytesIO()
    picture.resize((WIDTH, height)).save(buffer, format="JPEG", quality=75)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
