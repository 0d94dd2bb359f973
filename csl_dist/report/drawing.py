"""Pictures for the report: SVG for ribbons and curves, PNG for heatmaps.

Colours are those of Okabe and Ito, and cividis, which colour-blind readers can tell apart.
"""

import base64
import io
from html import escape

import numpy as np
from PIL import Image

from csl_dist.records import UNLABELLED, FloatArray, IntArray, Span, runs_of

WIDTH = 1000
"""Of every picture, in SVG units."""

CLASS_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"),
    *("#004466", "#8C6000", "#005C43", "#7A3F61", "#2B7BAA", "#7F3800", "#8F8720", "#555555"),
)
UNLABELLED_COLOUR = "#ffffff"
_CIVIDIS = ((0, 34, 78), (65, 77, 107), (124, 123, 120), (188, 175, 111), (254, 232, 56))


def class_colour(label: int) -> str:
    if label == UNLABELLED:
        return UNLABELLED_COLOUR
    return CLASS_COLOURS[label % len(CLASS_COLOURS)]


def label_ribbon(labels_T: IntArray, classes: tuple[str, ...], height: int = 18) -> str:
    """A bar of coloured segments, each with its class as a tooltip."""
    scale = WIDTH / len(labels_T)
    parts = []
    for span in runs_of(labels_T):
        label = int(labels_T[span.start])
        name = "unlabelled" if label == UNLABELLED else classes[label]
        parts.append(
            f'<rect x="{span.start * scale:.2f}" width="{len(span) * scale:.2f}" '
            f'height="{height}" fill="{class_colour(label)}">'
            f"<title>{escape(name)}: frames {span.start} to {span.stop - 1}</title></rect>"
        )
    return _svg(parts, height)


def span_bar(spans: list[Span], num_frames: int, colour: str, height: int = 8) -> str:
    """A thin bar with the given spans filled."""
    scale = WIDTH / num_frames
    parts = [f'<rect width="{WIDTH}" height="{height}" fill="#e8e8e8"/>']
    parts += [
        f'<rect x="{s.start * scale:.2f}" width="{len(s) * scale:.2f}" height="{height}" '
        f'fill="{colour}"><title>frames {s.start} to {s.stop - 1}</title></rect>'
        for s in spans
    ]
    return _svg(parts, height)


def score_curve(score_T: FloatArray, tau: float, spans: list[Span], height: int = 120) -> str:
    """The score over time, its threshold as a dashed line, flagged spans shaded."""
    top = max(float(np.nanmax(score_T)), tau) * 1.05 or 1.0
    scale = WIDTH / len(score_T)

    def y(value: float) -> float:
        return height * (1 - value / top)

    parts = [
        f'<rect x="{s.start * scale:.2f}" width="{len(s) * scale:.2f}" height="{height}" '
        'fill="#D55E00" opacity="0.18"/>'
        for s in spans
    ]
    for run in runs_of(np.isnan(score_T)):
        if not np.isnan(score_T[run.start]):
            points = " ".join(
                f"{(t + 0.5) * scale:.1f},{y(score_T[t]):.1f}" for t in range(run.start, run.stop)
            )
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="#222" stroke-width="1.6"/>'
            )
    parts.append(
        f'<line x1="0" x2="{WIDTH}" y1="{y(tau):.1f}" y2="{y(tau):.1f}" stroke="#D55E00" '
        f'stroke-dasharray="6 4"><title>threshold {tau:.2f}</title></line>'
    )
    return _svg(parts, height)


def loss_heatmap(losses_ET: FloatArray, max_columns: int = 1000) -> str:
    """A data URI of the losses, checkpoints downwards from the first, frames to the right."""
    step = max(1, -(-losses_ET.shape[1] // max_columns))
    reduced_ET = losses_ET[:, ::step]
    high = float(np.nanpercentile(reduced_ET, 99)) or 1.0
    share_ET = np.clip(np.nan_to_num(reduced_ET) / high, 0, 1)
    stops = np.linspace(0, 1, len(_CIVIDIS))
    channels = [np.interp(share_ET, stops, [c[i] for c in _CIVIDIS]) for i in range(3)]
    picture = Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8))
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _svg(parts: list[str], height: int) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" '
        f'style="height:{height}px">{"".join(parts)}</svg>'
    )
