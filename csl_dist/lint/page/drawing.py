"""Pictures of a procedure and of a video's steps, as SVG.

What a colour says is also said by a name beside it or a tooltip. Lines and text take their colours
from the page's style sheet, so that they follow light and dark.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from csl_dist.lint.findings import TimeUnit, length_text, time_text
from csl_dist.lint.statistics.procedures import ProcedureSummary, UsualStep

WIDTH = 1000
"""Of every picture, in SVG units."""
ROW = 26
MAX_STEPS = 40
"""Steps in a graph; rarer ones are left out and counted."""
LEAST_SHARE = 0.08
"""Of the transitions out of a step; rarer ones are not drawn."""
NAMES, NODES, BARS, SHARES = 300, 370, 600, 900
"""Where the columns of the graph lie."""

COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#8C8C8C"),
    *("#4B5FC9", "#9C6B00", "#2E8B57", "#A0447C", "#1F9BBF", "#A8481F", "#7C8B1A", "#6E5AA8"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A coloured piece of a ribbon."""

    label: str
    start: float
    stop: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A numbered place under a ribbon."""

    number: int
    start: float
    stop: float
    text: str


def class_colours(procedures: Sequence[ProcedureSummary]) -> dict[str, str]:
    """One colour for each class, wherever it is drawn; classes of a procedure share few.

    A class takes the colour that the fewest classes have with which it shares a procedure.
    """
    places: dict[str, set[int]] = defaultdict(set)
    for number, procedure in enumerate(procedures):
        for step in procedure.steps:
            places[step.label].add(number)
    taken = np.zeros((len(procedures), len(COLOURS)), np.int64)
    colours = {}
    for label, own in places.items():
        number = int(np.argmin(taken[sorted(own)].sum(axis=0)))
        taken[sorted(own), number] += 1
        colours[label] = COLOURS[number]
    return colours


def shown_steps(procedure: ProcedureSummary) -> tuple[UsualStep, ...]:
    """The most common steps, in usual order."""
    common = sorted(procedure.steps, key=lambda s: -s.num_videos)[:MAX_STEPS]
    return tuple(step for step in procedure.steps if step in common)


def procedure_graph(procedure: ProcedureSummary, colours: Mapping[str, str], unit: TimeUnit) -> str:
    """Steps from top to bottom in usual order: transitions as arcs, durations, share of videos."""
    steps = shown_steps(procedure)
    place = {step.label: ROW * (i + 1.9) for i, step in enumerate(steps)}
    height = ROW * (len(steps) + 1.7)
    parts = [
        f'<svg class="graph" viewBox="0 0 {WIDTH} {height + 26:.0f}" role="img" '
        f'aria-label="Steps of {escape(procedure.name or "all videos")} in usual order">',
        _heading(NAMES, "end", "step"),
        _heading(NODES, "middle", "then"),
        _heading(BARS, "start", "duration: median, and 8 in 10"),
        _heading(SHARES, "start", "in videos"),
        *_arcs(procedure, place),
        *_duration_axis(steps, height, unit),
    ]
    scale = _log_scale(steps)
    for step in steps:
        parts += _step_row(
            step, place[step.label], colours[step.label], scale, len(procedure.videos), unit
        )
    return "".join([*parts, "</svg>"])


def _heading(x: float, anchor: str, text: str) -> str:
    return f'<text class="soft" x="{x}" y="16" text-anchor="{anchor}">{text}</text>'


def _step_row(
    step: UsualStep,
    y: float,
    colour: str,
    scale: tuple[float, float],
    num_videos: int,
    unit: TimeUnit,
) -> list[str]:
    low, median, high = (
        _log_x(v, scale) for v in (step.low_seconds, step.median_seconds, step.high_seconds)
    )
    share = step.num_videos / max(num_videos, 1)
    tip = (
        f"{step.label}: median {length_text(step.median_seconds, unit)}, 8 in 10 from "
        f"{length_text(step.low_seconds, unit)} to {length_text(step.high_seconds, unit)}; "
        f"{step.num_videos} of {num_videos} videos"
    )
    return [
        f"<g><title>{escape(tip)}</title>",
        f'<text x="{NAMES}" y="{y + 5:.0f}" text-anchor="end">{escape(_short(step.label))}</text>',
        f'<circle cx="{NODES}" cy="{y:.0f}" r="7" fill="{colour}"/>',
        f'<rect x="{low:.1f}" y="{y - 5:.0f}" width="{max(high - low, 2):.1f}" height="10" rx="3" '
        f'fill="{colour}" opacity="0.45"/>',
        f'<rect x="{median - 1.5:.1f}" y="{y - 8:.0f}" width="3" height="16" fill="{colour}"/>',
        f'<rect class="track" x="{SHARES}" y="{y - 5:.0f}" width="44" height="10" rx="3"/>',
        f'<rect x="{SHARES}" y="{y - 5:.0f}" width="{44 * share:.1f}" height="10" rx="3" '
        f'fill="{colour}"/>',
        f'<text class="soft" x="{SHARES + 52}" y="{y + 5:.0f}">{share:.0%}</text></g>',
    ]


def _short(text: str, letters: int = 38) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


def _arcs(procedure: ProcedureSummary, place: Mapping[str, float]) -> list[str]:
    """Forward transitions bulge to the right, backward ones, dashed, to the left."""
    total: dict[str | None, int] = {}
    for transition in procedure.transitions:
        total[transition.first] = total.get(transition.first, 0) + transition.count
    parts = []
    for transition in reversed(procedure.transitions):
        first, second = transition.first, transition.second
        share = transition.count / total[first]
        if first is None or second is None or first == second or share < LEAST_SHARE:
            continue
        if first not in place or second not in place:
            continue
        start, stop = place[first], place[second]
        distance = abs(stop - start) / ROW
        bulge = 12 + 26 * np.log2(1 + distance) if distance > 1.01 else 0
        side = 1 if stop > start else -1
        if side < 0:
            bulge = min(14 + 9 * np.log2(1 + distance), 52)
        tip = f"{second} after {first}: {transition.count} of {total[first]} times"
        name = "forward" if side > 0 else "backward"
        parts.append(
            f'<path class="{name}" stroke-width="{1 + 5 * share:.1f}" '
            f'd="M{NODES} {start:.0f} C{NODES + side * bulge * 1.33:.0f} {start:.0f} '
            f'{NODES + side * bulge * 1.33:.0f} {stop:.0f} {NODES} {stop:.0f}">'
            f"<title>{escape(tip)}</title></path>"
        )
    return parts


def _log_scale(steps: Sequence[UsualStep]) -> tuple[float, float]:
    low = min((max(s.low_seconds, 0.05) for s in steps), default=1.0)
    high = max((s.high_seconds for s in steps), default=10.0)
    return float(np.log(low / 1.2)), float(np.log(max(high, low * 2) * 1.2))


def _log_x(seconds: float, scale: tuple[float, float]) -> float:
    share = (np.log(max(seconds, 0.05)) - scale[0]) / (scale[1] - scale[0])
    return BARS + (SHARES - BARS - 30) * float(np.clip(share, 0, 1))


def _duration_axis(steps: Sequence[UsualStep], height: float, unit: TimeUnit) -> list[str]:
    scale = _log_scale(steps)
    names = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h"}
    if unit is TimeUnit.ENTRIES:
        names = {mark: f"{mark:,}" for mark in (1, 10, 100, 1000, 10_000, 100_000)}
    parts = []
    for seconds, name in names.items():
        if scale[0] <= np.log(seconds) <= scale[1]:
            x = _log_x(seconds, scale)
            parts.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="26" y2="{height:.0f}"/>'
                f'<text class="soft" x="{x:.1f}" y="{height + 16:.0f}" '
                f'text-anchor="middle">{name}</text>'
            )
    return parts


def usual_bars(procedure: ProcedureSummary) -> list[Bar]:
    """Steps that most videos have, end to end in usual order, each of its median duration."""
    bars: list[Bar] = []
    for step in procedure.steps:
        if step.num_videos * 2 >= len(procedure.videos):
            start = bars[-1].stop if bars else 0.0
            bars.append(Bar(label=step.label, start=start, stop=start + step.median_seconds))
    return bars


def ribbon(bars: Sequence[Bar], colours: Mapping[str, str], seconds: float, unit: TimeUnit) -> str:
    """A bar of coloured segments, each with its class and times as a tooltip."""
    scale = WIDTH / max(seconds, 1e-9)
    parts = [f'<svg class="ribbon" viewBox="0 0 {WIDTH} 26" preserveAspectRatio="none">']
    parts.append(f'<rect class="track" width="{WIDTH}" height="26"/>')
    for bar, (top, height) in zip(bars, _lanes(bars), strict=True):
        tip = f"{bar.label}, {time_text(bar.start, unit)} to {time_text(bar.stop, unit)}"
        width = max((bar.stop - bar.start) * scale, 1)
        parts.append(
            f'<rect class="bar" x="{bar.start * scale:.2f}" width="{width:.2f}" '
            f'y="{top}" height="{height}" '
            f'fill="{colours.get(bar.label, "#777")}"><title>{escape(tip)}</title></rect>'
        )
    return "".join([*parts, "</svg>"])


def _lanes(bars: Sequence[Bar]) -> list[tuple[int, int]]:
    """Top and height of each bar: bars that overlap share the ribbon, one above the other."""
    halves: list[int | None] = [None] * len(bars)
    latest = 0
    for i in range(1, len(bars)):
        if bars[latest].stop > bars[i].start + 1e-3:
            halves[latest] = 0 if halves[latest] is None else halves[latest]
            halves[i] = 13 - (halves[latest] or 0)
        if bars[i].stop >= bars[latest].stop:
            latest = i
    return [(0, 26) if top is None else (top, 13) for top in halves]


def axis_and_marks(marks: Sequence[Mark], seconds: float, unit: TimeUnit) -> str:
    """Numbered brackets above a time axis."""
    scale = WIDTH / max(seconds, 1e-9)
    parts = [f'<svg class="axis" viewBox="0 0 {WIDTH} 46">']
    free = 0.0
    for mark in sorted(marks, key=lambda m: m.start + m.stop):
        start = min(max(mark.start * scale, 2), WIDTH - 8)
        width = min(max((mark.stop - mark.start) * scale, 6), WIDTH - start)
        # Numbers of neighbouring places stand side by side.
        middle = min(max(start + width / 2, 10, free), WIDTH - 10)
        free = middle + 20
        parts.append(
            f'<g class="mark"><title>{escape(mark.text)}</title>'
            f'<rect x="{start:.1f}" y="1" width="{width:.1f}" height="4"/>'
            f'<circle cx="{middle:.1f}" cy="15" r="9"/>'
            f'<text x="{middle:.1f}" y="19" text-anchor="middle">{mark.number}</text></g>'
        )
    for second in axis_ticks(seconds):
        x = second * scale
        anchor = "start" if second == 0 else "middle"
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="26" y2="31"/>'
            f'<text class="soft" x="{x:.1f}" y="44" text-anchor="{anchor}">'
            f"{time_text(second, unit)}</text>"
        )
    return "".join([*parts, "</svg>"])


def axis_ticks(seconds: float) -> list[float]:
    """Round times, some five to ten, none so close to the end that its text is cut off."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)
    step = next((s for s in steps if seconds / s <= 9), 3600 * math.ceil(seconds / 9 / 3600))
    return [float(t) for t in np.arange(0, max(seconds * 0.97, 1e-9), step)]
