"""A pool of actors that take the next task as they get free.

Ray's own ActorPool can't hand over a task's exception. This pool holds the actors itself: a task
whose actor is lost goes to another, a limited number of times; any other error ends the work. No
task waits for an actor that has not started: where a cluster grows, its new nodes join in; where it
shrinks, the actors that are left do the work.
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
    """A task that is done, and how the pool stands."""

    task: Task
    result: Any
    in_flight: list[Task]
    """Tasks that actors have been given and not returned."""


@dataclass(slots=True, eq=False)
class _Member:
    """An actor, and how many tasks it has been given."""

    actor: Any
    num_tasks: int = 0


class ActorPool:
    """Actors that start with the first tasks, and end with the `with` block."""

    def __init__(self, make_actor: Callable[[], Any], *, num_actors: int, max_retries: int):
        """More actors than fit the cluster are no harm: the rest wait for room."""
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
        """Starts as many actors as so many tasks can use, beside those that there are."""
        num_there = len(self._members) + len(self._starting)
        for _ in range(min(self.num_actors, num_tasks) - num_there):
            self._start_actor()

    def wait_until_started(self) -> None:
        """Waits for all actors; without this, tasks begin with the first."""
        while self._starting:
            [ready], _ = ray.wait([*self._starting], num_returns=1)
            self._welcome(ready)

    def run(
        self, tasks: Sequence[Task], *, method: str = "work", prefetch: bool = False
    ) -> Iterator[Done[Task]]:
        """Calls an actor's method with each task; yields tasks as they are done, in any order.

        With `prefetch`, an actor that is at work gets its next task too, and may read what that
        needs; not the last few tasks, for which another actor may be free earlier.
        """
        self._waiting = deque((task, 0) for task in tasks)
        self.start(len(tasks))
        while self._waiting or self._running:
            self._hand_out(method, prefetch)
            [ready], _ = ray.wait([*self._running, *self._starting], num_returns=1)
            if ready in self._starting:
                self._welcome(ready)
                continue
            done = self._settle(ready)
            if done is not None:
                yield done

    def _hand_out(self, method: str, prefetch: bool) -> None:
        for member in self._members:
            if self._waiting and member.num_tasks == 0:
                self._give(member, method)
        for member in self._members if prefetch else ():
            if len(self._waiting) > len(self._members) and member.num_tasks == 1:
                self._give(member, method)

    def _give(self, member: _Member, method: str) -> None:
        task, tries = self._waiting.popleft()
        self._running[getattr(member.actor, method).remote(task)] = (member, task, tries)
        member.num_tasks += 1

    def _settle(self, ready: Any) -> Done[Any] | None:
        """A task's result; None where its actor was lost and it waits again."""
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

    def _welcome(self, ready: Any) -> None:
        """An actor has started, or died in starting."""
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
        """Starts another actor for one that was lost, once, however many tasks it had."""
        if member in self._members:
            self.num_lost += 1
            self._members.remove(member)
            self._start_actor()


def _get(ready: Any) -> Any:
    """What a call returned; raises what it raised: an actor's loss, a user's mistake, Ray's own."""
    try:
        return ray.get(ready)
    except RayActorError as error:
        if error.actor_init_failed:
            # Not lost: the next one would fail as well. Ray hands over the text alone.
            reason = str(error).strip().splitlines()[-1]
            raise CslError(f"a worker can't start: {reason}") from error
        raise
    except RayError as error:
        cause = user_error(error)
        raise cause if cause is not None else error from None


def _lost(error: RayActorError, times: int, when: str) -> CslError:
    return CslError(
        f"a worker was lost {times} times {when} ({error}); is it out of memory? Run again to go "
        "on from what is done"
    )
