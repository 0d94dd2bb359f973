"""Rates: what a device was measured to reach, so that one machine measures and another plans."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from csl_dist.errors import ConfigError

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRate:
    """What a stage reaches on one device."""

    flops_per_second: Rate
    num_frames: int
    """Frames of the passes that were timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one GPU, or one core of a CPU, reaches."""

    device: str
    on_gpu: bool
    stages: dict[str, StageRate]
    """By the names that a plan has for them."""
    decoded_per_cpu: Rate | None
    """Frames that a core decodes and fits in a second; None where there is nothing to decode."""

    def flops_per_second(self, stage: str) -> float:
        if stage not in self.stages:
            measured = ", ".join(self.stages)
            raise ConfigError(
                f"no rate was measured for {stage!r}, only for {measured}; measure this config "
                "with `csl plan CONFIG --measure FILE`"
            )
        return self.stages[stage].flops_per_second


_ADAPTER = TypeAdapter(Rates)


def write_rates(rates: Rates, path: Path) -> None:
    try:
        path.write_bytes(_ADAPTER.dump_json(rates, indent=2) + b"\n")
    except OSError as error:
        raise ConfigError(f"can't write the rates to {path}: {error.strerror}") from error


def read_rates(path: Path) -> Rates:
    """The rates that `write_rates` wrote, here or on another machine."""
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"can't read the rates in {path}: {error.strerror}; measure them with `csl plan CONFIG "
            "--measure FILE`"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{path} holds no rates ({where + ': ' if where else ''}{first['msg']}); it must be a "
            "file that `csl plan CONFIG --measure FILE` wrote"
        ) from error
