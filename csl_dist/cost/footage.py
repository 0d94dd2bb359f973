"""Footage: how much video a run goes over, and in which use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from csl_dist.config import AdaptConfig, RunConfig, num_swapped_copies
from csl_dist.cost.storage import USUAL_SHARES, Shares
from csl_dist.data.dataset import Dataset
from csl_dist.data.facts import DatasetFacts
from csl_dist.data.feature_files import inspect
from csl_dist.data.planted import calibration_ids, share_of
from csl_dist.errors import CslError
from csl_dist.features.encoders import output_width
from csl_dist.types import Split

SUPPOSED_FPS = 25.0
TRAIN_SHARE, VALIDATION_SHARE = 50 / 80, 10 / 80
"""Of the paper's 80 videos, 50 train, and 10 validate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footage:
    """How much there is to do: lengths in sampled frames of the videos of each use."""

    train: tuple[int, ...]
    held_out: tuple[int, ...]
    """Audited videos, and those that set the threshold."""
    copies: tuple[int, ...] = ()
    """Scored once more with steps swapped."""
    has_pixels: bool
    """Whether features are to be extracted; False where the user brought them."""
    num_classes: int
    num_features: int
    num_folds: int = 1
    sample: tuple[int, ...] = ()
    """Frames of each training video that an encoder is adapted to."""
    shares: Shares = USUAL_SHARES


def copied_ids(config: RunConfig, dataset: Dataset) -> list[str]:
    """Videos that are predicted once more with two steps swapped."""
    copied = dataset.in_split(Split.VAL) or dataset.in_split(Split.AUDIT)
    ids = [video.id for video in copied]
    return sorted(calibration_ids(ids, config.corrupt, num_swapped_copies(config)))


def supposed_footage(
    config: RunConfig, *, num_videos: int, minutes: float, num_classes: int, num_features: int
) -> Footage:
    """Footage of a dataset that is not read: videos of one length, split as in the paper."""
    fps = config.dataset.fps or SUPPOSED_FPS
    frames = (round(minutes * 60 * fps),)
    folds = config.dataset.folds or 1
    num_train = num_videos if folds > 1 else round(num_videos * TRAIN_SHARE)
    num_held_out = num_videos if folds > 1 else num_videos - num_train
    num_copied = num_held_out if folds > 1 else max(1, round(num_videos * VALIDATION_SHARE))
    adapt = config.features.adapt
    return Footage(
        train=frames * num_train,
        held_out=frames * num_held_out,
        copies=frames * round(num_copied * share_of(num_swapped_copies(config), num_copied)),
        has_pixels=config.dataset.source != "features",
        num_classes=num_classes,
        num_features=num_features,
        num_folds=folds,
        sample=sample_lengths(adapt, frames * num_train, fps) if adapt is not None else (),
    )


def labelled_footage(config: RunConfig, dataset: Dataset, facts: DatasetFacts) -> Footage:
    """Lengths in sampled frames, by the labels."""
    fps = config.dataset.fps or facts.source_fps or SUPPOSED_FPS
    typical = median(facts.seconds.values()) if facts.seconds else 1.0
    frames = {
        video.id: max(1, round(facts.seconds.get(video.id, typical) * fps))
        for video in dataset.videos
    }
    in_split = {s: tuple(frames[v.id] for v in dataset.in_split(s)) for s in Split}
    held_out = in_split[Split.AUDIT] + in_split[Split.VAL]
    folds = len(dataset.folds)
    adapt, trained = config.features.adapt, held_out if folds > 1 else in_split[Split.TRAIN]
    width = output_width(replace(config.features, adapt=None))
    return Footage(
        train=trained,
        held_out=held_out,
        copies=tuple(frames[video] for video in copied_ids(config, dataset)),
        has_pixels=facts.has_pixels,
        num_classes=facts.num_classes,
        num_features=width if facts.has_pixels else _brought_width(dataset, width),
        num_folds=max(1, folds),
        sample=sample_lengths(adapt, trained, fps) if adapt is not None else (),
    )


def _brought_width(dataset: Dataset, default: int) -> int:
    for video in dataset.videos:
        try:
            expected = dataset.track(video).num_frames(video.source_fps)
            return inspect(video.source, expected).width
        except CslError:
            continue  # `check` tells of it
    return default


def sample_lengths(adapt: AdaptConfig, lengths: Sequence[int], fps: float) -> tuple[int, ...]:
    """Frames of videos of these lengths that an encoder is adapted to."""
    share = min(1.0, (adapt.fps or fps) / fps)
    return tuple(min(adapt.max_frames, max(1, round(length * share))) for length in lengths)


def unique_videos(footage: Footage) -> tuple[int, ...]:
    """Lengths of the videos, each once: with folds, all are both trained on and held out."""
    return footage.held_out if footage.num_folds > 1 else footage.train + footage.held_out
