"""All segments of the audited videos, flagged or not, as rows like those of flags.

They are what a reviewer browses without a flag, and what a certificate draws from.
"""

import numpy as np
import pandas as pd

from csl_dist.audit.reader import Audit
from csl_dist.errors import NotReadyError
from csl_dist.flag.rules import with_all_columns
from csl_dist.types import UNLABELLED, Span, Split, frame_seconds, runs_of

SEGMENT = "segment"
"""Stands in the column `kind`."""


def segment_table(audit: Audit) -> pd.DataFrame:
    """Labelled segments, the most suspicious first.

    `score` is the mean of the score that decides; `flagged` the probability of a flag on the
    segment, NaN without a flag and 1 for a flag that has no probability.
    """
    flags = audit.flags()
    by_video = {video: own for video, own in flags.groupby("video")}
    rows = []
    for video in audit.held_out_videos():
        if video.split is not Split.AUDIT:
            continue
        try:
            annotation = audit.annotation(video.id)
            score_T = audit.deciding_score(video.id)
        except NotReadyError:
            continue
        own = by_video.get(video.id, flags.iloc[:0])
        times_T, rate = annotation.times_T, frame_seconds(annotation.times_T)
        for span in runs_of(annotation.labels_T):
            label = int(annotation.labels_T[span.start])
            if label == UNLABELLED:
                continue
            name = audit.classes[label]
            rows.append(
                {
                    "video": video.id,
                    "start": span.start,
                    "stop": span.stop,
                    "start_seconds": float(times_T[span.start]),
                    "stop_seconds": float(times_T[span.stop - 1]) + rate,
                    "score": float(np.nanmean(score_T[span.start : span.stop])),
                    "kind": SEGMENT,
                    "label": name,
                    "suggested": name,
                    "suggested_probability": np.nan,
                    "why": "",
                    "flagged": _flagged(own, span),
                }
            )
    table = pd.DataFrame(rows)
    flagged = table.flagged
    order = np.lexsort((-table.score, -flagged.fillna(-1.0)))
    table = table.iloc[order].reset_index(drop=True)
    ranked = with_all_columns(table.assign(rank=np.arange(1, len(table) + 1)))
    return ranked.assign(flagged=flagged.iloc[order].to_numpy(dtype=float))


def _flagged(flags: pd.DataFrame, span: Span) -> float:
    touching = flags[(flags.start < span.stop) & (flags.stop > span.start)]
    if touching.empty:
        return float("nan")
    return float(touching.probability.astype(float).fillna(1.0).max())
