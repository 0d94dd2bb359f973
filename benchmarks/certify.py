"""Certificates on datasets whose errors are known: do intervals hold, and how many reviews they
take.

Each dataset is simulated: segments of log-normal length, a share of them wrong, some wholly and
some in part, and a score that tells wrong ones apart as well as `separation` says (2: an AUC of
.92, 2.5: .96, 3: .98). In some, models do not see a share of the errors at all. The most
suspicious segments, as many as there are errors, are flagged. A certificate is drawn in rounds,
each where one more review helps most, until its interval is half as wide as the share of wrong
segments; beside it, seconds are drawn at random, without strata, and judged by the same estimator
until its interval is as narrow.

    python benchmarks/certify.py --runs 500
"""

import argparse
import json
from dataclasses import dataclass

import numpy as np

from csl_dist.certify.estimate import Estimate, Judged, judged, next_stratum, simulated, wrong_share
from csl_dist.certify.sampling import (
    LEAST_DRAWS,
    Population,
    allocation,
    drawn,
    grown,
    population,
)
from csl_dist.types import FloatArray, IntArray

SETTINGS = (
    (0.10, 2.5, 0.0),
    (0.05, 3.0, 0.0),
    (0.05, 2.0, 0.0),
    (0.02, 3.0, 0.0),
    (0.05, 3.0, 0.3),
    (0.02, 2.5, 0.3),
)
"""Share of wrong segments, how many deviations apart their scores are, and the share of them that
models do not see."""
WIDTH_SHARE = 0.5
"""Width of the interval that is asked for, of the share of wrong segments."""
FIRST_REVIEWS = 40
"""Of the first round."""
SIMULATIONS = 1000
MOST_DRAWS = 4
"""Draws of a stratum, of its segments: nearly all were drawn then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    people: Population
    wrong_N: FloatArray

    @property
    def truth(self) -> float:
        return float(self.wrong_N @ self.people.seconds_N / self.people.seconds_N.sum())


def made_dataset(
    rate: float, separation: float, unseen: float, *, num_segments: int, seed: int
) -> Dataset:
    rng = np.random.default_rng([seed, 1])
    seconds_N = rng.lognormal(2.5, 0.8, num_segments)
    is_wrong_N = rng.random(num_segments) < rate
    is_seen_N = rng.random(num_segments) >= unseen
    score_N = rng.normal(size=num_segments) + separation * (is_wrong_N & is_seen_N)
    is_flagged_N = score_N > np.quantile(score_N, 1 - rate)
    part_N = np.where(rng.random(num_segments) < 0.5, 1.0, rng.random(num_segments))
    return Dataset(
        people=population(seconds_N, score_N, np.where(is_flagged_N, 1.0, np.nan)),
        wrong_N=np.where(is_wrong_N, part_N, 0.0),
    )


def reviewed(made: Dataset, width: float, seed: int) -> tuple[Estimate, int]:
    """The certificate that is narrow enough, and the number of segments judged for it."""
    people = made.people
    own, suspicion_H = people.own(), people.suspicion()
    most_H = [MOST_DRAWS * len(mine) for mine in own]
    everything = drawn(people, most_H, seed=seed)
    draws_H = allocation(people, FIRST_REVIEWS)
    while True:
        chosen = [one[:num] for one, num in zip(everything, draws_H, strict=True)]
        strata = [
            _judged(made, one, mine, float(suspicion))
            for one, mine, suspicion in zip(chosen, own, suspicion_H, strict=True)
        ]
        seconds_HS = simulated(strata, seed=seed, num_simulations=SIMULATIONS)
        found = wrong_share(strata, seconds_HS, 0.95)
        num_reviews = sum(len(np.unique(one)) for one in chosen)
        if found.high - found.low <= width or draws_H == most_H:
            return found, num_reviews
        is_open_H = [num < most for num, most in zip(draws_H, most_H, strict=True)]
        wanted_H = grown(draws_H, next_stratum(strata, seconds_HS, is_open_H))
        draws_H = [min(num, most) for num, most in zip(wanted_H, most_H, strict=True)]


def random_reviews_for(made: Dataset, width: float, seed: int) -> int:
    """The fewest segments of random sampling whose interval is as narrow, by bisection."""
    own = np.arange(len(made.wrong_N))
    whole = Population(seconds_N=made.people.seconds_N, stratum_N=np.zeros_like(own))
    low, high = LEAST_DRAWS, MOST_DRAWS * len(own)
    [everything] = drawn(whole, [high], seed=seed)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        strata = [_judged(made, everything[:middle], own, 0.0)]
        seconds_HS = simulated(strata, seed=seed, num_simulations=SIMULATIONS)
        found = wrong_share(strata, seconds_HS, 0.95)
        if found.high - found.low <= width:
            high = middle
        else:
            low = middle
    return len(np.unique(everything[:high]))


def _judged(made: Dataset, chosen: IntArray, own: IntArray, suspicion: float) -> Judged:
    wrong_of = {int(i): float(made.wrong_N[i]) for i in np.unique(chosen)}
    return judged(chosen, wrong_of, made.people.seconds_N, own, suspicion)


def measured(
    rate: float, separation: float, unseen: float, *, runs: int, num_segments: int
) -> dict[str, float]:
    covered, shares, reviews, at_random = [], [], [], []
    for seed in range(runs):
        made = made_dataset(rate, separation, unseen, num_segments=num_segments, seed=seed)
        width = WIDTH_SHARE * rate
        found, num_reviews = reviewed(made, width, seed)
        covered.append(found.low <= made.truth <= found.high)
        shares.append(made.truth)
        reviews.append(num_reviews)
        at_random.append(random_reviews_for(made, width, seed))
    return {
        "wrong_segments": rate,
        "separation": separation,
        "unseen": unseen,
        "wrong_seconds": round(float(np.mean(shares)), 4),
        "covered": round(float(np.mean(covered)), 3),
        "reviews": round(float(np.mean(reviews)), 1),
        "random_reviews": round(float(np.mean(at_random)), 1),
        "ratio": round(float(np.sum(reviews) / np.sum(at_random)), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--segments", type=int, default=4000)
    parser.add_argument("--setting", type=int, nargs="*", help="Only these, counted from 0.")
    given = parser.parse_args()
    for number, setting in enumerate(SETTINGS):
        if given.setting is None or number in given.setting:
            found = measured(*setting, runs=given.runs, num_segments=given.segments)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
