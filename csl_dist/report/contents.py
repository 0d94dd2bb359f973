"""The contents of the report: numbers and spans of an audit, no pictures yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.audit.reader import Audit
from csl_dist.measures import PAPERS_SCORE
from csl_dist.report.shrink import ShrunkLosses, highest_in_columns, shrunk_losses
from csl_dist.training.record import current_folder, metrics_of
from csl_dist.types import FloatArray, IntArray, Span, Split

MAX_DETAILED = 40
"""Videos with all details, worst first; all others are in the index only."""
MAX_LISTED = 1000
"""Videos in the index, worst first; `csl query` lists all."""
MAX_FLAGS = 2000
"""Flags in the ranking; `csl query` lists all."""
MAX_AVERAGED = 200
"""About so many videos of a split, evenly chosen, are averaged in the loss over checkpoints."""
MAX_TRAJECTORIES = 3
"""Flagged frames of a video whose trajectories are drawn, next to that of a usual frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoDetails:
    """All details of one video; `W` are columns of the pictures."""

    id: str
    num_frames: int
    flags: dict[Span, str]
    """The reason of each flag, worst first."""
    known: dict[Span, str] | None
    """Known errors; None if the run has no known errors at all."""
    threshold: float | None
    """None where the rule has none."""
    score_W: FloatArray
    csl_W: FloatArray
    predicted_T: IntArray
    """What models predict, frame by frame."""
    times_T: FloatArray
    losses: ShrunkLosses
    epochs: list[int]
    trajectories: dict[str, FloatArray]
    """Losses (E,) of chosen frames, by a short description."""


def detailed_videos(audit: Audit, table: pd.DataFrame, most: int) -> list[str]:
    """The worst videos that have a score: exchanged ones first, then those with flags."""
    scored = table[table.worst.notna()]
    exchanged = [video for pair in audit.exchanges() for video in pair]
    first = scored.assign(exchanged=scored.video.isin(exchanged), flagged=scored["flags"] > 0)
    return (
        first.sort_values(["exchanged", "flagged", "worst"], ascending=False)
        .video.head(most)
        .tolist()
    )


def listed_videos(table: pd.DataFrame) -> pd.DataFrame:
    """Those in the index, worst first; of thousands, a page that opens at once has the worst."""
    return table.sort_values(["worst", "video"], ascending=[False, True]).head(MAX_LISTED)


def video_details(audit: Audit, video: str, flags: pd.DataFrame) -> VideoDetails:
    """The details of one video; its trajectory is read in blocks."""
    annotation = audit.annotation(video)
    own = flags[flags.video == video]
    spans = {
        Span(int(f.start), int(f.stop)): f"{f.label}, suggested {f.suggested}; {f.why}"  # type: ignore[arg-type]
        for f in own.itertuples()
    }
    score_T = audit.deciding_score(video)
    return VideoDetails(
        id=video,
        num_frames=annotation.num_frames,
        flags=spans,
        known=_known(audit, video),
        threshold=audit.record.thresholds.get(video),
        score_W=highest_in_columns(score_T),
        csl_W=highest_in_columns(audit.score(video, PAPERS_SCORE)),
        predicted_T=audit.predicted(video),
        times_T=annotation.times_T,
        losses=shrunk_losses(audit, video),
        epochs=audit.log_probabilities(video).epochs,
        trajectories=_trajectories(audit, video, list(spans), score_T),
    )


def _known(audit: Audit, video: str) -> dict[Span, str] | None:
    if not audit.known_errors:
        return None
    own = [error for error in audit.known_errors if error.video == video]
    return {
        error.span: f"{error.kind}, is {error.true_label}" if error.true_label else error.kind
        for error in own
    }


def _trajectories(
    audit: Audit, video: str, spans: list[Span], score_T: FloatArray
) -> dict[str, FloatArray]:
    """The worst frame of each of the first flags, and that of the median score outside of flags."""
    chosen = {}
    for span in spans[:MAX_TRAJECTORIES]:
        worst = span.start + int(np.nanargmax(score_T[span.start : span.stop]))
        chosen[f"frame {worst}, flagged"] = worst
    unflagged_T = score_T.copy()
    for span in spans:
        unflagged_T[span.start : span.stop] = np.nan
    num_unflagged = int((~np.isnan(unflagged_T)).sum())
    if num_unflagged:
        usual = int(np.argsort(unflagged_T, kind="stable")[num_unflagged // 2])
        chosen[f"frame {usual}, usual"] = usual
    return {name: audit.trajectory(video, frames=frame)[:, 0] for name, frame in chosen.items()}


def confusion(flags: pd.DataFrame, classes: Sequence[str]) -> tuple[list[str], list[list[int]]]:
    """Number of flagged frames by annotated (rows) and suggested class (columns), in this order."""
    names = [name for name in classes if name in {*flags.label, *flags.suggested}]
    frames = (flags.stop - flags.start).groupby([flags.label, flags.suggested]).sum()
    return names, [[int(frames.get((row, column), 0)) for column in names] for row in names]


def checkpoint_losses(audit: Audit) -> dict[str, FloatArray]:
    """Mean loss (E,) under each checkpoint, of training videos and of all held-out videos."""
    lines = {}
    measured = metrics_of(current_folder(audit.paths, audit.scorer, 0))
    trained = [line["train_loss"] for line in measured if "train_loss" in line]
    if trained:
        lines["training videos"] = np.array(trained)
    names = {Split.VAL: "validation videos", Split.AUDIT: "audited videos"}
    held_out = audit.held_out_videos()
    for split, name in names.items():
        videos = [video.id for video in held_out if video.split is split]
        averaged = videos[:: max(1, len(videos) // MAX_AVERAGED)]
        curves = [_mean_losses(audit, video) for video in averaged]
        # Folds that are still training have fewer checkpoints, or none.
        curves = [curve for curve in curves if len(curve) == len(curves[0])]
        if curves:
            some = f"{len(curves)} of {len(videos)}" if len(curves) < len(videos) else len(videos)
            lines[f"{some} {name}"] = np.mean(curves, axis=0)
    return lines


def _mean_losses(audit: Audit, video: str) -> FloatArray:
    return shrunk_losses(audit, video, max_columns=1).mean_E


def summary(audit: Audit, table: pd.DataFrame, flags: pd.DataFrame) -> list[tuple[str, str]]:
    """The figures at the top of the page."""
    num_frames = int(table.frames.sum())
    num_flagged = int((flags.stop - flags.start).sum())
    seconds = float((flags.stop_seconds - flags.start_seconds).sum())
    return [
        ("videos audited", f"{len(table):,}"),
        ("frames audited", f"{num_frames:,}"),
        ("flagged spans", f"{len(flags):,}"),
        ("frames to review", f"{num_flagged:,} ({num_flagged / max(1, num_frames):.1%})"),
        ("to look at", _duration(seconds)),
    ]


def _duration(seconds: float) -> str:
    minutes = int(seconds) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{seconds / 60:.1f} min"


def metrics(audit: Audit) -> dict[str, Any] | None:
    """`metrics.json` by scorer, where known errors made one."""
    measured = audit.metrics()
    scorers: dict[str, Any] = measured["scorers"] if measured is not None else {}
    return scorers if any(scorers.values()) else None
