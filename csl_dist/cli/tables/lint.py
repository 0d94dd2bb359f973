"""Lint's findings in a terminal, from 80 columns on."""

from collections.abc import Iterator, Sequence
from math import floor

from rich import box
from rich.markup import escape
from rich.table import Table

from csl_dist.lint.findings import TITLES, Finding, Kind, TimeUnit, grouped, length_text, place_text
from csl_dist.lint.run import LintResult
from csl_dist.words import counted

AGREEMENT = (
    *("videos", "time with the\nsame label", "starts apart,\nmedian", "90 % of\nstarts within"),
    "steps that\none lacks",
)

FEW_VIDEOS = 5
PERCENT_NOTE = (
    "Percentages say how likely it is that the labels are wrong there, measured on errors planted "
    "in these labels, if 1 in 100 segments is wrong."
)


def kind_tables(result: LintResult, *, top: int, width: int) -> Iterator[Table]:
    """One table a kind, worst findings first; `width` is the terminal's, in letters."""
    for kind, findings in grouped(result.findings).items():
        yield _kind_table(kind, findings, top, result.unit, width)


def _kind_table(
    kind: Kind, findings: Sequence[Finding], top: int, unit: TimeUnit, width: int
) -> Table:
    shown = findings[:top] if top else findings
    table = Table(
        title=f"{TITLES[kind]} ({len(findings):,})",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_header=False,
        padding=(0, 1, 0, 0),
    )
    named = any(finding.video is not None for finding in shown)
    sure = any(finding.probability is not None for finding in shown)
    if named:
        table.add_column(max_width=width * 2 // 5, overflow="fold")
    if sure:
        table.add_column(width=4, justify="right")
    table.add_column(overflow="fold")
    for finding in shown:
        cells = [escape(_place(finding, unit))] if named else []
        cells += [_percent(finding.probability)] if sure else []
        table.add_row(*cells, escape(finding.sentence))
    if len(shown) < len(findings):
        table.caption = f"and {len(findings) - len(shown):,} more; --top 0 prints all"
        table.caption_justify = "left"
    return table


def _place(finding: Finding, unit: TimeUnit) -> str:
    """The video, who labelled it, and where in it, a line each."""
    lines = [finding.video or "whole dataset"]
    if finding.annotator is not None:
        lines.append(f"annotator {finding.annotator}")
    place = place_text(finding, unit)
    return "\n".join([*lines, place] if place else lines)


def _percent(probability: float | None) -> str:
    return "" if probability is None else f"{probability:.0%}"


def notes(result: LintResult) -> Iterator[str]:
    """What the reader of the tables should know."""
    yield from result.notes
    if any(finding.probability is not None for finding in result.findings):
        yield PERCENT_NOTE


def agreement_table(result: LintResult) -> Table:
    """How far annotators of the same videos agree."""
    table = Table(
        title="Annotators of the same videos",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("annotators", overflow="fold")
    for heading in AGREEMENT:
        table.add_column(heading, justify="right")
    for pair in result.agreement.pairs:
        table.add_row(
            escape(f"{pair.first} and {pair.second}"),
            str(pair.num_videos),
            f"{pair.agreed:.1%}",
            _length(pair.start_median_seconds, result.unit),
            _length(pair.start_90_seconds, result.unit),
            str(pair.unmatched_steps),
        )
    return table


def _length(seconds: float | None, unit: TimeUnit) -> str:
    return "-" if seconds is None else length_text(seconds, unit)


def closing_line(result: LintResult) -> str:
    """How much was looked at, and how many findings of each kind there are."""
    amount = counted(result.num_videos, "video")
    if result.num_files != result.num_videos:
        amount += f" in {counted(result.num_files, 'label file')}"
    if result.hours:
        minutes = f"{result.hours * 60:.0f} minutes"
        amount += f", {minutes if result.hours < 1 else f'{result.hours:.1f} hours'}"
    if not result.findings:
        few = "; so few can hardly be compared with each other" * (result.num_videos < FEW_VIDEOS)
        return f"{amount}: nothing stands out{few}"
    kinds = ", ".join(
        f"{TITLES[kind].lower()} {len(found):,}" for kind, found in grouped(result.findings).items()
    )
    return f"{amount}, {counted(len(result.findings), 'finding')}: {kinds}"


def nearly_line(result: LintResult) -> str | None:
    """How many findings lie just below the level, and which level tells them."""
    probabilities = [f.probability for f in result.nearly if f.probability is not None]
    if not probabilities:
        return None
    level = max(floor(100 * min(probabilities)) / 100, 0.001)
    verb, them = ("lies", "it") if len(probabilities) == 1 else ("lie", "them")
    number = counted(len(probabilities), "more finding")
    return f"{number} {verb} just below the level: --level {level:g} shows {them}"
