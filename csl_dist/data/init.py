"""Look at a dataset on disk and draft a config for it.

The user's folder is only read: a manifest that is made for it goes beside the config.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

from csl_dist.data.dataset import Dataset
from csl_dist.data.layouts import LAYOUTS
from csl_dist.data.layouts.guessed import draft_table
from csl_dist.data.layouts.layout import Draft
from csl_dist.data.media.sources import MediaNeed
from csl_dist.data.splits import balanced_seed
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import CslError, DataError
from csl_dist.storage.files import AnyPath

NEAREST = 3
"""Layouts that are named where none fits."""


def recognise(path: AnyPath, *, media: MediaNeed = "required") -> str:
    """The layout of a folder or file; `segments` where it is a table that can be guessed."""
    lacking = {
        name: layout.missing(path, media) for name, layout in LAYOUTS.items() if name != "segments"
    }
    found = [layout for layout, missing in lacking.items() if not missing]
    if found:
        return found[0]
    try:
        draft_table(path)
    except DataError as error:
        # Fewest missing parts first: a folder that lacks its videos is nearer than another kind.
        near = sorted(lacking, key=lambda name: len(lacking[name]))[:NEAREST]
        others = [name for name in LAYOUTS if name not in near]
        reasons = "; ".join(f"{name} lacks {', '.join(lacking[name])}" for name in near)
        raise DataError(
            f"{path} has none of the known layouts: {reasons} (also known: {', '.join(others)}); "
            "for videos with label files of the same name, use `csl init manifest`; for a table of "
            f"times, `csl init segments`, which says: {error}"
        ) from error
    return "segments"


def draft_config(layout: str, path: AnyPath, out: Path) -> Draft:
    """What the config of a folder says; may write a manifest beside `out`."""
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if layout == "auto":
        layout = recognise(path)
    if layout not in LAYOUTS:
        raise DataError(f"layout {layout!r} is not one of auto, {', '.join(LAYOUTS)}")
    return draft_table(path) if layout == "segments" else LAYOUTS[layout].draft(path, out)


def config_text(draft: Draft, name: str) -> str:
    """The YAML file of a draft; everything else has good defaults."""
    lines = [f"root: runs/{name}", "dataset:", f"  layout: {draft.layout}"]
    for key, value in draft.dataset.items():
        note = f"  # {draft.notes[key]}" if key in draft.notes else ""
        # JSON is YAML, and its quotes keep a name with a colon or a hash in one piece.
        plain = isinstance(value, str) and value.replace("_", "").isalnum() and not value.isdigit()
        text = value if plain else json.dumps(value, default=str)
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


def told(draft: Draft, dataset: Dataset) -> Iterator[str]:
    """What was found and guessed, a line each."""
    media = {str(video.media) for video in dataset.videos if video.source}
    kinds = f" ({', '.join(sorted(media))})" if media else ""
    yield f"layout: {draft.layout}"
    yield f"videos: {len(dataset.videos):,}{kinds}, {_hours(dataset)}"
    yield f"classes: {len(dataset.classes):,} ({_some(dataset.classes)})"
    groups = {video.group for video in dataset.videos if video.group}
    if groups:
        yield f"groups: {len(groups):,} ({_some(tuple(sorted(groups)))})"
    procedures = {video.procedure for video in dataset.videos if video.procedure}
    if procedures:
        yield f"procedures: {len(procedures):,} ({_some(tuple(sorted(procedures)))})"
    for key, note in draft.notes.items():
        yield f"{key}: {draft.dataset[key]} ({note})"
    yield from dataset.notes


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _hours(dataset: Dataset) -> str:
    """How much is labelled, and how finely."""
    seconds, num_segments = 0.0, 0
    rates: set[float] = set()
    for video in dataset.videos:
        try:
            track = dataset.track(video)
        except CslError:
            continue
        if isinstance(track, SegmentTrack):
            seconds += sum(s.seconds for s in track.segments if s.stop_seconds < inf)
            num_segments += len(track.segments)
        else:
            rate = getattr(track, "fps", 0.0)
            rates.add(rate)
            seconds += track.num_frames(rate)[0] / rate
    if num_segments:
        rate_text = f"{num_segments:,} segments of {seconds / num_segments:.1f} s in the mean"
    else:
        rate_text = " and ".join(f"{rate:g}" for rate in sorted(rates)) + " labels a second"
    return f"{seconds / 3600:.2f} labelled hours, {rate_text}"
