"""Many small requests side by side: each of them is mostly waiting."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

REQUESTS_AT_ONCE = 32
"""Of one process."""
NEAR_SECONDS = 0.0005
"""Requests that take less on average wait for nobody, such as those for files of this machine."""


def at_once(request: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What `request` returns for each item, in their order, while many wait side by side.

    Threads take the next item themselves: a future for each would take longer than a local file.
    None are started as long as nobody waits: many that do work would take ten times the CPU.
    """
    asked = list(items)
    results: list[Any] = _while_near(request, asked)
    num_near, num_left = len(results), len(asked) - len(results)
    if not num_left:
        return results
    results += [None] * num_left
    errors: dict[int, Exception] = {}
    left = iter(range(num_near, len(asked)))  # whose steps no two threads take

    def answer() -> None:
        for number in left:
            try:
                results[number] = request(asked[number])
            except Exception as error:
                errors[number] = error
                deque(left, maxlen=0)  # nobody begins another one

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        threads = [pool.submit(answer) for _ in range(min(REQUESTS_AT_ONCE, num_left))]
        try:
            wait(threads)
        finally:
            deque(left, maxlen=0)
    if errors:
        raise errors[min(errors)]
    return results


def _while_near(request: Callable[[Item], Result], items: list[Item]) -> list[Result]:
    """What `request` returns for the first items, up to where it turns out that they wait."""
    results: list[Result] = []
    begun = time.perf_counter()
    for item in items:
        results.append(request(item))
        if time.perf_counter() - begun > NEAR_SECONDS * len(results):
            break
    return results
