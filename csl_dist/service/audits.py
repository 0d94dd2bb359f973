"""AuditPool: run roots by id, opened when asked for, kept within a bound, and never stale for long.

A run may go on while it is served: an audit is opened again when its files changed, or, as long as
it has no flags, after some seconds. What vanished under a reader is read once more from the new.
"""

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import pandas as pd

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.errors import CslError, DataError, StorageError
from csl_dist.review.store import Board, ReviewStore, store_of
from csl_dist.service.settings import audit_ids
from csl_dist.storage.paths import RunLayout
from csl_dist.storage.url import Storage
from csl_dist.types import Video

MAX_OPEN = 16
"""Audits that are kept open."""
CHECK_SECONDS = 3.0
"""How long an audit is trusted to be as it was."""
UNFINISHED_SECONDS = 10.0
"""The same, of a run whose scores are still coming in."""

Key = tuple[str, int | None]
"""Run root and number of an audit; None is the newest."""
Answer = TypeVar("Answer")


class NotFoundError(CslError):
    """Something that was asked for by a name that nothing has."""


class OutdatedError(CslError):
    """Something that was meant for an audit that is no longer the newest."""


class OpenAudit:
    """An audit with what is costly to make of it."""

    def __init__(self, root: str, revision: int | None, database: str | None):
        self._state = _state(root)
        self._checked = time.monotonic()
        self.audit: Audit = open_audit(root, revision=revision)
        self._root, self._database = root, database
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Whether it is time to look for changes; true for the first who asks."""
        patience = CHECK_SECONDS if self.audit.has_flags else UNFINISHED_SECONDS
        now = time.monotonic()
        due = now - self._checked > patience
        if due:
            self._checked = now
        return due

    def is_stale(self) -> bool:
        """Whether the files tell another audit; scores that are still coming in always do."""
        return not self.audit.has_flags or _state(self._root) != self._state

    def video(self, video_id: str) -> Video:
        """A video that has scores, or will have."""
        try:
            return self.audit.video(video_id)
        except DataError as error:
            raise NotFoundError(str(error)) from error

    def scorer(self, name: str | None) -> str:
        """A scorer of the run; the one that explains flags where none is named."""
        if name is not None and name not in self.audit.scorers:
            names = ", ".join(self.audit.scorers)
            raise NotFoundError(f"there is no scorer {name!r}; the run has {names}")
        return name or self.audit.scorer

    def threshold(self, video_id: str) -> float | None:
        """The deciding score from which a video's frames are flagged; None before flags are."""
        return self.audit.verdict.thresholds.get(video_id) if self.audit.has_flags else None

    def videos(self) -> pd.DataFrame:
        """All audited videos, worst first; made once, which takes a while for thousands."""
        with self._lock:
            return self._videos

    @cached_property
    def reviews(self) -> ReviewStore:
        """Decisions on the run; a run that was submitted through the service has none yet."""
        store = store_of(self._root, self._database)
        store.create()
        return store

    @cached_property
    def board(self) -> Board:
        """The decisions that hold."""
        return Board(self.reviews, self.audit.revision)

    @cached_property
    def _videos(self) -> pd.DataFrame:
        return self.audit.videos()


class AuditPool:
    """The audits of a service; roots come from its start, and from jobs submitted through it."""

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
        # Of those that were ever asked for: opening takes seconds, and is done once for all.
        self._opening: dict[Key, threading.Lock] = {}

    def ids(self) -> dict[str, str]:
        """Run roots by id."""
        return audit_ids([*self._roots, *self._more_roots()])

    def root(self, audit_id: str) -> str:
        """The run root of an id; ids are looked up, never made into paths."""
        root = self._given.get(audit_id) or self.ids().get(audit_id)
        if root is None:
            raise NotFoundError(f"there is no audit {audit_id!r}; GET /api/audits lists them")
        return root

    @cached_property
    def _given(self) -> dict[str, str]:
        return audit_ids(self._roots)

    def read(
        self, audit_id: str, revision: int | None, query: Callable[[OpenAudit], Answer]
    ) -> Answer:
        """What a query makes of an audit; once more if files vanished while it was read."""
        root = self.root(audit_id)
        opened = self._opened(root, revision)
        try:
            return query(opened)
        except StorageError:
            fresh = self._reopened(root, revision, instead_of=opened)
            return query(fresh)

    def is_at_hand(self, audit_id: str, revision: int | None) -> bool:
        """Whether a short read takes no longer than handing it to a thread would.

        One on local disk that is open is; whether it changed is looked up beside, for the next.
        """
        root = self._given.get(audit_id, "://")
        found = self._open.get((root, revision))
        if found is None or "://" in root:
            return False
        if found.is_due():
            threading.Thread(target=self._refresh, args=(root, revision, found)).start()
        return True

    def _refresh(self, root: str, revision: int | None, found: OpenAudit) -> None:
        with contextlib.suppress(CslError):  # the next reader meets it
            if found.is_stale():
                self._reopened(root, revision, instead_of=found)

    def _opened(self, root: str, revision: int | None) -> OpenAudit:
        key = (root, revision)
        with self._lock:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
        if found is None:
            return self._reopened(root, revision, instead_of=None)
        is_stale = found.is_due() and found.is_stale()
        return self._reopened(root, revision, instead_of=found) if is_stale else found

    def _reopened(
        self, root: str, revision: int | None, *, instead_of: OpenAudit | None
    ) -> OpenAudit:
        key = (root, revision)
        with self._lock:
            opening = self._opening.setdefault(key, threading.Lock())
        with opening:
            found = self._open.get(key)
            if found is not None and found is not instead_of:
                return found  # another thread was faster
            try:
                made = OpenAudit(root, revision, self._database)
            except DataError as error:  # there is no audit of that number
                raise NotFoundError(str(error)) from error
            with self._lock:
                self._open[key] = made
                self._open.move_to_end(key)
                while len(self._open) > MAX_OPEN:
                    self._open.popitem(last=False)
            return made


def _state(root: str) -> tuple[str | None, ...]:
    """What changes when a run's audit does: a few requests, however large the run."""
    layout = RunLayout(Storage(root))
    newest = 0
    while layout.revision(newest + 1).root.exists(layout.AUDIT):
        newest += 1
    keys = (layout.RUN, layout.VIDEO_LIST, layout.AUDIT, layout.FLAGS)
    return (*(layout.root.version(key) for key in keys), str(newest))
