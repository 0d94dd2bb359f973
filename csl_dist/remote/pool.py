"""A pool of actors that take the next task as they get free.

Ray's own ActorPool can't hand over a task's exception. This pool holds the actors itself: a task
whose actor is lost goes to another, a limited number of times; any other error ends the work. No
task waits for an actor that has not started: where a cluster grows, its new nodes join in; where it
shrinks, the actors that are left do the work.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import ray
from ray.exceptions import RayActorError, RayError

from csl_dist.errors import CslError
from csl_dist.remote.session import user_error

Task = TypeVar("Task")


def run_on_actors(
    tasks: Sequence[Task],
    *,
    make_actor: Callable[[], Any],
    num_actors: int,
    max_retries: int,
) -> Iterator[Task]:
    """Calls `actor.work` with each task; yields tasks as they are done, in any order.

    More actors than fit the cluster are no harm: the rest wait for room.
    """
    waiting = deque((task, 0) for task in tasks)
    idle: list[Any] = []
    starting: dict[Any, Any] = {}
    running: dict[Any, tuple[Any, Task, int]] = {}

    def start_actor() -> None:
        actor = make_actor()
        starting[actor.__ray_ready__.remote()] = actor

    try:
        for _ in range(min(num_actors, len(tasks))):
            start_actor()
        num_lost_starting = 0
        while waiting or running:
            while waiting and idle:
                actor = idle.pop()
                task, tries = waiting.popleft()
                running[actor.work.remote(task)] = (actor, task, tries)
            [ready], _ = ray.wait([*running, *starting], num_returns=1)
            if ready in starting:
                actor = starting.pop(ready)
                try:
                    _get(ready)
                except RayActorError as error:
                    num_lost_starting += 1
                    if num_lost_starting > max_retries:
                        raise _lost(error, num_lost_starting, "while it started") from None
                    start_actor()
                else:
                    idle.append(actor)
                continue
            actor, task, tries = running.pop(ready)
            try:
                _get(ready)
            except RayActorError as error:
                if tries >= max_retries:
                    raise _lost(error, tries + 1, "on the same unit") from None
                waiting.appendleft((task, tries + 1))
                start_actor()
                continue
            idle.append(actor)
            yield task
    finally:
        working = [actor for actor, _, _ in running.values()]
        for actor in [*idle, *starting.values(), *working]:
            ray.kill(actor)


def _get(ready: Any) -> None:
    """Raises what a call raised: the loss of an actor, a user's mistake, or Ray's own error."""
    try:
        ray.get(ready)
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
