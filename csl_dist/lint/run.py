"""Lint: everything that labels alone give away, from sequences to findings."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from csl_dist.lint.agreement import Agreement, agreement_of
from csl_dist.lint.corpus import Corpus, corpus_of
from csl_dist.lint.findings import Finding, grouped
from csl_dist.lint.procedures import ProcedureSummary, procedure_summaries
from csl_dist.lint.reading import LintSettings, Reading, reading_of
from csl_dist.lint.rules.conventions import told_once, transition_findings
from csl_dist.lint.rules.files import duplicate_findings, mixed_up_findings
from csl_dist.lint.rules.names import class_name_findings, sole_user_findings
from csl_dist.lint.rules.order import order_findings
from csl_dist.lint.rules.times import (
    duration_findings,
    empty_findings,
    flicker_findings,
    gap_findings,
    outside_findings,
    overlap_findings,
    unlabelled_findings,
)
from csl_dist.lint.segments import SegmentTable, segment_table
from csl_dist.lint.sequences import LabelSequence

RULES: tuple[Callable[[Reading], Iterator[Finding]], ...] = (
    order_findings,
    duration_findings,
    flicker_findings,
    gap_findings,
    overlap_findings,
    outside_findings,
    empty_findings,
    unlabelled_findings,
    class_name_findings,
    duplicate_findings,
    mixed_up_findings,
    sole_user_findings,
    transition_findings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintResult:
    """All that lint tells of a dataset."""

    findings: tuple[Finding, ...]
    """By kind, worst first."""
    segments: SegmentTable
    agreement: Agreement
    procedures: tuple[ProcedureSummary, ...]
    num_videos: int
    hours: float


def lint(sequences: Iterable[LabelSequence], settings: LintSettings | None = None) -> LintResult:
    """Findings on label sequences, which may be a generator; it is read once."""
    corpus = corpus_of(sequences)
    reading = reading_of(corpus, settings or LintSettings())
    found = [finding for rule in RULES for finding in rule(reading)]
    agreement = agreement_of(corpus)
    told = told_once(reading, _without_copies(corpus, found))
    by_kind = grouped([*told, *agreement.findings])
    return LintResult(
        findings=tuple(finding for members in by_kind.values() for finding in members),
        segments=segment_table(reading),
        agreement=agreement,
        procedures=procedure_summaries(corpus),
        num_videos=corpus.num_videos,
        hours=sum(corpus.seconds(video) for video in range(corpus.num_videos)) / 3600,
    )


def _without_copies(corpus: Corpus, findings: list[Finding]) -> list[Finding]:
    """One finding for all cameras of a performance: same group, same place, same sentence."""
    group_of = {a.video: (a.group, a.procedure) for a in corpus.about if a.group is not None}
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        who = group_of.get(finding.video or "", finding.video)
        second = None if finding.start_seconds is None else round(finding.start_seconds)
        kept.setdefault((finding.kind, who, second, finding.label, finding.sentence), finding)
    return list(kept.values())
