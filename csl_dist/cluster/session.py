"""Connect to Ray: the cluster of RAY_ADDRESS or of the job, or else a local one.

Ray starts when the first unit of work needs it, so that a command on a finished run stays fast.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import AuthenticationError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from csl_dist.cluster.end_notice import END_NOTICE
from csl_dist.cluster.local import is_local
from csl_dist.errors import CslError, JobError

# Ray Train's controller passes on an epoch's report only when it polls: by default every 2 s, which
# would slow small trainings down.
TRAIN_POLL_SECONDS = "0.2"

ANSWER_SECONDS = 5.0
SLOW_SECONDS = 30.0

NUM_GPUS_VARIABLE = "CSL_GPUS"
"""Number of GPUs to plan for; an autoscaling cluster may have none at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources of the whole cluster, after it has scaled up."""

    num_cpus: int
    num_gpus: int

    @property
    def has_cuda(self) -> bool:
        """Whether CUDA runs on these GPUs; logical GPUs, which tests use, have no CUDA.

        Takes a GPU for the time of the question: ask before work takes all of them.
        """
        return self.num_gpus > 0 and _has_cuda()


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
        _require_answer(os.environ.get("RAY_ADDRESS", ""))
        END_NOTICE.start()
        silence = nullcontext() if verbose else _silent_stderr()
        with _told_if_slow(local), silence, _errors(local), _own_signal_handler():
            ray.init(
                address="local" if local else None,
                include_dashboard=False if local else None,
                log_to_driver=verbose,
                logging_level=level,
            )
    total = ray.cluster_resources()
    num_gpus = max(int(total.get("GPU", 0)), int(os.environ.get(NUM_GPUS_VARIABLE, "0")))
    return Resources(num_cpus=int(total.get("CPU", 1)), num_gpus=num_gpus)


@contextmanager
def _own_signal_handler() -> Iterator[None]:
    """Keeps a command's own way to end on SIGTERM; Ray's prints the stack of its core."""
    own = signal.getsignal(signal.SIGTERM)
    yield
    if callable(own) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, own)


def _require_answer(address: str) -> None:
    """Refuses an address where nothing listens; Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        raise JobError(
            f"no Ray cluster answers at RAY_ADDRESS={address} ({error.strerror or error}); start "
            "it, correct the address, or unset RAY_ADDRESS to use this machine alone"
        ) from error


@contextmanager
def _told_if_slow(local: bool) -> Iterator[None]:
    """Says after a while that Ray has not started, and what may be the reason."""
    where = "this machine" if local else "the cluster"
    sentence = (
        f"Ray has not started on {where} for {SLOW_SECONDS:.0f} s; still waiting. Is there memory, "
        "room in /tmp and /dev/shm, and a core for it? `csl clean` lists what killed runs left.\n"
    )
    stderr = os.dup(2)  # which is silent meanwhile
    timer = threading.Timer(SLOW_SECONDS, lambda: os.write(stderr, sentence.encode()))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        os.close(stderr)


@contextmanager
def _errors(local: bool) -> Iterator[None]:
    """Turns what Ray raises when it can't start or be reached into one sentence."""
    try:
        yield
    except AuthenticationError as error:
        raise JobError(
            "the Ray cluster needs its token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or "
            "RAY_AUTH_TOKEN_PATH, to what `ray get-auth-token` prints there"
        ) from error
    except (OSError, RuntimeError, ValueError, RayError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        what = "Ray can't start on this machine" if local else "the Ray cluster can't be used"
        hint = "; is there room in /dev/shm and /tmp?" if local else "; is RAY_ADDRESS right?"
        raise JobError(f"{what}: {lines[0].rstrip('.')}{hint}") from error


@cache
def _has_cuda() -> bool:
    """Asked once. It waits for a GPU, so that whoever asks does so before work takes them all."""
    import torch  # who only serves audits does without it

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
    END_NOTICE.cancel()


def is_loss(error: BaseException) -> bool:
    """Whether Ray says that it lost a worker, a node, or the cluster; not an error in a task."""
    if isinstance(error, RayTaskError):
        return False
    return isinstance(error, RayError) or type(error).__module__.startswith("ray.train.")


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
