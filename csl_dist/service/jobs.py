"""Runs submitted through the service: as Ray jobs, whose metadata names the run roots."""

import contextlib
import threading
import time

from csl_dist.config import parse_config
from csl_dist.errors import JobError
from csl_dist.service.forms import SubmitForm

CHECK_SECONDS = 5.0
"""Time between two requests for the list of jobs."""


def submit(form: SubmitForm, address: str | None) -> tuple[str, str]:
    """Starts a job; returns the run root and the job's id."""
    from csl_dist.cluster.jobs import JobQueue, JobStage  # imports Ray

    config = parse_config(form.config, where="config")
    return config.root, JobQueue(address).submit(config, JobStage(form.stage))


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
