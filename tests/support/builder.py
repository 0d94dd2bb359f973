"""Builds datasets and runs by hand, a part at a time: what a test or a benchmark does not look at.

All lies on disk as the stages leave it, so that a run is opened and read as in production. Nothing
here needs Ray, and no model is trained.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console

from csl_dist.cluster.stage import Stage
from csl_dist.config import FeaturesConfig
from csl_dist.data.media.timeline import sampled
from csl_dist.features.store import FeatureStore
from csl_dist.flag.stage import flag
from csl_dist.predict.plan import store_of
from csl_dist.predict.trajectories import Group
from csl_dist.score.store import ScoreStore
from csl_dist.score.task import Scoring
from csl_dist.storage.ledger import Unit
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import create_array
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.training.inputs import Inputs
from csl_dist.training.models import build_scorer
from csl_dist.types import Annotation, consecutive_spans

Numbers = npt.NDArray[np.floating[Any]]
Pixels = npt.NDArray[np.uint8]

WIDTH, NUM_CLASSES = 512, 7
"""Of the dataset of random numbers."""
TRAINING = "made"
MILLISECOND = Fraction(1, 1000)
HEADER = "id,source,labels,split,fps,group"


# The dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeVideo:
    """A video of a manifest: its labels and, unless its source is written elsewhere, features."""

    id: str
    split: str
    names_T: Sequence[str]
    features_TD: Numbers | None = None
    """Written as `<id>.npy`."""
    source: str = ""
    """File of the pixels or features, relative to the manifest; `<id>.npy` where it is empty."""
    group: str = ""


def write_manifest(
    folder: Path, videos: Iterable[MadeVideo], *, fps: float, classes: Sequence[str] = ()
) -> None:
    """A dataset in a folder: `manifest.csv`, a label file and features of each video."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for video in videos:
        if video.features_TD is not None:
            np.save(folder / f"{video.id}.npy", video.features_TD)
        (folder / f"{video.id}.txt").write_text(label_text(video.names_T))
        source = video.source or f"{video.id}.npy"
        rows.append(f"{video.id},{source},{video.id}.txt,{video.split},{fps:g},{video.group}")
    if classes:
        (folder / "classes.txt").write_text(label_text(classes))
    (folder / "manifest.csv").write_text(label_text([HEADER, *rows]))


def label_text(names_T: Sequence[str]) -> str:
    """A label file: one name a line."""
    return "\n".join([*names_T, ""])


def write_random_dataset(folder: Path, *, num_videos: int, num_frames: int, split: str) -> None:
    """Videos `v0`, `v1` … with random features and labels; one more is for training.

    The features lie in Zarr as extraction stores them, and beside it as .npy files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    classes = [f"step {label}" for label in range(NUM_CLASSES)]
    rng = np.random.default_rng(0)

    def videos() -> Iterator[MadeVideo]:
        for n in range(num_videos + 1):
            features_TD = rng.standard_normal((num_frames, WIDTH), dtype=np.float32)
            array = create_array(
                Storage(str(folder)),
                f"v{n}.zarr",
                shape=features_TD.shape,
                chunks=(min(num_frames, FeaturesConfig().chunk_frames), WIDTH),
                dtype=FeaturesConfig().dtype,
            )
            array[:] = features_TD.astype(array.dtype)
            yield MadeVideo(
                id=f"v{n}",
                split=split if n < num_videos else "train",
                names_T=[classes[label] for label in rng.integers(NUM_CLASSES, size=num_frames)],
                features_TD=features_TD,
                source=f"v{n}.zarr",
            )

    write_manifest(folder, videos(), fps=5, classes=classes)


def write_video(
    path: Path,
    pictures: Iterable[Pixels],
    *,
    fps: int | Fraction,
    codec: str = "libx264",
    options: Mapping[str, str] = {"preset": "ultrafast"},
    pixel_shape: Fraction = Fraction(1),
    turn: tuple[int, bool] = (0, False),
    times: Sequence[float] | None = None,
) -> None:
    """Encodes RGB pictures (height, width, 3).

    Players are asked to turn them by degrees against the clock and to mirror them; `times` are
    seconds at which they are shown, where these are not regular.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=fps, options=dict(options))
        stream.pix_fmt = "yuv420p"
        for number, pixels in enumerate(pictures):
            if number == 0:
                stream.height, stream.width = pixels.shape[:2]
                stream.codec_context.sample_aspect_ratio = pixel_shape
                if turn != (0, False):
                    stream.set_display_rotation(turn[0], hflip=turn[1])
                if times is not None:
                    stream.codec_context.time_base = MILLISECOND
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = round(times[number] / MILLISECOND), MILLISECOND
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def grey_pictures(brightness_T: Iterable[int], size: int = 32) -> Iterator[Pixels]:
    """Square pictures, each of one brightness."""
    return (np.full((size, size, 3), value, dtype=np.uint8) for value in brightness_T)


# What the stages of a run leave


def write_features(inputs: Inputs) -> None:
    """Random features of the run's videos, at the times that extraction would take frames at."""
    store, config = inputs.features.base, inputs.run.config
    assert isinstance(store, FeatureStore), "the dataset brings its features"
    rng = np.random.default_rng(0)
    for source in inputs.features.to_extract.values():
        timeline, _ = sampled(source.pixels.times(), config.dataset.fps)
        spans = consecutive_spans(len(timeline.times_T), config.features.chunk_frames)
        store.create(
            source.entry,
            timeline,
            chunk_frames=config.features.chunk_frames,
            dtype=config.features.dtype,
            source={"content": source.content},
        )
        for span in spans:
            features_TD = rng.standard_normal((len(span), store.width()))
            store.write_chunk(source.entry, span, features_TD)
        store.finish(source.entry, spans)


def write_checkpoints(
    inputs: Inputs,
    scorer: str,
    count: int,
    *,
    class_weights: Sequence[float] = (),
    with_weights: bool = True,
) -> CheckpointStore:
    """Checkpoints of fresh weights, or of none, as a training would publish them."""
    dataset = inputs.run.dataset
    store = inputs.checkpoints.use(scorer, 0, TRAINING)
    for epoch in range(1, count + 1):
        torch.manual_seed(epoch)
        info = CheckpointInfo(
            scorer=scorer,
            fold=0,
            epoch=epoch,
            model=inputs.model_spec(scorer),
            classes=dataset.classes,
            class_weights=tuple(class_weights) or (1.0,) * len(dataset.classes),
            train_ids=dataset.folds[0].train,
            encoder=inputs.features.base.encoder,
            training=TRAINING,
            metrics={"train_loss": 1 / epoch},
        )
        weights = build_scorer(info.model).state_dict() if with_weights else {}
        store.save(info, weights, {})
    return store


def write_trajectories(
    inputs: Inputs,
    scorer: str,
    lengths: Mapping[str, int],
    logp_of: Callable[[int], Numbers],
    *,
    num_epochs: int,
    dtype: str = "float16",
) -> None:
    """Publishes the trajectories of videos that one unit of work holds.

    `logp_of` gives the log-probabilities (T, C) of an epoch, from 1, for all videos end to end.
    """
    videos = tuple(lengths)
    group = Group(fold=0, videos=videos, lengths=tuple(lengths.values()), features=videos)
    units = {e: Unit(f"{group.key}/epoch-{e:04d}", f"made{e}") for e in range(1, num_epochs + 1)}
    store = store_of(inputs, scorer)
    store.create_rows(group, units, num_classes=len(inputs.run.dataset.classes), dtype=dtype)
    for epoch, unit in units.items():
        store.write_row(group, epoch, unit, logp_of(epoch))
    rows = {epoch: f"made{epoch}" for epoch in units}
    store.publish(group, dict.fromkeys(videos, rows))
    store.drop_rows(group)


def write_scores(inputs: Inputs, scorer: str, annotations: Iterable[Annotation]) -> dict[str, str]:
    """Scores of videos whose trajectories are published, and their labels; returns the versions."""
    scoring = Scoring(
        store=ScoreStore(inputs.run.paths.scores),
        scorer=scorer,
        class_weights_C=inputs.checkpoints.class_weights(scorer, 0),
        config=inputs.run.config.score,
    )
    versions = {}
    for annotation in annotations:
        trajectory = store_of(inputs, scorer).trajectory(annotation.video)
        made = scoring.version(annotation, trajectory.fingerprint)
        scoring.write(annotation, made, scoring.by_name(annotation, trajectory))
        versions[annotation.video] = made
    return versions


def finish_run(inputs: Inputs, console: Console | None = None) -> int:
    """Scores and flags a run whose trajectories are published; the number of its audit."""
    versions = {
        scorer: write_scores(inputs, scorer, inputs.labels.held_out())
        for scorer in inputs.run.config.scorers
    }
    return flag(Stage(inputs=inputs, console=console or Console(quiet=True)), versions)
