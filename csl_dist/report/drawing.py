"""Pictures for the report: SVG for ribbons and curves, PNG for heatmaps.

Colours are those of Okabe and Ito, and cividis, which colour-blind readers can distinguish. No
information is in the colour only: a row's name, a tooltip or a line's dashes say the same.
"""

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Protocol

import numpy as np
import numpy.typing as npt

from csl_dist.types import UNLABELLED, FloatArray, IntArray, Span, runs_of
from csl_dist.words import clock

WIDTH = 1000
"""Of every picture, in SVG units."""

CLASS_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"),
    *("#004466", "#8C6000", "#005C43", "#7A3F61", "#2B7BAA", "#7F3800", "#8F8720", "#555555"),
)
UNLABELLED_COLOUR = "transparent"
FLAG_COLOUR, TRUTH_COLOUR = "#D55E00", "#0072B2"
LINE_STYLES = (("#D55E00", ""), ("#0072B2", "6 3"), ("#009E73", "2 3"), ("currentColor", "8 3 2 3"))
"""Colour and dashes of the lines of a chart."""
TICK_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200)
MAX_TICKS = 10
LAST_TICK = 97.0
"""Percent of the width; a later one would stand out of the page."""
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
    return _svg(parts, height, "labels of the video")


def time_axis(times_T: FloatArray, height: int = 16) -> str:
    """Minutes and seconds below the other rows."""
    num_frames = len(times_T)
    length = float(times_T[-1]) or 1.0
    step = next((s for s in TICK_SECONDS if length / s <= MAX_TICKS), TICK_SECONDS[-1])
    ticks = np.arange(0.0, length, step)
    places = np.searchsorted(times_T, ticks) / num_frames * 100
    parts = [
        f'<i style="left:{place:.2f}%">{clock(t)}</i>'
        for t, place in zip(ticks, places, strict=True)
        if place <= LAST_TICK
    ]
    return f'<div class="axis" role="presentation" style="height:{height}px">{"".join(parts)}</div>'


def span_bar(
    spans: Mapping[Span, str], num_frames: int, colour: str, *, name: str, height: int = 10
) -> str:
    """A thin bar with the given spans filled, each with its words as a tooltip."""
    scale = WIDTH / num_frames
    parts = [f'<rect width="{WIDTH}" height="{height}" fill="currentColor" opacity="0.12"/>']
    parts += [
        f'<rect x="{s.start * scale:.2f}" width="{len(s) * scale:.2f}" height="{height}" '
        f'fill="{colour}"><title>frames {s.start} to {s.stop - 1}: {escape(words)}</title></rect>'
        for s, words in spans.items()
    ]
    return _svg(parts, height, f"{name}: {len(spans)} spans")


def score_curve(
    score_W: FloatArray,
    spans: Sequence[Span],
    *,
    num_frames: int,
    tau: float | None = None,
    height: int = 90,
) -> str:
    """A score over time, its threshold as a dashed line, flagged spans shaded."""
    marks = [] if tau is None else [tau]
    low = min([0.0, *score_W[~np.isnan(score_W)].tolist(), *marks])
    high = max([0.0, *score_W[~np.isnan(score_W)].tolist(), *marks])
    room = (high - low) * 1.05 or 1.0

    def y(value: float) -> float:
        return height * (1 - (value - low) / room)

    scale = WIDTH / num_frames
    parts = [
        f'<rect x="{s.start * scale:.2f}" width="{len(s) * scale:.2f}" height="{height}" '
        f'fill="{FLAG_COLOUR}" opacity="0.18"/>'
        for s in spans
    ]
    if low < 0:
        parts.append(
            f'<line x1="0" x2="{WIDTH}" y1="{y(0):.1f}" y2="{y(0):.1f}" stroke="currentColor" '
            'opacity="0.3"/>'
        )
    step = WIDTH / len(score_W)
    for run in runs_of(np.isnan(score_W)):
        if not np.isnan(score_W[run.start]):
            points = " ".join(
                f"{(i + 0.5) * step:.1f},{y(score_W[i]):.1f}" for i in range(run.start, run.stop)
            )
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.6" '
                'vector-effect="non-scaling-stroke"/>'
            )
    words = f"score from {low:.2f} to {high:.2f}"
    if tau is not None:
        words += f", threshold {tau:.2f}"
        parts.append(
            f'<line x1="0" x2="{WIDTH}" y1="{y(tau):.1f}" y2="{y(tau):.1f}" '
            f'stroke="{FLAG_COLOUR}" stroke-width="1.4" stroke-dasharray="6 4" '
            f'vector-effect="non-scaling-stroke"><title>threshold {tau:.2f}</title></line>'
        )
    return _svg(parts, height, words)


def palette() -> list[tuple[int, int, int]]:
    """256 different colours from low to high; the page's script turns them back into losses."""
    at = np.linspace(0, 1, 256)
    stops = np.linspace(0, 1, len(_CIVIDIS))
    channels = [np.interp(at, stops, [c[i] for c in _CIVIDIS]).astype(int) for i in range(3)]
    return [(int(r), int(g), int(b)) for r, g, b in zip(*channels, strict=True)]


def highest_shown(losses_EW: FloatArray) -> float:
    """The loss of the last colour; all losses above it look the same."""
    known = losses_EW[~np.isnan(losses_EW)]
    return (float(np.percentile(known, 99)) if len(known) else 0.0) or 1.0


def loss_heatmap(losses_EW: FloatArray) -> str:
    """A data URI of the losses, checkpoints downwards from the first, frames to the right."""
    share_EW = np.clip(np.nan_to_num(losses_EW) / highest_shown(losses_EW), 0, 1)
    picture = _png(np.round(share_EW * 255).astype(np.uint8), palette())
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def _png(pixels_EW: npt.NDArray[np.uint8], colours: Sequence[tuple[int, int, int]]) -> bytes:
    """A PNG of numbers of colours."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    height, width = pixels_EW.shape
    rows = np.pad(pixels_EW, ((0, 0), (1, 0)))  # each begins with its filter: 0, none
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            chunk(b"PLTE", bytes(channel for colour in colours for channel in colour)),
            chunk(b"IDAT", zlib.compress(rows.tobytes())),
            chunk(b"IEND", b""),
        )
    )


def line_chart(lines: Mapping[str, FloatArray], *, name: str, height: int = 180) -> str:
    """Lines over checkpoints, all on one scale from 0, distinguished by colour and dashes."""
    width, left, bottom = 480, 44, 26
    top = max((float(np.nanmax(values)) for values in lines.values()), default=1.0) * 1.05 or 1.0
    most = max((len(values) for values in lines.values()), default=1)

    def x(i: int) -> float:
        return left + (width - left - 6) * (i / max(1, most - 1))

    def y(value: float) -> float:
        return (height - bottom) * (1 - value / top) + 4

    parts = []
    for tick in np.linspace(0, top / 1.05, 4):
        at = f"{y(tick):.1f}"
        parts.append(
            f'<line x1="{left}" x2="{width}" y1="{at}" y2="{at}" stroke="currentColor" '
            'opacity="0.15"/>'
            f'<text x="{left - 6}" y="{at}" dy="4" text-anchor="end">{tick:.2g}</text>'
        )
    for place in sorted({0, (most - 1) // 2, most - 1}):
        parts.append(
            f'<text x="{x(place):.1f}" y="{height - 6}" text-anchor="middle">{place + 1}</text>'
        )
    for number, (label, values) in enumerate(lines.items()):
        colour, dashes = LINE_STYLES[number % len(LINE_STYLES)]
        points = " ".join(f"{x(i):.1f},{y(float(v)):.1f}" for i, v in enumerate(values))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"><title>{escape(label)}</title></polyline>'
        )
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" data-top="{top:.6g}" role="img" '
        f'aria-label="{escape(name)}">{"".join(parts)}</svg>'
    )


class ShareFound(Protocol):
    """Findings of similar probability: what was predicted of them, and what people found."""

    @property
    def predicted(self) -> float: ...
    @property
    def found(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def decided(self) -> int: ...


def reliability_chart(points: Sequence[ShareFound], side: int = 190) -> str:
    """Predicted shares (to the right) against found ones (upwards), with their intervals."""
    edge, inner = 26, side - 32

    def x(share: float) -> float:
        return edge + share * inner

    def y(share: float) -> float:
        return side - edge - share * inner

    parts = [
        f'<rect x="{x(0)}" y="{y(1)}" width="{inner}" height="{inner}" fill="none" '
        'stroke="currentColor" opacity="0.25"/>',
        f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" stroke="currentColor" '
        'opacity="0.5" stroke-dasharray="4 3"/>',
        f'<text x="{x(0.5)}" y="{side - 1}" text-anchor="middle">predicted, %</text>',
        f'<text x="{x(1) + 4}" y="{y(1) + 8}">found, %</text>',
    ]
    for share in (0.0, 0.5, 1.0):
        parts.append(
            f'<text x="{x(share)}" y="{side - 12}" text-anchor="middle">{100 * share:.0f}</text>'
            f'<text x="{edge - 4}" y="{y(share) + 3}" text-anchor="end">{100 * share:.0f}</text>'
        )
    for point in points:
        words = f"{point.predicted:.0%} predicted, {point.found:.0%} found in {point.decided}"
        at = f"{x(point.predicted):.1f}"
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{y(point.low):.1f}" y2="{y(point.high):.1f}" '
            f'stroke="{TRUTH_COLOUR}" stroke-width="1.5"/>'
            f'<circle cx="{at}" cy="{y(point.found):.1f}" r="{2 + point.decided**0.5 / 2:.1f}" '
            f'fill="{TRUTH_COLOUR}"><title>{words}</title></circle>'
        )
    return (
        f'<svg class="reliability" viewBox="0 0 {side + 46} {side}" role="img" '
        f'aria-label="Predicted against found">{"".join(parts)}</svg>'
    )


def line_key(number: int) -> str:
    """A short piece of a chart's line, for its legend."""
    colour, dashes = LINE_STYLES[number % len(LINE_STYLES)]
    return (
        '<svg class="key" viewBox="0 0 28 8" aria-hidden="true"><line x1="0" x2="28" y1="4" y2="4" '
        f'stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dashes}"/></svg>'
    )


def _svg(parts: list[str], height: int, name: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(name)}" style="height:{height}px">{"".join(parts)}</svg>'
    )
