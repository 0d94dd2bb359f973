"""The certificate as a page that fits on one sheet of paper."""

from collections.abc import Sequence
from datetime import UTC, datetime

import jinja2

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.certify.certificate import Certificate

LEAST_SHOWN = 0.8
"""Where the scale of right seconds begins, unless less is right."""


def write_certificate(audit: Audit, found: Certificate, reviewers: Sequence[str]) -> str:
    """Writes `certificate.html` to the run root and returns its URL."""
    root = audit.paths.root
    root.put(audit.paths.CERTIFICATE, render(audit, found, reviewers).encode())
    return f"{root.url}/{audit.paths.CERTIFICATE}"


def render(audit: Audit, found: Certificate, reviewers: Sequence[str]) -> str:
    floor = min(LEAST_SHOWN, (1 - found.wrong.high) // 0.1 * 0.1)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("csl_dist", "certify"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["share"] = lambda value: f"{100 * value:.1f} %"
    return environment.get_template("page.html").render(
        c=found,
        title=audit.paths.root.url.rsplit("/", 1)[-1],
        root=audit.paths.root.url,
        revision=audit.revision,
        date=datetime.now(UTC).date(),
        reviewers=", ".join(reviewers) or "nobody",
        floor=floor,
        place=lambda share: 100 * (max(share, floor) - floor) / (1 - floor),
        version=csl_dist.__version__,
    )
