"""Runs as Ray jobs: submit, follow, cancel; a run root has one job at a time.

A job brings the resolved config and this csl_dist with it, so that the cluster runs the same code.
All results of a job are in storage: a lost job is submitted again and continues.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import aiohttp
import yaml
from ray.exceptions import AuthenticationError
from ray.job_submission import JobDetails, JobStatus, JobSubmissionClient

import csl_dist
from csl_dist.config import RunConfig, config_as_dict
from csl_dist.errors import JobError
from csl_dist.storage.url import Storage
from csl_dist.types import fingerprint

CONFIG_FILE = "csl.yaml"
ROOT_KEY = "csl_root"
"""Key of the run root in a job's metadata."""
POLL_SECONDS = 0.5
MAX_RECONNECTS = 5
"""How often a broken connection to the log is opened again."""


class JobStage(StrEnum):
    """What a job does: all stages, or one."""

    RUN = "run"
    EXTRACT = "extract"
    TRAIN = "train"
    AUDIT = "audit"
    EVALUATE = "evaluate"


class JobQueue:
    """The jobs of one cluster that work on run roots."""

    def __init__(self, address: str | None = None):
        self._where = address or "the address in RAY_API_SERVER_ADDRESS"
        with self._errors():
            self._client = JobSubmissionClient(address)

    def __repr__(self) -> str:
        return f"JobQueue({self._where!r})"

    def submit(
        self,
        config: RunConfig,
        stage: JobStage,
        *,
        modules: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Starts a job on a config and returns its id; refused while the root has another."""
        earlier = self._jobs_of(config.root)
        for job in earlier:
            if not job.status.is_terminal():
                raise JobError(
                    f"job {job.submission_id} already works on {config.root}; follow it with "
                    f"`csl logs {config.root}`, or end it with `csl cancel {config.root}`"
                )
        # Two submissions at the same moment compute the same id, and Ray accepts only one.
        job_id = f"csl-{fingerprint(config.root)[:8]}-{len(earlier) + 1}"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, CONFIG_FILE).write_text(yaml.safe_dump(config_as_dict(config)))
            package = Path(csl_dist.__file__).parent
            with self._errors():
                self._client.submit_job(
                    entrypoint=f"python -m csl_dist.cli {stage} {CONFIG_FILE}",
                    submission_id=job_id,
                    metadata={ROOT_KEY: config.root},
                    runtime_env={
                        "working_dir": folder,
                        "py_modules": [str(path) for path in (package, *modules)],
                        "env_vars": {"PYTHONUNBUFFERED": "1", **(environment or {})},
                    },
                )
        return job_id

    def newest(self, root: str) -> str:
        """The id of the newest job of a run root."""
        jobs = self._jobs_of(Storage(root).url)
        if not jobs:
            raise JobError(
                f"the cluster at {self._where} has no job for {root}; see `ray job list`, or "
                "submit one with `csl submit`"
            )
        return str(jobs[-1].submission_id)

    def follow(self, job_id: str, write: Callable[[str], None]) -> None:
        """Writes a job's log from its start until the job ends; JobError if the job failed."""
        written = 0

        async def tail() -> None:
            nonlocal written
            length = 0
            async for text in self._client.tail_job_logs(job_id):
                # After a reconnection the log starts from its beginning.
                new = text[max(0, written - length) :]
                length += len(text)
                written += len(new)
                write(new)

        for attempt in range(MAX_RECONNECTS + 1):
            try:
                with self._errors():
                    asyncio.run(tail())
                break
            except JobError:
                if attempt == MAX_RECONNECTS:
                    raise
                time.sleep(POLL_SECONDS * 2**attempt)
        self._check_success(job_id)

    def cancel(self, root: str) -> str | None:
        """Stops the root's job and waits for its end; its id, or None if none was running."""
        job_id = self.newest(root)
        with self._errors():
            if self._client.get_job_status(job_id).is_terminal():
                return None
            self._client.stop_job(job_id)
            while not self._client.get_job_status(job_id).is_terminal():
                time.sleep(POLL_SECONDS)
        return job_id

    def roots(self) -> list[str]:
        """The run roots of all jobs of the cluster, the first submitted first."""
        with self._errors():
            jobs = self._client.list_jobs()
        ours = [job for job in jobs if job.submission_id and ROOT_KEY in (job.metadata or {})]
        ours.sort(key=lambda job: job.start_time or 0)
        return list(dict.fromkeys(job.metadata[ROOT_KEY] for job in ours))

    def _jobs_of(self, root: str) -> list[JobDetails]:
        """The jobs of a run root, in the order of their submission."""
        with self._errors():
            jobs = self._client.list_jobs()
        own = [
            job for job in jobs if job.submission_id and (job.metadata or {}).get(ROOT_KEY) == root
        ]
        return sorted(own, key=lambda job: int(job.submission_id.rsplit("-", 1)[1]))

    def _check_success(self, job_id: str) -> None:
        with self._errors():
            info = self._client.get_job_info(job_id)
        if info.status is JobStatus.STOPPED:
            raise JobError(f"job {job_id} was cancelled; submit again to continue with the rest")
        if info.status is JobStatus.FAILED:
            ended = info.driver_exit_code is not None
            reason = f"exit code {info.driver_exit_code}" if ended else _first_line(info.message)
            raise JobError(
                f"job {job_id} failed: {reason}; see its log, fix the cause, and submit again to "
                "continue with the rest"
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns errors of the connection and of the cluster into one sentence."""
        try:
            yield
        except AuthenticationError as error:
            raise JobError(
                f"the cluster at {self._where} needs its token: set RAY_AUTH_MODE=token and "
                "RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to what `ray get-auth-token` prints there"
            ) from error
        except (ConnectionError, aiohttp.ClientError) as error:
            raise JobError(
                f"no Ray cluster answers at {self._where}; give its dashboard as --address "
                "http://HEAD:8265"
            ) from error
        except (RuntimeError, ValueError) as error:
            reason = _first_line(str(error))
            raise JobError(f"the cluster at {self._where} refuses: {reason}") from error


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "no reason given")
