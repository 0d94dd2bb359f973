"""Everything that rules read: the segments and all evidence on them, made once."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from csl_dist.lint.corpus import About, Corpus
from csl_dist.lint.findings import Kind, TimeUnit, length_text
from csl_dist.lint.statistics.background import background
from csl_dist.lint.statistics.durations import DurationEvidence, duration_evidence
from csl_dist.lint.statistics.evidence import OrderEvidence, order_evidence
from csl_dist.lint.statistics.grammar import Grammar
from csl_dist.lint.statistics.planted import (
    ERROR_RATE,
    MIN_VIDEOS,
    Plant,
    Score,
    drop_step,
    insert_step,
    move_step,
    planted_scores,
    probabilities,
    rename_step,
    swap_neighbours,
)
from csl_dist.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LintSettings:
    """How much is told."""

    probability: float = 0.5
    """Least probability of an error at which a place in the order of steps is told, 0 to 1."""
    error_rate: float = ERROR_RATE
    """Share of segments that are assumed to be wrong at most; probabilities rest on it."""
    seed: int = 0
    """Of the planted errors that probabilities are measured on."""
    unit: TimeUnit = TimeUnit.SECONDS
    """What the times of the sequences are, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A corpus with its statistics."""

    corpus: Corpus
    background_N: BoolArray
    """Segments of a background class, which the order of steps leaves out."""
    grammar: Grammar
    """Its own corpus has no background."""
    order: OrderEvidence
    """Over the segments of the grammar's corpus."""
    durations: DurationEvidence
    probabilities: dict[Kind, FloatArray]
    """Of an error, over the same segments; a kind that can't be measured is not in it."""
    settings: LintSettings

    def length_text(self, seconds: float) -> str:
        return length_text(seconds, self.settings.unit)


def about_place(about: About) -> dict[str, Any]:
    """Video, file and annotator, as a finding names them."""
    return {"video": about.video, "file": about.file, "annotator": about.annotator}


SCORES: dict[Kind, tuple[tuple[Plant, ...], Score]] = {
    Kind.ORDER: ((swap_neighbours, move_step), lambda evidence: evidence.order),
    Kind.MISSING: ((drop_step,), lambda evidence: evidence.missing),
    Kind.INSERTED: ((insert_step, rename_step), lambda evidence: evidence.inserted),
}
"""Which planted errors a kind of finding is measured on, and its score."""


def reading_of(corpus: Corpus, settings: LintSettings) -> Reading:
    """Counts, evidence on each segment, and probabilities where there are enough videos."""
    background_N = background(corpus)
    steps = corpus.only(~background_N) if background_N.any() else corpus
    grammar = Grammar(steps)
    order = order_evidence(grammar)
    measured: dict[Kind, FloatArray] = {}
    if (corpus.counted_V & (np.diff(steps.offsets_V) > 0)).sum() >= MIN_VIDEOS:
        measured = {
            kind: probabilities(planted, SCORES[kind][1](order), error_rate=settings.error_rate)
            for kind, planted in planted_scores(grammar, SCORES, seed=settings.seed).items()
        }
    return Reading(
        corpus=corpus,
        background_N=background_N,
        grammar=grammar,
        order=order,
        durations=duration_evidence(corpus),
        probabilities=measured,
        settings=settings,
    )
