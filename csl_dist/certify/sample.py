"""Sample: the segments of an audit that were drawn for a certificate, kept beside the audit.

It holds what decides on the draws, seed and number, and the spans themselves: a reader needs no
more.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.audit.reader import Audit
from csl_dist.certify.sampling import Population, drawn, population
from csl_dist.errors import DataError, NotReadyError
from csl_dist.storage.paths import RunPaths
from csl_dist.types import IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Which segments are to be judged, and how."""

    seed: int
    within_seconds: float
    """A boundary counts as right within so many seconds."""
    confidence: float
    """Of the interval, such as 0.95."""
    draws: tuple[int, ...]
    """In each stratum."""
    spans: tuple[tuple[str, int, int], ...]
    """Segments that hold the drawn seconds, in random order: video, start, stop."""

    def rows_of(self, segments: pd.DataFrame) -> pd.DataFrame:
        """The sampled rows of an audit's segments, in the order of the sample."""
        order = {span: i for i, span in enumerate(self.spans)}
        keys = list(zip(segments.video, segments.start, segments.stop, strict=True))
        rows = sorted(
            (i for i, key in enumerate(keys) if key in order), key=lambda i: order[keys[i]]
        )
        chosen = segments.iloc[rows].reset_index(drop=True)
        return chosen.assign(rank=np.arange(1, len(chosen) + 1))


def population_of(segments: pd.DataFrame) -> Population:
    """The population that an audit's table of segments is."""
    return population(
        (segments.stop_seconds - segments.start_seconds).to_numpy(dtype=float),
        segments.score.to_numpy(dtype=float),
        segments.flagged.to_numpy(dtype=float),
    )


def draws_of(sample: Sample, people: Population) -> list[IntArray]:
    """The segments behind each draw, by stratum."""
    if len(sample.draws) != people.num_strata:
        raise DataError(
            f"the sample was drawn by an earlier version, from {len(sample.draws)} groups instead "
            f"of {people.num_strata}; delete {RunPaths.SAMPLE} of the audit and draw it again"
        )
    return drawn(people, sample.draws, seed=sample.seed)


def with_draws(sample: Sample, segments: pd.DataFrame, draws: tuple[int, ...]) -> Sample:
    """The same sample with more draws; earlier ones stay, and new spans come after them."""
    people = population_of(segments)
    chosen = np.unique(np.concatenate(drawn(people, draws, seed=sample.seed)))
    keys = list(zip(segments.video, segments.start, segments.stop, strict=True))
    new = {keys[i] for i in chosen} - set(sample.spans)
    shuffled = sorted(new, key=lambda span: (hash_of(sample.seed, span), span))
    return replace(
        sample,
        draws=draws,
        spans=(*sample.spans, *((v, int(a), int(b)) for v, a, b in shuffled)),
    )


def hash_of(seed: int, span: tuple[str, int, int]) -> int:
    """A number that orders spans at random."""
    rng = np.random.default_rng([seed, *span[0].encode(), span[1], span[2]])
    return int(rng.integers(2**62))


def read_sample(audit: Audit) -> Sample | None:
    """The sample of an audit; None where none was drawn."""
    folder = audit.paths.audit(audit.revision)
    if not audit.revision or not folder.exists(RunPaths.SAMPLE):
        return None
    return folder.read_json(RunPaths.SAMPLE, _sample)


def sample_of(audit: Audit) -> Sample:
    """The same; NotReadyError where none was drawn."""
    sample = read_sample(audit)
    if sample is None:
        raise NotReadyError(
            f"audit {audit.revision} has no sample for a certificate; draw one with "
            f"`csl certify {audit.paths.root.url}`"
        )
    return sample


def _sample(content: dict[str, Any]) -> Sample:
    spans = tuple((str(video), int(start), int(stop)) for video, start, stop in content["spans"])
    return Sample(**content | {"draws": tuple(content["draws"]), "spans": spans})


def put_sample(audit: Audit, sample: Sample) -> None:
    audit.paths.audit(audit.revision).put_json(RunPaths.SAMPLE, asdict(sample))
