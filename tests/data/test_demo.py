import hashlib
from pathlib import Path

import numpy as np
from small_demo import SMALL_DEMO

from csl_dist.config import ManifestConfig
from csl_dist.data.dataset import read_errors
from csl_dist.data.demo import PHASES, write_demo
from csl_dist.data.layouts import open_dataset
from csl_dist.data.media.timeline import sampled
from csl_dist.data.media.video import VideoFile
from csl_dist.types import ErrorKind, Split, runs_of


def digest(folder: Path) -> dict[str, str]:
    """Hash of every label file's bytes and every video's decoded pixels."""
    digests = {p.name: p.read_text() for p in (folder / "labels").iterdir()}
    for path in (folder / "videos").iterdir():
        video = VideoFile(str(path))
        pixels = np.stack(list(video.decode(video.times())))
        digests[path.name] = hashlib.sha256(pixels.tobytes()).hexdigest()
    return digests


def test_demo_has_the_same_labels_and_pixels_every_time(
    small_dataset: Path, tmp_path: Path
) -> None:
    write_demo(tmp_path, SMALL_DEMO)
    assert digest(tmp_path) == digest(small_dataset)


def test_demo_is_left_alone_once_complete(small_dataset: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in small_dataset.rglob("*")}
    write_demo(small_dataset, SMALL_DEMO)
    assert before == {p: p.stat().st_mtime_ns for p in small_dataset.rglob("*")}


def test_demo_has_a_frame_for_every_label(small_dataset: Path) -> None:
    dataset = open_dataset(ManifestConfig(path=str(small_dataset)))
    assert dataset.classes == PHASES
    assert {s: len(dataset.in_split(s)) for s in Split} == SMALL_DEMO.num_videos
    for video in dataset.videos:
        timeline, _ = sampled(VideoFile(video.source).times(), None)
        assert len(dataset.read_track(video).ids_N) == len(timeline.times_T)
        assert len(dataset.labels(video, timeline)) == len(timeline.times_T)


def test_demo_plants_mislabels_in_one_half_and_swaps_in_the_other(small_dataset: Path) -> None:
    errors = read_errors(str(small_dataset / "errors.csv"))
    kinds = {error.video: error.kind for error in errors}
    assert kinds == {
        "audit01": ErrorKind.MISLABEL,
        "audit02": ErrorKind.MISLABEL,
        "audit03": ErrorKind.DISORDER,
        "audit04": ErrorKind.DISORDER,
    }
    dataset = open_dataset(ManifestConfig(path=str(small_dataset)))
    by_id = {video.id: video for video in dataset.videos}
    for error in errors:
        labels = dataset.read_track(by_id[error.video]).ids_N[error.span.start : error.span.stop]
        if error.kind is ErrorKind.MISLABEL:
            assert error.true_label not in {PHASES[label] for label in labels}
        else:
            first, second = (labels[run.start] for run in runs_of(labels))
            assert first != second
