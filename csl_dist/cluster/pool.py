"""A pool of actors; each takes the next task as soon as it is free.

Ray's own ActorPool can't return a task's exception. This pool holds the actors itself: if an actor
is lost, its task goes to another one, a limited number of times; any other error ends the work. No
task waits for an actor that has not started: when a cluster grows, its new nodes join; when it
shrinks, the remaining actors do the work.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import RayActorError, RayError

from csl_dist.cluster.session import user_error
from csl_dist.errors import CslError

Task = TypeVar("Task")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[Task]):
    """A finished task, and the state of the pool."""

    task: Task
    result: Any
    in_flight: list[Task]
    """Tasks that actors are working on."""


@dataclass(slots=True, eq=False)
class _Member:
    """An actor, and the number of tasks that it has."""

    actor: Any
    num_tasks: int = 0


class ActorPool:
    """Actors that start with the first tasks and end with the `with` block."""

    def __init__(self, make_actor: Callable[[], Any], *, num_actors: int, max_retries: int):
        """There may be more actors than fit the cluster: the rest wait until there is room."""
        self._make_actor = make_actor
        self.num_actors = num_actors
        self._max_retries = max_retries
        self.num_lost = 0
        """Actors lost so far."""
        self._num_lost_starting = 0
        self._starting: dict[Any, Any] = {}
        self._members: list[_Member] = []
        self._waiting: deque[tuple[Any, int]] = deque()
        self._running: dict[Any, tuple[_Member, Any, int]] = {}

    def __enter__(self) -> "ActorPool":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in [*(member.actor for member in self._members), *self._starting.values()]:
            ray.kill(actor)

    def start(self, num_tasks: int) -> None:
        """Starts as many further actors as this number of tasks can use."""
        num_started = len(self._members) + len(self._starting)
        for _ in range(min(self.num_actors, num_tasks) - num_started):
            self._start_actor()

    def wait_until_started(self) -> None:
        """Waits for all actors; without this, tasks begin with the first actor."""
        while self._starting:
            [ready], _ = ray.wait([*self._starting], num_returns=1)
            self._add_member(ready)

    def run(
        self, tasks: Sequence[Task], *, method: str = "work", prefetch: bool = False
    ) -> Iterator[Done[Task]]:
        """Calls an actor's method with each task; yields tasks as they finish, in any order.

        With `prefetch`, a busy actor already gets its next task and may read its inputs; except for
        the last few tasks, for which another actor may be free earlier.
        """
        self._waiting = deque((task, 0) for task in tasks)
        self.start(len(tasks))
        while self._waiting or self._running:
            self._assign_tasks(method, prefetch)
            [ready], _ = ray.wait([*self._running, *self._starting], num_returns=1)
            if ready in self._starting:
                self._add_member(ready)
                continue
            done = self._finish(ready)
            if done is not None:
                yield done

    def _assign_tasks(self, method: str, prefetch: bool) -> None:
        for member in self._members:
            if self._waiting and member.num_tasks == 0:
                self._assign(member, method)
        for member in self._members if prefetch else ():
            if len(self._waiting) > len(self._members) and member.num_tasks == 1:
                self._assign(member, method)

    def _assign(self, member: _Member, method: str) -> None:
        task, tries = self._waiting.popleft()
        self._running[getattr(member.actor, method).remote(task)] = (member, task, tries)
        member.num_tasks += 1

    def _finish(self, ready: Any) -> Done[Any] | None:
        """A task's result; None if its actor was lost, so that the task waits again."""
        member, task, tries = self._running.pop(ready)
        member.num_tasks -= 1
        try:
            result = _get(ready)
        except RayActorError as error:
            if tries >= self._max_retries:
                raise _lost(error, tries + 1, "on the same unit") from None
            self._waiting.appendleft((task, tries + 1))
            self._replace(member)
            return None
        in_flight = [running for _, running, _ in self._running.values()]
        return Done(task=task, result=result, in_flight=in_flight)

    def _start_actor(self) -> None:
        actor = self._make_actor()
        self._starting[actor.__ray_ready__.remote()] = actor

    def _add_member(self, ready: Any) -> None:
        """An actor has started, or died while it started."""
        actor = self._starting.pop(ready)
        try:
            _get(ready)
        except RayActorError as error:
            self.num_lost += 1
            self._num_lost_starting += 1
            if self._num_lost_starting > self._max_retries:
                raise _lost(error, self._num_lost_starting, "while it started") from None
            self._start_actor()
        else:
            self._members.append(_Member(actor))

    def _replace(self, member: _Member) -> None:
        """Starts a new actor for a lost one; only once, even if it had two tasks."""
        if member in self._members:
            self.num_lost += 1
            self._members.remove(member)
            self._start_actor()


def _get(ready: Any) -> Any:
    """The result of a call; raises a lost actor, a user's error, or an error of Ray."""
    try:
        return ray.get(ready)
    except RayActorError as error:
        if error.actor_init_failed:
            # Not lost: the next actor would fail too. Ray gives only the text of the error.
            reason = str(error).strip().splitlines()[-1]
            raise CslError(f"a worker can't start: {reason}") from error
        raise
    except RayError as error:
        cause = user_error(error)
        raise cause if cause is not None else error from None


def _lost(error: RayActorError, times: int, when: str) -> CslError:
    return CslError(
        f"a worker was lost {times} times {when} ({error}); is it out of memory? Run again to "
        "continue with the rest"
    )
