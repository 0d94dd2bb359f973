"""What the benchmarks share: their options, the seconds of a call, and how figures are printed."""

import argparse
import json
import resource
import time
from collections.abc import Callable, Mapping
from typing import Any

Figures = Mapping[str, Any]
"""Numbers by name, or by case and name."""


def parser_of(purpose: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark, whose module docstring says what it is for."""
    parser = argparse.ArgumentParser(
        description=purpose, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def add_repeats(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--repeats", type=positive, default=default, help="measurements; the median counts"
    )


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def seconds_of(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def driver_mib() -> int:
    """The most memory that this process has held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def print_figures(figures: Figures, *, as_json: bool) -> None:
    """One JSON object, or a line for each figure or case."""
    if as_json:
        print(json.dumps(figures))
        return
    width = max(20, *(len(name) + 2 for name in figures))
    for name, value in figures.items():
        if isinstance(value, Mapping):
            parts = (f"{key} {_shown(part)}" for key, part in value.items())
            print(f"{name:<{width}}{'  '.join(parts)}")
        else:
            print(f"{name:<{width}}{_shown(value):>10}")


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
