"""Look at a dataset on disk and draft a config for it.

The user's folder is only read: a manifest that is made for it goes beside the config.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from csl_dist.data.dataset import Dataset
from csl_dist.data.layouts import LAYOUTS
from csl_dist.data.layouts.layout import Draft, missing_parts
from csl_dist.data.media.sources import MediaNeed
from csl_dist.data.splits import balanced_seed
from csl_dist.errors import DataError


def recognise(path: Path, *, media: MediaNeed = "required") -> str:
    """The layout of a folder, or a sentence on what each one misses."""
    lacking = {name: missing_parts(layout, path, media) for name, layout in LAYOUTS.items()}
    found = [layout for layout, missing in lacking.items() if not missing]
    if not found:
        reasons = "; ".join(f"{name} lacks {', '.join(m)}" for name, m in lacking.items())
        raise DataError(
            f"{path} has none of the known layouts: {reasons}; for videos with label files of "
            "the same name, use `csl init manifest`"
        )
    return found[0]


def draft_config(layout: str, path: Path, out: Path) -> Draft:
    """What the config of a folder says; may write a manifest beside `out`."""
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if layout == "auto":
        layout = recognise(path)
    if layout not in LAYOUTS:
        raise DataError(f"layout {layout!r} is not one of auto, {', '.join(LAYOUTS)}")
    return LAYOUTS[layout].draft(path, out)


def config_text(draft: Draft, name: str) -> str:
    """The YAML file of a draft; everything else has good defaults."""
    lines = [f"root: runs/{name}", "dataset:", f"  layout: {draft.layout}"]
    for key, value in draft.dataset.items():
        note = f"  # {draft.notes[key]}" if key in draft.notes else ""
        # JSON's quotes keep a path with a colon or a hash in one piece.
        text = json.dumps(str(value)) if isinstance(value, Path) else value
        lines.append(f"  {key}: {text}{note}")
    return "\n".join([*lines, ""])


def with_settings(draft: Draft, settings: Mapping[str, tuple[object, str]]) -> Draft:
    """The draft with settings of a recipe, each with its reason; folds only where it has some."""
    chosen = {key: own for key, own in settings.items() if key != "folds" or key in draft.dataset}
    return replace(
        draft,
        dataset=draft.dataset | {key: value for key, (value, _) in chosen.items()},
        notes=draft.notes | {key: why for key, (_, why) in chosen.items()},
    )


def with_even_folds(draft: Draft, dataset: Dataset) -> Draft:
    """The draft with a seed that divides its videos about evenly."""
    seed = balanced_seed(dataset.videos, int(str(draft.dataset["folds"])))
    return replace(
        draft,
        dataset=draft.dataset | {"fold_seed": seed},
        notes=draft.notes | {"fold_seed": "makes folds of about the same size"},
    )
