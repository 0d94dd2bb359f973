"""Everything that rules read: the segments and all evidence on them, made once."""

from dataclasses import dataclass

import numpy as np

from csl_dist.lint.corpus import Corpus, FloatArray
from csl_dist.lint.durations import DurationEvidence, duration_evidence
from csl_dist.lint.evidence import OrderEvidence, order_evidence
from csl_dist.lint.findings import Kind
from csl_dist.lint.grammar import Grammar
from csl_dist.lint.planted import (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LintSettings:
    """How much is told."""

    probability: float = 0.65
    """Least probability of an error at which a place in the order of steps is told, 0 to 1.

    Of 0.5, 0.6 and 0.65, by findings an hour on Breakfast, 50Salads and Cholec80 as they are.
    """
    error_rate: float = 0.01
    """Share of segments that are assumed to be wrong before looking; probabilities rest on it."""
    seed: int = 0
    """Of the planted errors that probabilities are measured on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A corpus with its statistics."""

    corpus: Corpus
    grammar: Grammar
    order: OrderEvidence
    durations: DurationEvidence
    probabilities: dict[Kind, FloatArray]
    """Of an error, by segment; a kind is not in it where that can't be measured."""
    settings: LintSettings


SCORES: dict[Kind, tuple[tuple[Plant, ...], Score]] = {
    Kind.ORDER: ((swap_neighbours, move_step), lambda evidence: evidence.order),
    Kind.MISSING: ((drop_step,), lambda evidence: evidence.missing),
    Kind.INSERTED: ((insert_step, rename_step), lambda evidence: evidence.inserted),
}
"""Which planted errors a kind of finding is measured on, and its score."""


def reading_of(corpus: Corpus, settings: LintSettings) -> Reading:
    """Counts, evidence on each segment, and probabilities where there are enough videos."""
    grammar = Grammar(corpus)
    order = order_evidence(grammar)
    measured: dict[Kind, FloatArray] = {}
    if (np.diff(corpus.offsets_V) > 0).sum() >= MIN_VIDEOS:
        unit_N = corpus.unit_V[corpus.video_N()]
        measured = {
            kind: probabilities(
                planted, SCORES[kind][1](order), unit_N, error_rate=settings.error_rate
            )
            for kind, planted in planted_scores(grammar, SCORES, seed=settings.seed).items()
            if len(planted)
        }
    return Reading(
        corpus=corpus,
        grammar=grammar,
        order=order,
        durations=duration_evidence(corpus),
        probabilities=measured,
        settings=settings,
    )
