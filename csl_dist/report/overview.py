"""What is said of the dataset as a whole, in the report and on the review page alike.

Exchanged labels, conventions, what labels alone tell, annotators; and, once people have reviewed,
the certificate and whether probabilities were right.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from csl_dist.audit.linted import lint_of
from csl_dist.audit.reader import Audit
from csl_dist.errors import NotReadyError
from csl_dist.lint.findings import TITLES, Finding
from csl_dist.lint.run import LintResult
from csl_dist.storage.paths import RunPaths
from csl_dist.types import Split

if TYPE_CHECKING:  # both need a database, which reading an audit does not
    from csl_dist.certify.certificate import Certificate
    from csl_dist.review.reliability import ReliabilityPoint

MAX_FINDINGS = 40
"""Findings of lint that are shown; `csl lint` lists all."""
CLAIM = 0.97
"""Share of right seconds that a certificate is to claim, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorLine:
    """What is flagged in the videos of one annotator."""

    name: str
    videos: int
    hours: float
    flags: int

    @property
    def flags_per_hour(self) -> float:
        return self.flags / self.hours if self.hours else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    exchanges: list[str]
    """A sentence on each two videos that seem to have each other's labels."""
    conventions: list[str]
    """A sentence each."""
    findings: list[dict[str, Any]]
    """The surest of what labels alone tell."""
    num_findings: int
    annotators: list[AnnotatorLine]


def overview(audit: Audit, linted: LintResult | None = None) -> Overview:
    """What an audit and its labels say of the dataset; `linted` where that is known already."""
    found = (linted or lint_of(audit)).findings
    surest = sorted(found, key=lambda one: -(one.probability or 0.0))[:MAX_FINDINGS]
    return Overview(
        exchanges=[exchange.sentence() for exchange in audit.exchanges()],
        conventions=[convention.sentence() for convention in audit.conventions()],
        findings=[_finding(one) for one in surest],
        num_findings=len(found),
        annotators=_annotators(audit),
    )


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "title": TITLES[finding.kind],
        "video": finding.video,
        "start_seconds": finding.start_seconds,
        "stop_seconds": finding.stop_seconds,
        "label": finding.label,
        "probability": finding.probability,
        "sentence": finding.sentence,
    }


def _annotators(audit: Audit) -> list[AnnotatorLine]:
    videos = [video for video in audit.held_out_videos() if video.split is Split.AUDIT]
    flags = Counter(audit.flags().video) if audit.has_flags else Counter[str]()
    lines = []
    for name in sorted({video.annotator for video in videos if video.annotator}):
        own = [video.id for video in videos if video.annotator == name]
        lines.append(
            AnnotatorLine(
                name=name,
                videos=len(own),
                hours=sum(_seconds(audit, video) for video in own) / 3600,
                flags=sum(flags[video] for video in own),
            )
        )
    return lines


def _seconds(audit: Audit, video: str) -> float:
    try:
        annotation = audit.annotation(video)
    except NotReadyError:
        return 0.0
    return float(annotation.duration or np.max(annotation.times_T, initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """What reviews of the run root say; a report asks no other database."""

    decided: int
    reliability: "list[ReliabilityPoint]"
    certificate: "Certificate | None"


def reviewed(audit: Audit) -> Reviewed | None:
    """None where nobody has reviewed anything, or reviews are kept elsewhere."""
    url = audit.paths.root.url
    if "://" in url or not (Path(url) / RunPaths.REVIEWS).exists() or not audit.has_flags:
        return None
    if find_spec("sqlalchemy") is None:
        return None
    from csl_dist.review.carried import decisions_on
    from csl_dist.review.store import store_of

    store = store_of(url, None)
    store.create()
    current = decisions_on(audit, store).by_span()
    return reviews_of(audit, current) if current else None


def reviews_of(audit: Audit, current: "Mapping[Any, Sequence[Any]]") -> Reviewed:
    """The same from the decisions that count."""
    from csl_dist.certify.certificate import certificate
    from csl_dist.certify.sample import read_sample
    from csl_dist.review.reliability import reliability
    from csl_dist.review.segments import segment_table

    sample = read_sample(audit)
    found = None
    if sample is not None:
        found = certificate(sample, segment_table(audit), current, claim=CLAIM)
    return Reviewed(
        decided=len(current),
        reliability=reliability(audit, current),
        certificate=found if found is not None and found.judged else None,
    )
