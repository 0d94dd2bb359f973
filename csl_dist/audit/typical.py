"""What a step usually looks like: frames of other videos whose label the models doubt least."""

from typing import NamedTuple

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.errors import NotReadyError
from csl_dist.types import Media

MAX_LOOKED_AT = 24
"""Videos among which the frames are chosen."""
MARGIN_SHARE = 0.25
"""Of a segment at each end, where a step only begins or is about to end."""


class TypicalFrame(NamedTuple):
    video: str
    frame: int
    csl: float


def typical_frames(audit: Audit, label: int, *, without: str, most: int) -> list[TypicalFrame]:
    """Frames of a class with the lowest CSL, each of another video, surest first."""
    found = []
    looked_at = 0
    for video in audit.held_out_videos():
        if video.id == without or video.media is Media.FEATURES:
            continue
        if looked_at == MAX_LOOKED_AT:
            break
        looked_at += 1
        try:
            labels_T, csl_T = audit.annotation(video.id).labels_T, audit.csl(video.id)
        except NotReadyError:
            continue
        frames = np.flatnonzero(labels_T == label)
        margin = int(MARGIN_SHARE * len(frames))
        inner = frames[margin : len(frames) - margin]
        if len(inner):
            best = int(inner[csl_T[inner].argmin()])
            found.append(TypicalFrame(video.id, best, float(csl_T[best])))
    return sorted(found, key=lambda frame: frame.csl)[:most]
