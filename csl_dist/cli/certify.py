"""`csl certify`: draw a sample for review, and say what it proves."""

import re
from typing import Annotated

import typer

from csl_dist.cli.app import Revision, Root, app, say
from csl_dist.cli.serve import Database
from csl_dist.errors import ConfigError


@app.command(rich_help_panel="Results")
def certify(
    root: Root,
    within: Annotated[
        str, typer.Option(help="A boundary counts as right within so many seconds.", metavar="2s")
    ] = "2s",
    confidence: Annotated[
        float, typer.Option(min=50, max=99.9, help="Of the interval, in percent.")
    ] = 95,
    claim: Annotated[
        float, typer.Option(min=1, max=99.99, help="Share of right seconds to claim, in percent.")
    ] = 97,
    reviews: Annotated[
        int, typer.Option(min=20, max=100_000, help="Segments to draw at first, about.")
    ] = 100,
    more: Annotated[
        int, typer.Option(min=0, max=100_000, help="Segments to add to the sample, about.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    database: Database = None,
    revision: Revision = None,
) -> None:
    """Draw segments for review at random, and certify from them how good the dataset is."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.certify.certificate import certificate
    from csl_dist.certify.drawing import first_sample, larger_sample
    from csl_dist.certify.page import write_certificate
    from csl_dist.certify.sample import put_sample, read_sample
    from csl_dist.review.carried import decisions_on
    from csl_dist.review.segments import segment_table
    from csl_dist.review.store import store_of

    audit = open_audit(root, revision=revision)
    segments = segment_table(audit)
    store = store_of(root, database)
    store.create()
    current = decisions_on(audit, store).by_span()
    sample = read_sample(audit)
    if sample is None:
        sample = first_sample(
            segments,
            seed=seed,
            within_seconds=_seconds(within),
            confidence=confidence / 100,
            num_reviews=reviews,
        )
        put_sample(audit, sample)
        say(f"sample: {len(sample.spans)} of {len(segments)} segments, drawn with seed {seed}")
    elif more:
        before = len(sample.spans)
        sample = larger_sample(sample, segments, current, num_more=more)
        put_sample(audit, sample)
        say(f"sample: {len(sample.spans) - before} segments more, {len(sample.spans)} in all")
    found = certificate(sample, segments, current, claim=claim / 100)
    say(found.sentence())
    if not found.is_complete:
        left = len(sample.spans) - found.judged
        say(f"to review: {left} segments; `csl serve {root}`, then choose “certificate sample”")
    elif not found.holds and found.still_needed:
        say(f"go on with `csl certify {root} --more {found.still_needed}`")
    if found.judged:
        spans = set(sample.spans)
        names = {r.reviewer for span, held in current.items() if span in spans for r in held}
        say(f"certificate: {write_certificate(audit, found, sorted(names))}")


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?s?", text.strip())
    if found is None:
        raise ConfigError(f"--within is {text!r}; give seconds, such as 2s or 0.5s")
    return float(found[1])
