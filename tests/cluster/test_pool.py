"""The pool of actors, on a real Ray."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import ray

from csl_dist.cluster.pool import ActorPool
from csl_dist.errors import CslError, DataError

# Ray's workers can't import a test's module.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = [pytest.mark.usefixtures("ray_session"), pytest.mark.xdist_group("ray")]


class Worker:
    """Notes each call in a folder, and does what the task's name says."""

    def __init__(self, folder: Path, broken: bool = False):
        if broken:
            raise DataError("the constructor's own sentence")
        self._folder = folder

    def work(self, task: str) -> None:
        calls = len(list(self._folder.glob(f"{task}-*")))
        (self._folder / f"{task}-{calls}").touch()
        if task.startswith("dies") and calls < int(task.split("_")[1]):
            os._exit(1)
        if task == "wrong":
            raise DataError("the task's own sentence")


def results(tasks: list[str], num_actors: int = 2, **arguments: Any) -> list[str]:
    actor = ray.remote(num_cpus=0.5)(Worker)
    with ActorPool(lambda: actor.remote(**arguments), num_actors=num_actors, max_retries=2) as pool:
        return sorted(done.task for done in pool.run(tasks))


def test_every_task_is_done_once(tmp_path: Path) -> None:
    tasks = [f"t{number:02d}" for number in range(20)]
    assert results(tasks, folder=tmp_path) == tasks
    assert len(list(tmp_path.iterdir())) == 20


def test_task_of_a_lost_actor_is_done_by_another(tmp_path: Path) -> None:
    assert results(["a", "dies_2", "b"], folder=tmp_path) == ["a", "b", "dies_2"]
    assert len(list(tmp_path.glob("dies_2-*"))) == 3


def test_task_that_always_kills_its_actor_ends_the_work(tmp_path: Path) -> None:
    with pytest.raises(CslError, match="lost 3 times on the same unit"):
        results(["dies_9"], folder=tmp_path)


def test_mistake_in_a_task_is_raised_as_itself_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the task's own sentence"):
        results(["wrong"], folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_mistake_in_the_constructor_ends_the_work_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CslError, match="can't start: .*the constructor's own sentence$"):
        results(["a"], folder=tmp_path, broken=True)


def test_actors_that_find_no_room_hold_nothing_up(tmp_path: Path) -> None:
    tasks = [f"t{number}" for number in range(60)]
    assert len(results(tasks, num_actors=50, folder=tmp_path)) == 60


class Reader:
    """Notes what it reads at once, and works on it in turn; dies of a task named so, once."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._turn = threading.Lock()

    def work(self, task: str) -> float:
        (self._folder / f"read-{task}").touch()
        with self._turn:
            time.sleep(0.5)
            if task == "dies" and not (self._folder / "died").exists():
                (self._folder / "died").touch()
                os._exit(1)
        return time.monotonic()


def read_ahead(tasks: list[str], folder: Path) -> tuple[list[str], list[int], int]:
    """The tasks done, how many were in flight as each was, and how many actors were lost."""
    actor = ray.remote(num_cpus=1, max_concurrency=2)(Reader)
    with ActorPool(lambda: actor.remote(folder), num_actors=1, max_retries=1) as pool:
        done = list(pool.run(tasks, prefetch=True))
    return [d.task for d in done], [len(d.in_flight) for d in done], pool.num_lost


def test_next_task_is_handed_over_while_an_actor_works(tmp_path: Path) -> None:
    tasks, in_flight, _ = read_ahead(["a", "b", "c", "d"], tmp_path)
    assert sorted(tasks) == ["a", "b", "c", "d"]
    assert in_flight == [1, 1, 0, 0], "the last task waits for whoever is free first"


def test_actor_lost_with_two_tasks_is_replaced_once(tmp_path: Path) -> None:
    tasks, _, num_lost = read_ahead(["dies", "b", "c"], tmp_path)
    assert sorted(tasks) == ["b", "c", "dies"]
    assert num_lost == 1


def test_actors_stay_for_the_next_tasks(tmp_path: Path) -> None:
    actor = ray.remote(num_cpus=0.5)(Worker)
    made = []

    def make_actor() -> Any:
        made.append(actor.remote(tmp_path))
        return made[-1]

    with ActorPool(make_actor, num_actors=2, max_retries=0) as pool:
        for tasks in (["a"], ["b", "c"], ["d", "e", "f"]):
            assert sorted(done.task for done in pool.run(tasks)) == tasks
    assert len(made) == 2


class Uneven:
    """Takes its own time for a task."""

    def __init__(self, seconds: float):
        self._seconds = seconds

    def work(self, task: int) -> float:
        time.sleep(self._seconds)
        return self._seconds


@pytest.mark.parametrize("prefetch", [False, True])
def test_slow_actor_does_not_hold_the_others_back(prefetch: bool) -> None:
    actor = ray.remote(num_cpus=0.5)(Uneven)
    paces = iter([0.05, 1.0])
    with ActorPool(lambda: actor.remote(next(paces)), num_actors=2, max_retries=0) as pool:
        pool.start(2)
        pool.wait_until_started()
        done = [d.result for d in pool.run(range(24), prefetch=prefetch)]
    assert done.count(1.0) <= 3, "the fast one has done nearly all"
    assert done.count(0.05) >= 21
