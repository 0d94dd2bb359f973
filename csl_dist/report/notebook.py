"""A video in a notebook: its labels, what models predict, and the score over time."""

from dataclasses import dataclass
from html import escape

import pandas as pd

from csl_dist.audit.notebook import shown_flags
from csl_dist.audit.reader import Audit
from csl_dist.report.drawing import class_colour, label_ribbon, score_curve
from csl_dist.types import UNLABELLED, FloatArray, IntArray, Span, runs_of
from csl_dist.words import clock, counted

RULE = "font:12px sans-serif;max-width:1000px"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VideoView:
    """What an audit says of one video; a notebook draws it."""

    video: str
    classes: tuple[str, ...]
    times_T: FloatArray
    labels_T: IntArray
    predicted_T: IntArray
    score_T: FloatArray
    """The score behind the flags; higher is more suspicious."""
    flags: pd.DataFrame

    def __repr__(self) -> str:
        steps = len([s for s in runs_of(self.labels_T) if self.labels_T[s.start] != UNLABELLED])
        return (
            f"VideoView({self.video!r}, {clock(float(self.times_T[-1]))}, "
            f"{counted(steps, 'step')}, {counted(len(self.flags), 'flag')})"
        )

    def _repr_html_(self) -> str:
        num_frames = len(self.labels_T)
        spans = [Span(*pair) for pair in zip(self.flags.start, self.flags.stop, strict=True)]
        rows = {
            "labels": label_ribbon(self.labels_T, self.classes),
            "models say": label_ribbon(self.predicted_T, self.classes),
            "score": score_curve(self.score_T, spans, num_frames=num_frames),
        }
        parts = [
            f'<div style="margin:2px 0"><div>{name}</div>{drawing}</div>'
            for name, drawing in rows.items()
        ]
        used = [c for c in range(len(self.classes)) if c in {*self.labels_T, *self.predicted_T}]
        legend = " ".join(
            f'<span style="white-space:nowrap"><span style="color:{class_colour(label)}">■</span> '
            f"{escape(self.classes[label])}</span>"
            for label in used
        )
        table = (
            shown_flags(self.flags)
            .drop(columns="video")
            .to_html(index=False, border=0, justify="left")
        )
        return (
            f'<div style="{RULE}"><b>{escape(self.video)}</b>, {clock(float(self.times_T[-1]))}'
            f"{''.join(parts)}<div>{legend}</div>{table if len(self.flags) else ''}</div>"
        )


def view(audit: Audit, video: str) -> VideoView:
    """A video of an audit, to look at in a notebook."""
    annotation = audit.annotation(video)
    return VideoView(
        video=video,
        classes=audit.classes,
        times_T=annotation.times_T,
        labels_T=annotation.labels_T,
        predicted_T=audit.predicted(video),
        score_T=audit.deciding_score(video),
        flags=audit.flags(video=video),
    )
