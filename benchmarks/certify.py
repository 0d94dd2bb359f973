"""Certificates on datasets whose errors are known: do intervals hold, and how many reviews they
take.

Each dataset is simulated: segments of log-normal length, a share of them wrong, some wholly and
some in part, and a score that tells wrong ones apart as well as `separation` says (3: an AUC of
.98). The most suspicious segments, as many as there are errors, are flagged. A certificate is drawn
in rounds, each where one more review helps most, until its interval is as narrow as asked for;
beside it, random sampling without strata by the same estimator until its interval is as narrow.

    python benchmarks/certify.py --runs 500
"""

import argparse
import json
from dataclasses import dataclass

import numpy as np

from csl_dist.certify.estimate import Estimate, Judged, estimate, judged, next_stratum
from csl_dist.certify.sampling import LEAST_DRAWS, Population, drawn, grown, population
from csl_dist.types import FloatArray, IntArray

SETTINGS = ((0.10, 2.5), (0.05, 3.0), (0.05, 2.0), (0.02, 3.0))
"""Share of wrong segments, and how many deviations apart their scores are."""
WIDTH_SHARE = 0.5
"""Width of the interval that is asked for, of the share of wrong segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    people: Population
    wrong_N: FloatArray

    @property
    def truth(self) -> float:
        return float(self.wrong_N @ self.people.seconds_N / self.people.seconds_N.sum())


def simulated(rate: float, separation: float, num_segments: int, seed: int) -> Dataset:
    rng = np.random.default_rng([seed, 1])
    seconds_N = rng.lognormal(2.5, 0.8, num_segments)
    is_wrong_N = rng.random(num_segments) < rate
    score_N = rng.normal(size=num_segments) + separation * is_wrong_N
    is_flagged_N = score_N > np.quantile(score_N, 1 - rate)
    part_N = np.where(rng.random(num_segments) < 0.5, 1.0, rng.random(num_segments))
    return Dataset(
        people=population(seconds_N, score_N, np.where(is_flagged_N, 1.0, np.nan)),
        wrong_N=np.where(is_wrong_N, part_N, 0.0),
    )


def reviewed(
    people: Population, wrong_N: FloatArray, width: float, seed: int
) -> tuple[Estimate, int]:
    """The certificate that is narrow enough, and the number of segments judged for it."""
    draws_H = [LEAST_DRAWS] * people.num_strata
    own = [np.flatnonzero(people.stratum_N == h) for h in range(people.num_strata)]
    while True:
        chosen = drawn(people, draws_H, seed=seed)
        strata = [
            _judged(c, wrong_N, people.seconds_N, o) for c, o in zip(chosen, own, strict=True)
        ]
        found = estimate(strata, confidence=0.95, seed=seed)
        num_reviews = len(np.unique(np.concatenate(chosen)))
        if found.high - found.low <= width or num_reviews == len(wrong_N):
            return found, num_reviews
        draws_H = grown(draws_H, next_stratum(strata, seed))


def random_reviews_for(people: Population, wrong_N: FloatArray, width: float, seed: int) -> int:
    """The fewest segments of random sampling whose interval is as narrow, by bisection."""
    low, high = LEAST_DRAWS, 8 * len(wrong_N)
    own = np.arange(len(wrong_N))
    while high > 1.01 * low:
        middle = (low + high) // 2
        [chosen] = drawn(people, [middle], seed=seed)
        found = estimate([_judged(chosen, wrong_N, people.seconds_N, own)], confidence=0.95)
        if found.high - found.low <= width:
            high = middle
        else:
            low = middle
    return len(np.unique(drawn(people, [high], seed=seed)[0]))


def _judged(chosen: IntArray, wrong_N: FloatArray, seconds_N: FloatArray, own: IntArray) -> Judged:
    return judged(chosen, {int(i): float(wrong_N[i]) for i in chosen}, seconds_N, own)


def measured(rate: float, separation: float, *, runs: int, num_segments: int) -> dict[str, float]:
    covered, shares, reviews, at_random = [], [], [], []
    for seed in range(runs):
        made = simulated(rate, separation, num_segments, seed)
        width = WIDTH_SHARE * rate
        found, num_reviews = reviewed(made.people, made.wrong_N, width, seed)
        whole = Population(
            seconds_N=made.people.seconds_N, stratum_N=np.zeros(num_segments, dtype=np.int64)
        )
        num_random = random_reviews_for(whole, made.wrong_N, width, seed)
        covered.append(found.low <= made.truth <= found.high)
        shares.append(made.truth)
        reviews.append(num_reviews)
        at_random.append(num_random)
    return {
        "wrong_segments": rate,
        "separation": separation,
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
    given = parser.parse_args()
    for rate, separation in SETTINGS:
        print(json.dumps(measured(rate, separation, runs=given.runs, num_segments=given.segments)))


if __name__ == "__main__":
    main()
