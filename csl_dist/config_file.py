"""Config files: read, overridden and checked.

Unknown keys and values of the wrong type are refused with the key, the file and the nearest valid
key.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from csl_dist.config import RunConfig, ScorerConfig
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
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys such as `root:` and `dataset:`")
    for override in overrides:
        set_value(data, override)
    return with_absolute_paths(parse_config(data, where=str(path)))


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """The config with local paths made absolute, so that it means the same in any folder."""

    def absolute(path: str) -> str:
        return path if "://" in path else str(Path(path).absolute())

    truth, media = config.dataset.truth, config.dataset.media
    store, weights = config.features.store, config.features.weights
    named = weights in ("imagenet", "random")
    return dataclasses.replace(
        config,
        root=absolute(config.root),
        dataset=dataclasses.replace(
            config.dataset,
            path=absolute(config.dataset.path),
            truth=truth and absolute(truth),
            media=media and absolute(media),
        ),
        features=dataclasses.replace(
            config.features,
            store=store and absolute(store),
            weights=weights if named else absolute(weights),
        ),
    )


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
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"--set {override}: the value is not valid YAML: {reason}") from error


def parse_config(data: Mapping[str, Any], *, where: str) -> RunConfig:
    """Checks raw data and makes the config of it; `where` names the source in errors."""
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        problems = "; ".join(_sentence(detail) for detail in error.errors())
        raise ConfigError(f"{where}: {problems}") from None


def config_as_dict(config: RunConfig) -> dict[str, Any]:
    """The resolved config as JSON-like data; `parse_config` reads it back."""
    data: dict[str, Any] = _ADAPTER.dump_python(config, mode="json")
    return data


def _sentence(detail: ErrorDetails) -> str:
    parts = [str(part) for part in detail["loc"]]
    key = ".".join(parts)
    match detail["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            valid = _valid_keys(parts[:-1])
            near = difflib.get_close_matches(parts[-1], valid, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(valid)}"
            return f"unknown key {key!r}; {hint}"
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"{key!r} is missing"
        case "dataclass_type" | "dict_type":
            return f"{key!r} is {detail['input']!r}, but must be a section of keys"
        case "value_error":
            return f"{key}: {detail['ctx']['error']}" if key else str(detail["ctx"]["error"])
        case _:
            return f"{key!r} is {detail['input']!r}: {detail['msg'].lower()}"


def _valid_keys(sections: list[str]) -> list[str]:
    """Names of the fields of the section at a path from the top."""
    section: Any = RunConfig
    for name in sections:
        if section is RunConfig and name == "scorers":
            section = dict
        elif section is dict:
            section = ScorerConfig
        else:
            section = next(f.type for f in dataclasses.fields(section) if f.name == name)
    return [field.name for field in dataclasses.fields(section)]
