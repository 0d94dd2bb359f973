"""Lint's findings as one self-contained HTML page.

No script and nothing from the network: it can be mailed, and kept beside the labels.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from csl_dist.lint.findings import TITLES, Finding, Kind, grouped, place_text, seconds_text
from csl_dist.lint.page.drawing import (
    Bar,
    Mark,
    axis_and_marks,
    class_colours,
    procedure_graph,
    ribbon,
    shown_steps,
    usual_bars,
)
from csl_dist.lint.procedures import ProcedureSummary
from csl_dist.lint.run import LintResult

MAX_VIDEOS = 60
"""Odd videos that are drawn, worst first."""
MAX_ROWS = 200
"""Findings of a kind in the table."""
MAX_GRAPHS = 30
"""Procedures that are drawn, those with most videos first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OddVideo:
    """A video with findings, drawn against the usual order."""

    name: str
    anchor: str
    procedure: str
    findings: list[tuple[int, str, Markup]]
    """Number, place and sentence of each."""
    usual: Markup
    here: Markup
    axis: Markup
    legend: list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A procedure, drawn."""

    title: str
    about: str
    picture: Markup


def lint_page(result: LintResult, *, title: str) -> str:
    """The whole page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    environment.filters["code"] = code
    environment.filters["seconds"] = lambda s: "" if s is None else seconds_text(s)
    environment.globals["place_text"] = place_text
    videos = odd_videos(result)
    graphs = sorted(result.procedures, key=lambda p: -len(p.videos))[:MAX_GRAPHS]
    return environment.get_template("page.html").render(
        title=title,
        result=result,
        facts=_facts(result),
        titles=TITLES,
        by_kind={k: f[:MAX_ROWS] for k, f in grouped(result.findings).items()},
        counts={k: len(f) for k, f in grouped(result.findings).items()},
        videos=videos,
        num_odd=len(_by_video(result)),
        anchors={video.name: video.anchor for video in videos},
        graphs=[_graph(p) for p in graphs],
    )


def code(sentence: str) -> Markup:
    """Names in backticks set as code, everything else escaped."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(sentence)))


def _facts(result: LintResult) -> list[tuple[str, str]]:
    num = len(result.findings)
    facts = [
        (f"{result.num_videos:,}", "label files"),
        (f"{len(result.segments):,}", "segments"),
        (f"{result.hours:.1f}", "hours"),
        (f"{num:,}", "findings" if num != 1 else "finding"),
    ]
    return [*facts, (f"{num / result.hours:.2f}", "findings an hour")] if result.hours else facts


def _by_video(result: LintResult) -> dict[str, list[Finding]]:
    """Findings of each video, videos with the worst first."""
    by_video: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        if finding.video is not None:
            by_video[finding.video].append(finding)
    order = list(Kind)
    return dict(
        sorted(
            by_video.items(),
            key=lambda item: (
                -max(f.probability or 0.0 for f in item[1]),
                min(order.index(f.kind) for f in item[1]),
                item[0],
            ),
        )
    )


def odd_videos(result: LintResult) -> list[OddVideo]:
    """Videos with findings, each drawn against its procedure."""
    procedure_of = {video: p for p in result.procedures for video in p.videos}
    return [
        _odd_video(result, number, video, findings, procedure_of[video])
        for number, (video, findings) in enumerate(list(_by_video(result).items())[:MAX_VIDEOS])
    ]


def _odd_video(
    result: LintResult, number: int, video: str, findings: list[Finding], usual: ProcedureSummary
) -> OddVideo:
    findings = sorted(findings, key=lambda f: f.start_seconds or 0.0)
    bars = _bars(result, video)
    seconds = max((bar.stop for bar in bars), default=1.0)
    colours = class_colours(usual)
    reference = usual_bars(usual)
    marks = [
        Mark(
            number=i,
            start=f.start_seconds,
            stop=f.start_seconds if f.stop_seconds is None else f.stop_seconds,
            text=f.sentence,
        )
        for i, f in enumerate(findings, 1)
        if f.start_seconds is not None
    ]
    used = {bar.label for bar in [*bars, *reference]}
    length = reference[-1].stop if reference else 1.0
    return OddVideo(
        name=video,
        anchor=f"video-{number}",
        procedure=usual.name or "",
        findings=[(i, place_text(f), code(f.sentence)) for i, f in enumerate(findings, 1)],
        usual=Markup(ribbon(reference, colours, length)),
        here=Markup(ribbon(bars, colours, seconds)),
        axis=Markup(axis_and_marks(marks, seconds)),
        legend=[(label, colour) for label, colour in colours.items() if label in used],
    )


def _bars(result: LintResult, video: str) -> list[Bar]:
    """A video's segments; of several files of one video the first."""
    table = result.segments
    rows = np.flatnonzero(table.video_N == table.names.index(video)).tolist()
    starts, stops = table.values["start_s"], table.values["stop_s"]
    return [
        Bar(label=table.labels[int(table.label_N[n])], start=float(starts[n]), stop=float(stops[n]))
        for n in rows
    ]


def _graph(procedure: ProcedureSummary) -> Graph:
    hidden = len(procedure.steps) - len(shown_steps(procedure))
    rest = f"; {hidden} rarer classes are not drawn" if hidden else ""
    num = len(procedure.videos)
    return Graph(
        title=procedure.name or "All videos",
        about=f"{num} label file{'s' * (num != 1)}, {procedure.hours:.1f} hours{rest}",
        picture=Markup(procedure_graph(procedure, class_colours(procedure))),
    )
