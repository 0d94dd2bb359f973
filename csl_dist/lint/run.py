"""Lint: everything that labels alone give away, from sequences to findings."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.lint.agreement import Agreement, agreement_of
from csl_dist.lint.corpus import Corpus, corpus_of
from csl_dist.lint.findings import Finding, TimeUnit, grouped
from csl_dist.lint.reading import LintSettings, Reading, reading_of
from csl_dist.lint.rules.conventions import told_once, transition_findings
from csl_dist.lint.rules.files import copied_findings, duplicate_findings, mixed_up_findings
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
from csl_dist.lint.statistics.procedures import ProcedureSummary, procedure_summaries

RULES: tuple[Callable[[Reading], Iterator[Finding]], ...] = (
    duration_findings,
    flicker_findings,
    gap_findings,
    overlap_findings,
    outside_findings,
    empty_findings,
    unlabelled_findings,
    class_name_findings,
    duplicate_findings,
    copied_findings,
    mixed_up_findings,
    sole_user_findings,
    transition_findings,
)
"""All but the order of steps, which alone depends on the level."""
NEARLY = 0.7
"""So much of the level is just below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintResult:
    """All that lint tells of a dataset."""

    findings: tuple[Finding, ...]
    """By kind, worst first."""
    segments: SegmentTable
    agreement: Agreement
    procedures: tuple[ProcedureSummary, ...]
    num_videos: int
    num_files: int
    """Label files; more than videos where several people labelled the same ones."""
    hours: float
    """Of video; 0 where the rate of labels is not known."""
    unit: TimeUnit
    notes: tuple[str, ...]
    """What was taken for granted, a sentence each."""
    nearly: tuple[Finding, ...] = ()
    """What is not told, but has a probability just below the level."""
    title: str = ""
    """What was linted; empty for sequences."""


def lint(sequences: Iterable[LabelSequence], settings: LintSettings | None = None) -> LintResult:
    """Findings on label sequences, which may be a generator; it is read once."""
    corpus = corpus_of(sequences)
    reading = reading_of(corpus, settings or LintSettings())
    hours = sum(corpus.seconds(v) for v in np.flatnonzero(corpus.counted_V).tolist()) / 3600
    found = [finding for rule in RULES for finding in rule(reading)]
    agreement = agreement_of(corpus, reading.settings.unit)
    told = _told(reading, found)
    by_kind = grouped([*told, *agreement.findings])
    return LintResult(
        findings=tuple(finding for members in by_kind.values() for finding in members),
        segments=segment_table(reading),
        agreement=agreement,
        procedures=procedure_summaries(corpus),
        num_videos=corpus.num_videos,
        num_files=corpus.num_files,
        hours=0.0 if reading.settings.unit is TimeUnit.ENTRIES else hours,
        unit=reading.settings.unit,
        notes=tuple(_background_notes(reading)),
        nearly=tuple(_nearly(reading, found)),
    )


def _told(reading: Reading, found: list[Finding]) -> list[Finding]:
    """What is found apart from the order of steps, and that; each thing once."""
    return told_once(reading, _without_copies(reading.corpus, [*order_findings(reading), *found]))


def _nearly(reading: Reading, found: list[Finding]) -> list[Finding]:
    """What a level just below would tell beside."""
    level = reading.settings.probability
    lower = replace(reading.settings, probability=NEARLY * level)
    between = ((lower.probability <= p) & (p < level) for p in reading.probabilities.values())
    if not any(b.any() for b in between):
        return []
    told = _told(replace(reading, settings=lower), found)
    return [f for f in told if f.probability is not None and f.probability < level]


def _background_notes(reading: Reading) -> Iterator[str]:
    corpus = reading.corpus
    background = np.flatnonzero(reading.background_N)
    for label in np.unique(corpus.label_N[background]).tolist():
        num = int((corpus.label_N[background] == label).sum())
        yield (
            f"`{corpus.labels[label]}` ({num:,} of {corpus.num_segments:,} segments) comes between "
            "most steps and is taken as background: the order of steps leaves it out."
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
