"""Connect to Ray: the cluster of RAY_ADDRESS or of the job, or else a local one.

Ray starts when the first unit of work needs it, so that a command on a finished run stays fast.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from csl_dist.cluster.local import is_local
from csl_dist.errors import CslError

# Ray Train's controller passes on an epoch's report only when it polls: by default every 2 s, which
# would slow small trainings down.
TRAIN_POLL_SECONDS = "0.2"

NUM_GPUS_VARIABLE = "CSL_GPUS"
"""Number of GPUs to plan for; an autoscaling cluster may have none at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources of the whole cluster, after it has scaled up."""

    num_cpus: int
    num_gpus: int
    has_cuda: bool
    """Whether CUDA runs on these GPUs; logical GPUs, which tests use, have no CUDA."""


def connect(*, verbose: bool = False) -> Resources:
    """Connects, if there is no connection yet, and returns the cluster's resources."""
    if not ray.is_initialized():
        os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", TRAIN_POLL_SECONDS)
        # Without a dashboard the watcher can't start, and logs an error.
        os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if not verbose:
            os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        local = is_local()
        level = logging.INFO if verbose else logging.ERROR
        for name in ("ray", "ray.train"):
            logging.getLogger(name).setLevel(level)
        # It logs a traceback of every error that it raises.
        logging.getLogger("ray.data").setLevel(level if verbose else logging.CRITICAL)
        with nullcontext() if verbose else _silent_stderr():
            ray.init(
                address="local" if local else None,
                include_dashboard=False if local else None,
                log_to_driver=verbose,
                logging_level=level,
            )
    total = ray.cluster_resources()
    num_gpus = max(int(total.get("GPU", 0)), int(os.environ.get(NUM_GPUS_VARIABLE, "0")))
    return Resources(
        num_cpus=int(total.get("CPU", 1)),
        num_gpus=num_gpus,
        has_cuda=num_gpus > 0 and _has_cuda(),
    )


@cache
def _has_cuda() -> bool:
    """Asked once, at the start: later all GPUs may be busy, and the question would have to wait."""
    import torch  # `csl serve` connects, and does without it

    ask = ray.remote(num_gpus=1, num_cpus=0)(torch.cuda.is_available)
    return bool(ray.get(ask.remote()))


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hides what Ray's core writes to stderr while it starts; it ignores the log level."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def disconnect() -> None:
    """Leaves the cluster; a local cluster ends."""
    if ray.is_initialized():
        ray.shutdown()
    _has_cuda.cache_clear()


def user_error(error: BaseException) -> CslError | None:
    """The CslError inside an error that came through Ray, if there is one."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, CslError) and not isinstance(current, ray.exceptions.RayError):
            return current
        pending += [getattr(current, "cause", None), current.__cause__, current.__context__]
    return None


def worker_bytes(resources: Resources, num_workers: int) -> float:
    """Memory of one of so many workers: its GPU's, or its share of the smallest machine's."""
    if resources.has_cuda:
        import torch

        ask = ray.remote(num_gpus=1, num_cpus=0)(lambda: torch.cuda.mem_get_info()[1])
        return float(ray.get(ask.remote()))
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    shares = [
        own["memory"] / max(1, min(num_workers, int(own.get("CPU", 1))))
        for own in nodes
        if "memory" in own
    ]
    return float(min(shares, default=float("inf")))


def on_every_node(function: Callable[..., object], *arguments: object) -> None:
    """Calls a function once on every machine of the cluster; one that is lost is left out."""
    alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    task = ray.remote(num_cpus=0)(function)
    with suppress(RayError):
        ray.get(
            [
                task.options(
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
                ).remote(*arguments)
                for node in alive
            ]
        )


def get_all(futures: list[Any]) -> list[Any]:
    """The results of tasks; a CslError in a task is raised as itself."""
    try:
        return ray.get(futures)
    except Exception as error:
        cause = user_error(error)
        if cause is not None:
            raise cause from None
        raise
