"""The service and its reviews: `csl serve`, `csl reviews export`, `csl certify`."""

import re
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from csl_dist.cli.app import Revision, Root, Verbose, app, say
from csl_dist.errors import ConfigError
from csl_dist.words import counted

Database = Annotated[
    str | None,
    typer.Option(
        envvar="CSL_DATABASE",
        metavar="URL",
        help="Reviews: sqlite:///FILE or postgresql://USER@HOST/NAME; else ROOT/reviews.db.",
    ),
]


@app.command(rich_help_panel="Results")
def serve(
    roots: Annotated[list[str], typer.Argument(help="Run roots.", metavar="ROOT…")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but the loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    replicas: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")] = 1,
    token: Annotated[
        str | None,
        typer.Option(envvar="CSL_TOKEN", help="Requests must send it; generated if needed."),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Lines `name,token`: a token for each reviewer, who is then known."
        ),
    ] = None,
    login_header: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Header in which a proxy says who is logged in; it sends --token too.",
        ),
    ] = None,
    lead: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Who may see how each annotator's labels fared."),
    ] = [],  # noqa: B006
    media: Annotated[
        list[str],
        typer.Option(
            metavar="FOLDER|URL",
            help="Also show videos of this folder, beside the dataset's own; name a bucket here.",
        ),
    ] = [],  # noqa: B006
    allow_submit: Annotated[
        bool, typer.Option("--allow-submit", help="Let requests with the token start Ray jobs.")
    ] = False,
    submit_below: Annotated[
        list[str],
        typer.Option(metavar="URL", help="Jobs may read and write here, beside the roots."),
    ] = [],  # noqa: B006
    submit_model: Annotated[
        list[str],
        typer.Option(metavar="MODULE:CLASS", help="Jobs may import this model, and no other."),
    ] = [],  # noqa: B006
    database: Database = None,
    address: Annotated[
        str | None,
        typer.Option(
            envvar="RAY_API_SERVER_ADDRESS",
            metavar="URL",
            help="For --allow-submit: the cluster's dashboard, such as http://HEAD:8265.",
        ),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Serve audits over HTTP, with a page to review them; Ctrl-C ends it."""
    from csl_dist.cluster.session import connect
    from csl_dist.review.store import store_of
    from csl_dist.service.deployment import running_service
    from csl_dist.service.settings import (
        ServiceSettings,
        is_loopback,
        new_token,
        read_tokens,
    )
    from csl_dist.storage.run_file import read_run_file
    from csl_dist.storage.url import Storage

    is_new = token is None and tokens is None and (allow_submit or not is_loopback(host))
    if is_new:
        token = new_token()
    settings = ServiceSettings(
        roots=tuple(Storage(root).url for root in roots),
        host=host,
        port=port,
        token=token,
        tokens=read_tokens(tokens) if tokens is not None else (),
        login_header=login_header,
        leads=tuple(lead),
        database=database,
        media=tuple(media),
        allow_submit=allow_submit,
        submit_below=tuple(submit_below),
        submit_models=tuple(submit_model),
        jobs_address=address,
    )
    for root in roots:
        read_run_file(root)
        store_of(root, database).create()
    ended = threading.Event()
    connect(verbose=verbose)
    # After Ray, which sets handlers of its own, and aborts the process that it runs in.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with running_service(settings, replicas=replicas, verbose=verbose):
        # Browsers do not send the part after #, so that no server logs it. A token that was given
        # is known to whoever may know it: what is said here may end in the system's log.
        say(f"review: {settings.address}/" + (f"#token={token}" if is_new else ""))
        said = f" (Bearer {token})" if is_new else " (with the token that was given)"
        say(f"API: {settings.address}/docs" + (said if settings.needs_token else ""))
        ended.wait()
    say("ended")


reviews = typer.Typer(no_args_is_help=True, help="Decisions that reviewers took.")
app.add_typer(reviews, name="reviews", rich_help_panel="Results")


@reviews.command()
def export(
    root: Root,
    out: Annotated[Path, typer.Option(help="Folder for the corrected labels.")],
    database: Database = None,
    revision: Revision = None,
) -> None:
    """Write corrected labels in the dataset's own layout, for `csl relabel`."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.review.carried import decisions_on
    from csl_dist.review.labels import write_corrected
    from csl_dist.review.store import store_of

    audit = open_audit(root, revision=revision)
    store = store_of(root, database)
    store.create()
    decisions = decisions_on(audit, store).by_span()
    written = write_corrected(audit, decisions, out, store=store)
    say(
        f"corrected: {counted(written.num_spans, 'span')} of "
        f"{counted(written.num_videos, 'video')} in {out}, which has only the label files that "
        f"change ({len(written.files)}); next: `csl relabel {root} {out}`, or copy them over the "
        "dataset's own and `csl run` again"
    )
    if written.num_disputed:
        say(
            f"disputed: {counted(written.num_disputed, 'span')}, decided differently by different "
            "reviewers; the last decision counts"
        )
    if written.num_off:
        say(
            f"rounded: {counted(written.num_off, 'frame')}, which keep another label than "
            "decided, because entries of the label files are farther apart than frames"
        )


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
