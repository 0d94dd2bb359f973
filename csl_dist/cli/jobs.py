"""Commands on Ray jobs: `csl submit`, `csl logs`, `csl cancel`."""

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csl_dist.cli.app import ConfigPath, Overrides, Root, app, load_config, say
from csl_dist.errors import ConfigError

if TYPE_CHECKING:
    from csl_dist.cluster.jobs import JobQueue

Address = Annotated[
    str | None,
    typer.Option(
        envvar="RAY_API_SERVER_ADDRESS",
        metavar="URL",
        help="The cluster's dashboard, such as http://HEAD:8265.",
    ),
]


@app.command(rich_help_panel="Cluster")
def submit(
    config: ConfigPath,
    stage: Annotated[
        str, typer.Option(help="One stage: extract, train, audit or evaluate; or `run` for all.")
    ] = "run",
    address: Address = None,
    gpus: Annotated[
        int | None,
        typer.Option(min=1, help="GPUs to wait and scale up for, where a cluster scales itself."),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Do not follow the log.")] = False,
    modules: Annotated[
        list[Path],
        typer.Option("--module", help="A Python package to take along, such as your own model."),
    ] = [],  # noqa: B006
    environment: Annotated[
        list[str],
        typer.Option(
            "--env",
            metavar="NAME[=VALUE]",
            help="A variable for the job; others who see the cluster can read it.",
        ),
    ] = [],  # noqa: B006
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Start a run as a Ray job, and follow its log; it goes on when the terminal closes."""
    from csl_dist.cluster.jobs import JobStage
    from csl_dist.cluster.session import NUM_GPUS_VARIABLE

    loaded = load_config(config, overrides)
    try:
        chosen = JobStage(stage)
    except ValueError:
        names = ", ".join(JobStage)
        raise ConfigError(f"--stage is {stage!r}, but must be one of {names}") from None
    variables = dict(map(_variable, environment))
    if gpus is not None:
        variables[NUM_GPUS_VARIABLE] = str(gpus)
    queue = _queue(address)
    job_id = queue.submit(loaded, chosen, modules=modules, environment=variables)
    say(f"job: {job_id} on {loaded.root}; `csl logs {loaded.root}` follows it")
    if not detach:
        _follow(queue, job_id, loaded.root)


@app.command(rich_help_panel="Cluster")
def logs(root: Root, address: Address = None) -> None:
    """Follow the log of a run's newest job, from its start."""
    queue = _queue(address)
    _follow(queue, queue.newest(root), root)


@app.command(rich_help_panel="Cluster")
def cancel(root: Root, address: Address = None) -> None:
    """End a run's job; what is done is kept."""
    job_id = _queue(address).cancel(root)
    say(f"job: no job works on {root}" if job_id is None else f"job: {job_id} is cancelled")


def _queue(address: str | None) -> "JobQueue":
    from csl_dist.cluster.jobs import JobQueue

    # The modules of the client set their own level when they are imported.
    for name in ("", ".dashboard.modules.dashboard_sdk", ".dashboard.modules.job.sdk"):
        logging.getLogger(f"ray{name}").setLevel(logging.ERROR)
    return JobQueue(address)


def _follow(queue: "JobQueue", job_id: str, root: str) -> None:
    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    try:
        queue.follow(job_id, write)
    except KeyboardInterrupt:
        say(f"\njob: {job_id} goes on; `csl logs {root}` follows it, `csl cancel {root}` ends it")


def _variable(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, or `NAME` with the value that it has here."""
    name, equals, value = text.partition("=")
    if not equals:
        if name not in os.environ:
            raise ConfigError(f"--env {name}: there is no such variable here; give {name}=VALUE")
        value = os.environ[name]
    return name, value
