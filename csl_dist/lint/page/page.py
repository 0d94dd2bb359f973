"""Lint's findings as one self-contained HTML page.

No script and nothing from the network: it can be mailed, and kept beside the labels.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from csl_dist.lint.findings import (
    TITLES,
    Finding,
    Kind,
    TimeUnit,
    grouped,
    length_text,
    place_text,
)
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
from csl_dist.lint.run import LintResult
from csl_dist.lint.statistics.procedures import ProcedureSummary
from csl_dist.words import counted

FileKey = tuple[str, str, str]
"""Video, file and annotator, which together name a label file's part about one video."""
MAX_VIDEOS = 60
"""Odd videos that are drawn, worst first."""
MAX_ROWS = 200
"""Findings of a kind in the table."""
MAX_GRAPHS = 30
"""Procedures that are drawn, those with most videos first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OddVideo:
    """A label file with findings, drawn against the usual order."""

    file: FileKey
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
    environment.filters["duration"] = lambda s: "" if s is None else length_text(s, result.unit)
    environment.filters["place"] = lambda finding: place_text(finding, result.unit)
    environment.filters["file"] = file_key
    environment.filters["video_name"] = video_name
    colours = class_colours(result.procedures)
    videos = odd_videos(result, colours)
    graphs = sorted(result.procedures, key=lambda p: -len(p.videos))[:MAX_GRAPHS]
    return environment.get_template("page.html").render(
        title=title,
        result=result,
        facts=_facts(result),
        titles=TITLES,
        measured=any(finding.probability is not None for finding in result.findings),
        by_kind={k: f[:MAX_ROWS] for k, f in grouped(result.findings).items()},
        counts={k: len(f) for k, f in grouped(result.findings).items()},
        videos=videos,
        num_odd=len(_by_video(result)),
        anchors={video.file: video.anchor for video in videos},
        graphs=[_graph(p, colours, result.unit) for p in graphs],
    )


def code(sentence: str) -> Markup:
    """Names in backticks set as code, everything else escaped."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(sentence)))


def _facts(result: LintResult) -> list[tuple[str, str]]:
    num = len(result.findings)
    facts = [(f"{result.num_videos:,}", "videos" if result.num_videos != 1 else "video")]
    if result.num_files != result.num_videos:
        facts.append((f"{result.num_files:,}", "label files"))
    facts.append((f"{len(result.segments):,}", "segments"))
    if result.hours:
        facts.append((f"{result.hours:.1f}", "hours"))
    facts.append((f"{num:,}", "findings" if num != 1 else "finding"))
    return [*facts, (f"{num / result.hours:.2f}", "findings an hour")] if result.hours else facts


def file_key(finding: Finding) -> FileKey:
    return finding.video or "", finding.file or "", finding.annotator or ""


def video_name(finding: Finding) -> str:
    """The video, and who labelled it where that is told."""
    name = finding.video or ""
    return f"{name}, annotator {finding.annotator}" if finding.annotator else name


def _by_video(result: LintResult) -> dict[FileKey, list[Finding]]:
    """Findings of each label file, files with the worst first."""
    by_video: dict[FileKey, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        if finding.video is not None:
            by_video[file_key(finding)].append(finding)
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


def odd_videos(result: LintResult, colours: Mapping[str, str]) -> list[OddVideo]:
    """Videos with findings, each drawn against its procedure."""
    procedures = {p.name: p for p in result.procedures}
    numbers = {
        (a.video, a.file, a.annotator or ""): number
        for number, a in enumerate(result.segments.files)
    }
    odd = []
    for file, findings in list(_by_video(result).items())[:MAX_VIDEOS]:
        if file in numbers:
            usual = procedures[result.segments.files[numbers[file]].procedure]
            odd.append(_odd_video(result, numbers[file], findings, usual, colours))
    return odd


def _odd_video(
    result: LintResult,
    number: int,
    findings: list[Finding],
    usual: ProcedureSummary,
    colours: Mapping[str, str],
) -> OddVideo:
    findings = sorted(findings, key=lambda f: f.start_seconds or 0.0)
    bars = _bars(result, number)
    seconds = max((bar.stop for bar in bars), default=1.0)
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
        file=file_key(findings[0]),
        name=video_name(findings[0]),
        anchor=f"video-{number}",
        procedure=usual.name or "",
        findings=[
            (i, place_text(f, result.unit), code(f.sentence)) for i, f in enumerate(findings, 1)
        ],
        usual=Markup(ribbon(reference, colours, length, result.unit)),
        here=Markup(ribbon(bars, colours, seconds, result.unit)),
        axis=Markup(axis_and_marks(marks, seconds, result.unit)),
        legend=[(s.label, colours[s.label]) for s in usual.steps if s.label in used],
    )


def _bars(result: LintResult, number: int) -> list[Bar]:
    """The segments of a label file."""
    table = result.segments
    rows = np.flatnonzero(table.file_N == number).tolist()
    starts, stops = table.values["start_s"], table.values["stop_s"]
    return [
        Bar(label=table.labels[int(table.label_N[n])], start=float(starts[n]), stop=float(stops[n]))
        for n in rows
    ]


def _graph(procedure: ProcedureSummary, colours: Mapping[str, str], unit: TimeUnit) -> Graph:
    hidden = len(procedure.steps) - len(shown_steps(procedure))
    rest = f"; {hidden} rarer classes are not drawn" if hidden else ""
    num = len(procedure.videos)
    hours = f", {procedure.hours:.1f} hours" if unit is TimeUnit.SECONDS else ""
    return Graph(
        title=procedure.name or "All videos",
        about=f"{counted(num, 'video')}{hours}{rest}",
        picture=Markup(procedure_graph(procedure, colours, unit)),
    )
