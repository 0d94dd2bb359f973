"""Draw a sample, and draw more where one more review tells most."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from csl_dist.certify.certificate import wrong_shares
from csl_dist.certify.estimate import judged, next_stratum, simulated
from csl_dist.certify.sample import Sample, population_of, with_draws
from csl_dist.certify.sampling import allocation, drawn, grown
from csl_dist.errors import DataError
from csl_dist.review.store import Review, SpanKey


def first_sample(
    segments: pd.DataFrame,
    *,
    seed: int,
    within_seconds: float,
    confidence: float,
    num_reviews: int,
) -> Sample:
    """Draws by what suspicion alone tells."""
    if segments.empty:
        raise DataError("the audited videos have no labelled segment to draw from")
    people = population_of(segments)
    empty = Sample(
        seed=seed, within_seconds=within_seconds, confidence=confidence, draws=(), spans=()
    )
    return with_draws(empty, segments, tuple(allocation(people, num_reviews)))


def larger_sample(
    sample: Sample,
    segments: pd.DataFrame,
    current: Mapping[SpanKey, Sequence[Review]],
    *,
    num_more: int,
) -> Sample:
    """The sample with about so many segments more, where they make the estimate surest."""
    people = population_of(segments)
    wrong_of = wrong_shares(segments, current, within_seconds=sample.within_seconds)
    draws_H = list(sample.draws)
    wanted = min(len(segments), len(sample.spans) + num_more)
    while True:
        chosen = drawn(people, draws_H, seed=sample.seed)
        if len(np.unique(np.concatenate(chosen))) >= wanted:
            return with_draws(sample, segments, tuple(draws_H))
        # What is drawn and not judged yet is thought to turn out as the rest of its stratum.
        strata = [
            judged(one, wrong_of, people.seconds_N, own, suspicion).scaled(
                max(1.0, len(one) / max(1, sum(int(i) in wrong_of for i in one)))
            )
            for one, own, suspicion in zip(chosen, people.own(), people.suspicion(), strict=True)
        ]
        is_open_H = [
            len(np.unique(one)) < len(own) for one, own in zip(chosen, people.own(), strict=True)
        ]
        seconds_HS = simulated(strata, seed=sample.seed)
        draws_H = grown(draws_H, next_stratum(strata, seconds_HS, is_open_H))
