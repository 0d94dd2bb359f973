"""A config from a YAML file, from `--set`, or from what a run has stored."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import (
    TypeAdapter,
    ValidationError,
)

from csl_dist.config.refusals import sentence
from csl_dist.config.run import RunConfig, with_absolute_paths
from csl_dist.errors import ConfigError

_ADAPTER = TypeAdapter(RunConfig)


def load_config(path: str | Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Reads a YAML config; `overrides` are `section.key=value` as in `--set`."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"can't read the config {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the config {path} is not UTF-8 text: {error}") from error
    try:
        data = yaml.safe_load(text)
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply to be a config") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys such as `root:` and `dataset:`")
    for override in overrides:
        set_value(data, override)
    return with_absolute_paths(parse_config(data, where=str(path)))


def set_value(data: dict[str, Any], override: str) -> None:
    """Applies one `section.key=value` to a config's raw data; the value is read as YAML."""
    dotted, equals, value = override.partition("=")
    if not equals or not dotted:
        raise ConfigError(f"--set {override!r} must have the form section.key=value")
    *sections, key = dotted.split(".")
    for section in sections:
        inner = data.setdefault(section, {})
        if inner is None:
            inner = data[section] = {}
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {override}: {section} is a value, not a section")
        data = inner
    try:
        data[key] = yaml.safe_load(value)
    except RecursionError as error:
        raise ConfigError(f"--set {dotted}: the value is nested too deeply") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"--set {override}: the value is not valid YAML: {reason}") from error


def parse_config(data: Mapping[str, Any], *, where: str) -> RunConfig:
    """Checks raw data and makes the config of it; `where` names the source in errors."""
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        problems = "; ".join(sentence(detail) for detail in error.errors())
        raise ConfigError(f"{where}: {problems}") from None


def config_as_dict(config: RunConfig) -> dict[str, Any]:
    """The resolved config as JSON-like data; `parse_config` reads it back."""
    data: dict[str, Any] = _ADAPTER.dump_python(config, mode="json")
    return data
