"""Runs submitted through the service: as Ray jobs, whose metadata names the run roots."""

import contextlib
import threading
import time

from csl_dist.config import NAMED_WEIGHTS, RunConfig, parse_config, with_absolute_paths
from csl_dist.errors import ConfigError, JobError
from csl_dist.service.forms import SubmitForm
from csl_dist.service.settings import ServiceSettings
from csl_dist.storage.files import is_below
from csl_dist.storage.url import Storage

CHECK_SECONDS = 5.0
"""Time between two requests for the list of jobs."""


def submit(form: SubmitForm, settings: ServiceSettings) -> tuple[str, str]:
    """Starts a job; returns the run root and the job's id."""
    from csl_dist.cluster.jobs import JobQueue, JobStage  # imports Ray

    config = with_absolute_paths(parse_config(form.config, where="config"))
    refuse_beyond(config, settings)
    return config.root, JobQueue(settings.jobs_address).submit(config, JobStage(form.stage))


def refuse_beyond(config: RunConfig, settings: ServiceSettings) -> None:
    """Refuses a config that reads, writes or runs what the service was not started for."""
    allowed = [Storage(url).url for url in (*settings.roots, *settings.submit_below)]
    dataset, features = config.dataset, config.features
    paths = {
        "root": config.root,
        "dataset.path": dataset.path,
        "dataset.truth": dataset.truth,
        "dataset.media": getattr(dataset, "media", None),
        "features.store": features.store,
        **{
            f"features.weights of {one.encoder}": one.weights
            for one in features.sets()
            if one.weights not in NAMED_WEIGHTS
        },
        **{f"features.beside {n}": one.files for n, one in enumerate(features.beside, 1)},
        **{
            f"scorers.{name}.arguments.pretrained": str(scorer.arguments["pretrained"])
            for name, scorer in config.scorers.items()
            if scorer.arguments.get("pretrained") is not None
        },
    }
    for key, path in paths.items():
        if path is not None and not is_below(path, allowed):
            raise ConfigError(
                f"{key} is {path}, which is not below what the service was started for; start it "
                "with --submit-below URL"
            )
    if config.audit.reviews not in (None, settings.database):
        raise ConfigError(
            f"audit.reviews is {config.audit.reviews}, which is not the database that the service "
            "was started with; leave the key out, or start the service with it as --database"
        )
    named = {f"scorers.{name}": scorer.model or name for name, scorer in config.scorers.items()}
    named |= {f"features.encoder {n}": one.encoder for n, one in enumerate(features.sets(), 1)}
    for key, model in named.items():
        if ":" in model and model not in settings.submit_models:
            raise ConfigError(
                f"{key} names the model {model!r}, which the service was not started for; "
                "start it with --submit-model MODULE:CLASS"
            )


class JobRoots:
    """Run roots of the cluster's jobs, so that every replica serves what was submitted."""

    def __init__(self, address: str | None):
        self._address = address
        self._lock = threading.Lock()
        self._roots: list[str] = []
        self._checked = -CHECK_SECONDS

    def roots(self) -> list[str]:
        """Oldest first; the last known list if the cluster does not answer."""
        from csl_dist.cluster.jobs import JobQueue

        with self._lock:
            if time.monotonic() - self._checked > CHECK_SECONDS:
                self._checked = time.monotonic()
                with contextlib.suppress(JobError):
                    self._roots = JobQueue(self._address).roots()
            return self._roots
