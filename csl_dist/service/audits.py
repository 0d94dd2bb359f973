"""AuditPool: run roots by id, opened on the first request, limited in number, and kept up to date.

A run may continue while it is served: an audit is opened again when its files changed, or, as long
as it has no flags, after some seconds. A read whose files were replaced is repeated once.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from csl_dist.audit.linted import lint_of
from csl_dist.audit.reader import Audit, open_audit
from csl_dist.audit.revision import AuditStore
from csl_dist.audit.seen import SeenLabels
from csl_dist.errors import CslError, DataError, StorageError
from csl_dist.lint.run import LintResult
from csl_dist.review.assignment import Assignment
from csl_dist.review.carried import decisions_on
from csl_dist.review.edits import SpanEdit, proposal
from csl_dist.review.learning import expected_errors, verdicts
from csl_dist.review.segments import segment_table
from csl_dist.review.store import CurrentDecisions, ReviewStore, store_of
from csl_dist.service.settings import audit_ids
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.types import FloatArray, Video

MAX_OPEN = 16
"""Audits that are kept open."""
CHECK_SECONDS = 3.0
"""Time between two checks whether an audit changed."""
UNFINISHED_SECONDS = 10.0
"""The same for a run that is not finished."""
LEARN_AFTER = 5
"""Decisions after which flags are ranked anew."""

Key = tuple[str, int | None]
"""Run root and number of an audit; None is the newest."""
Result = TypeVar("Result")


class NotFoundError(CslError):
    """A request names something that does not exist."""


class OutdatedError(CslError):
    """A decision is on an audit that is no longer the newest."""


class OpenAudit:
    """An audit, together with what takes long to compute from it."""

    def __init__(self, root: str, revision: int | None, database: str | None):
        self._versions = _file_versions(root)
        self._checked = time.monotonic()
        self.audit: Audit = open_audit(root, revision=revision)
        self._root, self._database = root, database
        self._lock = threading.Lock()
        self._learnt: tuple[int, FloatArray] | None = None
        self._dealt: tuple[str, list[tuple[str, ...]]] | None = None

    def is_outdated(self) -> bool:
        """Whether the run changed; looks at its files only every few seconds."""
        seconds = CHECK_SECONDS if self.audit.has_flags else UNFINISHED_SECONDS
        now = time.monotonic()
        if now - self._checked <= seconds:
            return False
        self._checked = now
        return not self.audit.has_flags or _file_versions(self._root) != self._versions

    def video(self, video_id: str) -> Video:
        """A video that has scores, or will have."""
        try:
            return self.audit.video(video_id)
        except DataError as error:
            raise NotFoundError(str(error)) from error

    def scorer(self, name: str | None) -> str:
        """A scorer of the run; without a name, the one that explains flags."""
        if name is not None and name not in self.audit.scorers:
            names = ", ".join(self.audit.scorers)
            raise NotFoundError(f"there is no scorer {name!r}; the run has {names}")
        return name or self.audit.scorer

    def threshold(self, video_id: str) -> float | None:
        """The deciding score above which frames are flagged; None as long as there are no flags."""
        return self.audit.record.thresholds.get(video_id) if self.audit.has_flags else None

    def videos(self) -> pd.DataFrame:
        """All audited videos, worst first; computed once, as thousands of videos take a while."""
        with self._lock:
            return self._videos

    @cached_property
    def reviews(self) -> ReviewStore:
        """All decisions on the run; the table is created if the run has none yet."""
        store = store_of(self._root, self._database)
        store.create()
        return store

    @cached_property
    def decisions(self) -> CurrentDecisions:
        """The decisions that count now."""
        return decisions_on(self.audit, self.reviews)

    def segments(self) -> pd.DataFrame:
        """All segments of the audited videos, flagged or not; computed once."""
        with self._lock:
            return self._segments

    @cached_property
    def findings(self) -> pd.DataFrame:
        """Flags, and what lies below the line, in the order of ranks."""
        flags, below = self.audit.flags(), self.audit.flags(below=True)
        table = pd.concat([flags, below], ignore_index=True) if len(below) else flags
        return table.assign(is_flag=np.arange(len(table)) < len(flags))

    def proposal(self, flag: Mapping[str, Any]) -> tuple[SpanEdit, ...]:
        """What a flag proposes; empty where it only says where to look, or is no flag.

        A video whose labels nobody can read has its flags in the list all the same.
        """
        if flag["video"] not in self._seen:
            return ()
        return proposal(flag, self._seen.labels(flag["video"]))

    @cached_property
    def _seen(self) -> SeenLabels:
        return self.audit.seen

    def dealt(self) -> list[tuple[str, ...]]:
        """Who is to review each finding; computed when the rule of assignment changes."""
        rule = self.reviews.assignment()
        key = json.dumps(rule, sort_keys=True)
        with self._lock:
            if self._dealt is None or self._dealt[0] != key:
                none: list[tuple[str, ...]] = [()] * len(self.findings)
                found = none if rule is None else Assignment.from_json(rule).of(self.findings)
                self._dealt = key, found
            return self._dealt[1]

    def linted(self) -> LintResult:
        """What the labels tell by themselves; computed once."""
        with self._lock:
            return self._linted

    @cached_property
    def _linted(self) -> LintResult:
        return lint_of(self.audit)

    def expected(self) -> tuple[int, FloatArray]:
        """How likely each finding is an error, by the decisions so far, and the newest of these.

        Computed again after every few decisions, so that a list does not change at each.
        """
        current = self.decisions.by_span()
        last = self.decisions.last
        with self._lock:
            if self._learnt is None or not 0 <= last - self._learnt[0] < LEARN_AFTER:
                self._learnt = last, expected_errors(self.findings, verdicts(current))
            return self._learnt

    @cached_property
    def _videos(self) -> pd.DataFrame:
        return self.audit.videos()

    @cached_property
    def _segments(self) -> pd.DataFrame:
        return segment_table(self.audit)


class AuditPool:
    """The audits of a service: of the roots that it was started with, and of submitted jobs."""

    def __init__(
        self,
        roots: Sequence[str],
        *,
        database: str | None = None,
        more_roots: Callable[[], list[str]] = list,
    ):
        self._roots = roots
        self._database = database
        self._more_roots = more_roots
        self._lock = threading.Lock()
        self._open: OrderedDict[Key, OpenAudit] = OrderedDict()
        # One lock per audit: opening takes seconds, and many requests share one opening.
        self._opening: dict[Key, threading.Lock] = {}

    def ids(self) -> dict[str, str]:
        """Run roots by id."""
        return audit_ids([*self._roots, *self._more_roots()])

    def root(self, audit_id: str) -> str:
        """The run root of an id; ids are looked up, never joined to paths."""
        root = self._fixed_ids.get(audit_id) or self.ids().get(audit_id)
        if root is None:
            raise NotFoundError(f"there is no audit {audit_id!r}; GET /api/audits lists them")
        return root

    @cached_property
    def _fixed_ids(self) -> dict[str, str]:
        return audit_ids(self._roots)

    def read(
        self, audit_id: str, revision: int | None, query: Callable[[OpenAudit], Result]
    ) -> Result:
        """The result of a query; repeated once if files were replaced while it read."""
        root = self.root(audit_id)
        opened = self._opened(root, revision)
        try:
            return query(opened)
        except StorageError:
            fresh = self._reopened(root, revision, instead_of=opened)
            return query(fresh)

    def _opened(self, root: str, revision: int | None) -> OpenAudit:
        key = (root, revision)
        with self._lock:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
        if found is None or found.is_outdated():
            return self._reopened(root, revision, instead_of=found)
        return found

    def _reopened(
        self, root: str, revision: int | None, *, instead_of: OpenAudit | None
    ) -> OpenAudit:
        key = (root, revision)
        with self._lock:
            opening = self._opening.setdefault(key, threading.Lock())
        with opening:
            found = self._open.get(key)
            if found is not None and found is not instead_of:
                return found  # another thread has opened it
            try:
                opened = OpenAudit(root, revision, self._database)
            except DataError as error:  # there is no audit with that number
                raise NotFoundError(str(error)) from error
            with self._lock:
                self._open[key] = opened
                self._open.move_to_end(key)
                while len(self._open) > MAX_OPEN:
                    self._open.popitem(last=False)
            return opened


def _file_versions(root: str) -> tuple[str | None, ...]:
    """Changes when a run's audit changes; a few requests, however large the run."""
    paths = RunPaths(Storage(root))
    keys = (paths.RUN, paths.VIDEO_LIST)
    return (*(paths.root.version(key) for key in keys), str(AuditStore(paths).numbers()))
