"""Look at a dataset on disk and draft a config for it.

The user's folder is only read: a manifest that is made for it goes beside the config.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from csl_dist.data.dataset import Dataset
from csl_dist.data.formats.tables import SEGMENTS
from csl_dist.data.layouts import LAYOUTS
from csl_dist.data.layouts.documents import DocumentLayout
from csl_dist.data.layouts.guessed import draft_table
from csl_dist.data.layouts.label_files import files_at
from csl_dist.data.layouts.label_sets import SegmentTracks
from csl_dist.data.layouts.layout import Draft, FolderLayout
from csl_dist.data.layouts.manifest import LAYOUT as MANIFEST
from csl_dist.data.media.sources import MediaNeed
from csl_dist.data.splits import balanced_seed
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import CslError, DataError
from csl_dist.storage.files import AnyPath
from csl_dist.types import Media

MEDIA_WORDS = {
    Media.VIDEO: "video files",
    Media.FRAMES: "folders of frames",
    Media.FEATURES: "ready features",
}
NEAREST = 3
"""Layouts that are named where none fits."""
PERSON = re.compile(
    r"(?<![A-Za-z0-9])(p|s|u|h|sub|subj|subject|person|participant|patient|user|surgeon)[0-9]+"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""Who is seen, in ids such as `Knot_Tying_S02_T01` or `P03_cam01`."""
JIGSAWS_SURGEON = "^(?:Suturing|Needle_Passing|Knot_Tying)_([A-Z])[0-9]{3}$"
"""In ids as JIGSAWS was published, such as `Suturing_B001`."""
VIDEOS_A_PERSON = 1.5
"""In the mean, at the least: where nearly every video has its own, nothing is kept together."""


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
        near = sorted(lacking, key=lambda name: (_distance(name, path), len(lacking[name])))
        near = near[:NEAREST]
        others = [name for name in LAYOUTS if name not in near]
        reasons = "; ".join(f"{name} lacks {', '.join(lacking[name])}" for name in near)
        if any(str(file).endswith((".csv", ".tsv")) for file in files_at(path, SEGMENTS)):
            raise DataError(
                f"{error} (read as a table of segments; `csl init LAYOUT {path}` says what another "
                f"layout lacks, of which {', '.join(near)} are nearest)"
            ) from error
        raise DataError(
            f"{path} has none of the known layouts: {reasons} (also known: {', '.join(others)}); "
            "for videos with label files of the same name, use `csl init manifest`; for a table of "
            f"times, `csl init segments`, which says: {error}"
        ) from error
    return "segments"


def _distance(name: str, path: AnyPath) -> int:
    """0 where one of a layout's folders is there, 1 for files of a format's ending, 2 for none.

    A folder that lacks its videos is nearer than another kind.
    """
    layout = LAYOUTS[name]
    if isinstance(layout, FolderLayout):
        num_parts = len(layout.label_parts) + len(layout.media_parts)
        return 0 if len(layout.missing(path)) < num_parts else 2
    is_like = isinstance(layout, DocumentLayout) and files_at(path, layout.format)
    return 1 if is_like else 2


def refuse_unknown(layout: str) -> None:
    """Raises DataError where there is no such layout."""
    if layout not in ("auto", *LAYOUTS):
        raise DataError(f"layout {layout!r} is not one of auto, {', '.join(LAYOUTS)}")


def draft_config(layout: str, path: AnyPath, out: Path, *, fps: float | None = None) -> Draft:
    """What the config of a folder says; may write a manifest beside `out`.

    `fps` are label entries per second, for a manifest that is made of files that do not say them.
    """
    refuse_unknown(layout)
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if layout == "auto":
        layout = recognise(path)
    if layout == MANIFEST.name:
        return MANIFEST.draft(path, out, fps=fps)
    if fps is not None:
        raise DataError(
            f"--fps goes with `csl init manifest` alone; the config of the {layout} layout has the "
            "rate, as dataset.labels_fps or features_fps"
        )
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


def with_settings(
    draft: Draft, dataset: Dataset, settings: Mapping[str, tuple[object, str]]
) -> Draft:
    """The draft with settings of a recipe, each with its reason.

    Folds only where it has some, or where the dataset does not say what to train on and what not.
    """
    is_split = any(fold.train and fold.held_out for fold in dataset.folds)
    folded = "folds" in draft.dataset or not is_split
    chosen = {key: own for key, own in settings.items() if key != "folds" or folded}
    return replace(
        draft,
        dataset=draft.dataset | {key: value for key, (value, _) in chosen.items()},
        notes=draft.notes | {key: why for key, (_, why) in chosen.items()},
    )


def with_group(draft: Draft, dataset: Dataset) -> Draft:
    """The draft with a pattern of who is seen, where it has folds and ids tell it.

    A person has habits: a model that has seen them elsewhere takes their odd labels for usual.
    """
    is_known = "group" in draft.dataset or any(video.group for video in dataset.videos)
    pattern = guessed_group([video.id for video in dataset.videos])
    if "folds" not in draft.dataset or is_known or pattern is None:
        return draft
    return replace(
        draft,
        dataset=draft.dataset | {"group": pattern},
        notes=draft.notes | {"group": "who is seen, by the ids: a person stays in one fold"},
    )


def guessed_group(ids: Sequence[str]) -> str | None:
    """A pattern that finds who is seen in every id; None where ids do not tell that."""
    found = [PERSON.search(video) for video in ids]
    words = {match.group(1) for match in found if match}
    pattern = f"(?<![A-Za-z0-9]){words.pop()}[0-9]+" if len(words) == 1 else JIGSAWS_SURGEON
    people = [re.search(pattern, video) for video in ids]
    if not all(people):
        return None
    num_people = len({match.group(match.lastindex or 0) for match in people if match})
    enough = num_people >= 2 and len(ids) >= VIDEOS_A_PERSON * num_people
    return pattern if enough else None


def with_even_folds(draft: Draft, dataset: Dataset, classes: Mapping[str, frozenset[int]]) -> Draft:
    """The draft with a seed that divides its videos about evenly; `classes` by video."""
    seed = balanced_seed(dataset.videos, int(str(draft.dataset["folds"])), classes)
    return replace(
        draft,
        dataset=draft.dataset | {"fold_seed": seed},
        notes=draft.notes
        | {"fold_seed": "folds of about the same size, whose models see as many classes as can be"},
    )


def told(draft: Draft, dataset: Dataset) -> Iterator[tuple[str, str]]:
    """What was found, a name and words each; `dataset` may list videos without media."""
    yield "layout", draft.layout
    yield "videos", _videos(dataset)
    tracks = _tracks(dataset)
    if "track" in draft.notes:
        yield "track", f"{draft.dataset['track']}"
    elif tracks:
        yield "track", f"{tracks[0]}, the only one"
    yield "labels", _labels(dataset)
    yield "classes", _some(dataset.classes)
    about = {
        "groups": {video.group for video in dataset.videos},
        "procedures": {video.procedure for video in dataset.videos},
    }
    for name, found in about.items():
        names = tuple(sorted(one for one in found if one))
        if names:
            yield name, _some(names)
    for note in dataset.notes:
        yield "note", note


def guesses(draft: Draft) -> Iterator[tuple[str, str]]:
    """Keys of the config that were guessed or chosen, each with its value and why."""
    for key, note in draft.notes.items():
        value = draft.dataset[key]
        # A note on a map says what is in it.
        yield key, note if isinstance(value, dict) else f"{value} ({note})"


def _videos(dataset: Dataset) -> str:
    """How many there are, and of what."""
    kinds = Counter(MEDIA_WORDS[v.media] if v.source else "without media" for v in dataset.videos)
    words = ", ".join(
        kind if count == len(dataset.videos) else f"{count:,} {kind}"
        for kind, count in kinds.items()
    )
    return f"{len(dataset.videos):,} ({words})"


def _tracks(dataset: Dataset) -> list[str]:
    tracks = dataset.read_track
    if not isinstance(tracks, SegmentTracks):
        return []
    names = {segment.track for own in tracks.segments.values() for segment in own}
    return sorted(name for name in names if name)


def _some(names: tuple[str, ...]) -> str:
    return f"{len(names):,}: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"


def _labels(dataset: Dataset) -> str:
    """How much is labelled, and how finely."""
    seconds, num_segments, num_open = 0.0, 0, 0
    rates: set[float] = set()
    for video in dataset.videos:
        try:
            track = dataset.track(video)
        except CslError:
            continue
        if isinstance(track, SegmentTrack):
            ends = [s for s in track.segments if s.stop_seconds < inf]
            num_open += len(track.segments) - len(ends)
            seconds += sum(s.seconds for s in ends)
            num_segments += len(track.segments)
        else:
            rate = getattr(track, "fps", 0.0)
            rates.add(rate)
            seconds += track.num_frames(rate)[0] / rate
    length = length_words(seconds)
    if num_segments:
        mean = f"{seconds / max(1, num_segments - num_open):.1f} s in the mean"
        more = f"; {num_open:,} last until the end of their video" if num_open else ""
        return f"{length}; {num_segments:,} segments, {mean}{more}"
    if not rates:
        return "none that can be read"
    noun = "label" if rates == {1.0} else "labels"
    return f"{length}; {' and '.join(f'{rate:g}' for rate in sorted(rates))} {noun} a second"


def length_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
