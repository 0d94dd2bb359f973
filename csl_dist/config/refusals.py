"""What is wrong with a config, as one sentence: the key, what it must be, the nearest valid key."""

import dataclasses
import difflib
from typing import Any, get_args

from pydantic_core import ErrorDetails

from csl_dist.config.dataset import DATASET_SECTIONS
from csl_dist.config.run import RunConfig
from csl_dist.config.stages import ScorerConfig

MAX_SHOWN = 200
"""Characters of a wrong value that a sentence repeats."""


def sentence(detail: ErrorDetails) -> str:
    parts, layout = _without_tags([str(part) for part in detail["loc"]])
    key = ".".join(parts)
    match detail["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden" if parts == ["reduce"]:
            return "unknown key 'reduce'; it is `score` now, and what was `score` is `predict`"
        case "unexpected_keyword_argument" | "extra_forbidden":
            return _unknown_key(parts, layout)
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"{key!r} is missing"
        case "dataclass_type" | "dict_type" | "model_attributes_type":
            return f"{key!r} is {detail['input']!r}, but must be a section of keys"
        case "union_tag_invalid":
            names = ", ".join(DATASET_SECTIONS)
            return f"'{key}.layout' is {detail['ctx']['tag']!r}, but the layouts are {names}"
        case "value_error":
            return f"{key}: {detail['ctx']['error']}" if key else str(detail["ctx"]["error"])
        case _:
            return f"{key!r} is {_shown(detail['input'])}: {detail['msg'].lower()}"


def _shown(value: object) -> str:
    """A value as it stands in a config, or its beginning."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _without_tags(parts: list[str]) -> tuple[list[str], str]:
    """The keys of a path, without what says which member of a union was tried; and the layout."""
    match parts:
        case ["dataset", layout, "splits", _, *rest]:
            return ["dataset", "splits", *rest], layout
        case ["dataset", layout, *rest]:
            return ["dataset", *rest], layout
        case _:
            return parts, ""


def _unknown_key(parts: list[str], layout: str) -> str:
    *sections, name = parts
    if sections == ["dataset"]:
        owners = [other for other in DATASET_SECTIONS if name in _valid_keys(sections, other)]
        if owners:
            return f"dataset.{name} belongs to the layout {owners[0]}, but this is {layout}"
    valid = _valid_keys(sections, layout)
    near = difflib.get_close_matches(name, valid, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(valid)}"
    return f"unknown key {'.'.join(parts)!r}; {hint}"


def _valid_keys(sections: list[str], layout: str) -> list[str]:
    """Names of the fields of the section at a path from the top."""
    section: Any = RunConfig
    for name in sections:
        if section is RunConfig and name == "dataset":
            section = DATASET_SECTIONS[layout]
        elif section is RunConfig and name == "scorers":
            section = dict
        elif section is dict:
            section = ScorerConfig
        else:
            types = (field.type for field in dataclasses.fields(section) if field.name == name)
            section = _section_in(next(types))
    return [field.name for field in dataclasses.fields(section)]


def _section_in(annotation: Any) -> Any:
    """The dataclass in a field's type, such as `AdaptConfig | None`; None where there is none."""
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return annotation
    found = (_section_in(inner) for inner in get_args(annotation))
    return next((section for section in found if section is not None), None)
