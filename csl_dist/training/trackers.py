"""Where the metrics of an epoch go beside metrics.jsonl: TensorBoard, MLflow.

Neither package is needed unless the config names it.
"""

import importlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from csl_dist.errors import ConfigError

LOG = logging.getLogger(__name__)

Track = Callable[[int, dict[str, float]], None]
"""Called with the epoch and what was measured in it."""

PACKAGES = {"tensorboard": "tensorboardX", "mlflow": "mlflow"}


def require_trackers(names: Sequence[str], folder: str) -> None:
    """Refuses trackers that can't be used, before any training."""
    for name in names:
        _package(name)
    if "tensorboard" in names and "://" in folder:
        raise ConfigError(
            f"train.trackers: TensorBoard writes to local folders alone, but the run root is "
            f"{folder.rpartition('/')[0]}; use mlflow, or read metrics.jsonl"
        )


@contextmanager
def open_trackers(names: Sequence[str], training: str, folder: str) -> Iterator[Track]:
    """Tells the named trackers of one training; `folder` takes TensorBoard's event files."""
    makers = {"tensorboard": _tensorboard, "mlflow": _mlflow}
    with ExitStack() as opened:
        trackers = [opened.enter_context(makers[name](training, folder)) for name in names]

        def track(epoch: int, metrics: dict[str, float]) -> None:
            for tell in trackers:
                tell(epoch, metrics)

        yield track


@contextmanager
def _tensorboard(training: str, folder: str) -> Iterator[Track]:
    with _package("tensorboard").SummaryWriter(f"{folder}/{training}") as writer:

        def track(epoch: int, metrics: dict[str, float]) -> None:
            for name, value in metrics.items():
                writer.add_scalar(name, value, epoch)

        yield track


@contextmanager
def _mlflow(training: str, folder: str) -> Iterator[Track]:
    """The server is that of MLFLOW_TRACKING_URI; a training that resumes gets a new run there."""
    mlflow = _package("mlflow")
    client = mlflow.MlflowClient()
    found = client.get_experiment_by_name("csl_dist")
    experiment = found.experiment_id if found else client.create_experiment("csl_dist")
    run = client.create_run(experiment, run_name=training, tags={"root": folder})

    def track(epoch: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            client.log_metric(run.info.run_id, name, value, step=epoch)

    try:
        yield track
    except BaseException:
        # What ended the training is to be told, not that the server can't be reached, too.
        try:
            client.set_terminated(run.info.run_id, status="FAILED")
        except Exception as error:
            LOG.warning("MLflow's run %s could not be marked as failed: %s", training, error)
        raise
    client.set_terminated(run.info.run_id)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(PACKAGES[name])
    except ImportError as error:
        raise ConfigError(
            f"train.trackers: {name} needs the package {PACKAGES[name]}, which is not installed "
            f"({error}); install it, or leave {name} out"
        ) from error
