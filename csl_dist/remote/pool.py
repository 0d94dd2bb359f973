"""A pool of actors that take the next task as they get free.

Ray's own ActorPool can't hand over a task's exception. This pool holds the actors itself: a task
whose actor is lost goes to a new actor, a limited number of times; any other error ends the work.
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
    """Calls `actor.work` with each task; yields tasks as they are done, in any order."""
    waiting = deque((task, 0) for task in tasks)
    idle = [make_actor() for _ in range(min(num_actors, len(tasks)))]
    running: dict[Any, tuple[Any, Task, int]] = {}
    try:
        while waiting or running:
            while waiting and idle:
                actor = idle.pop()
                task, tries = waiting.popleft()
                running[actor.work.remote(task)] = (actor, task, tries)
            [ready], _ = ray.wait(list(running), num_returns=1)
            actor, task, tries = running.pop(ready)
            try:
                ray.get(ready)
            except RayActorError as error:
                if tries >= max_retries:
                    raise CslError(
                        f"a worker was lost {tries + 1} times on the same unit ({error}); "
                        "is it out of memory? Run again to go on from what is done"
                    ) from None
                waiting.appendleft((task, tries + 1))
                idle.append(make_actor())
                continue
            except RayError as error:
                cause = user_error(error)
                raise cause if cause is not None else error from None
            idle.append(actor)
            yield task
    finally:
        for actor in [*idle, *(actor for actor, _, _ in running.values())]:
            ray.kill(actor)
