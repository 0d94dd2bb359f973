"""Real annotation files, videos and features, where their folder lies beside the project."""

import time
from pathlib import Path

import numpy as np
import pytest
from builder import MadeVideo, write_manifest

from csl_dist.config import ManifestConfig, MstcnConfig
from csl_dist.data.feature_files import inspect, slackened
from csl_dist.data.layouts import open_dataset, read_dataset
from csl_dist.data.layouts.cholec80 import M2CAI16_PHASES, read_phases
from csl_dist.data.layouts.entries import EntryTracks
from csl_dist.data.layouts.mstcn import read_bundle, read_mapping
from csl_dist.data.media.timeline import sampled
from csl_dist.data.media.video import VideoFile
from csl_dist.data.text import class_ids, read_lines
from csl_dist.types import Split, Video, runs_of

DATA = Path(__file__).parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}")


def video_of(path: Path) -> Video:
    return Video(id=path.stem, split=Split.AUDIT, labels=str(path), source="")


def test_breakfast_labels_all_read_in_seconds() -> None:
    root = DATA / "breakfast"
    classes = read_mapping(root / "splits/mapping_bf.txt")
    assert len(classes) == 48
    files = sorted((root / "groundTruth").glob("*.txt"))
    tracks = EntryTracks(classes, 15.0)
    begun = time.monotonic()
    frames = sum(len(tracks(video_of(path)).ids_N) for path in files)
    seconds = time.monotonic() - begun
    assert len(files) == 243
    assert frames > 200_000
    assert seconds / len(files) < 0.01, "10,000 files would take minutes"


def test_breakfast_bundles_hold_paths() -> None:
    names = [name for _, name in read_bundle(DATA / "breakfast/splits/train.split1.bundle")]
    assert names[0] == "P16_cam01_P16_cereals"
    assert not any("/" in name or name.endswith(".txt") for name in names)


def test_breakfast_opens_with_a_problem_for_every_video_without_features(tmp_path: Path) -> None:
    root = DATA / "breakfast"
    (tmp_path / "mapping.txt").symlink_to(root / "splits/mapping_bf.txt")
    (tmp_path / "groundTruth").symlink_to(root / "groundTruth")
    (tmp_path / "splits").symlink_to(root / "splits")
    dataset = read_dataset(MstcnConfig(path=str(tmp_path)))
    listed = sum(
        len(read_bundle(root / f"splits/{name}.split1.bundle")) for name in ("train", "test")
    )
    assert len(dataset.problems) == listed
    alone = read_dataset(MstcnConfig(path=str(tmp_path)), media="optional")
    assert len(alone.videos) == 243
    assert len(alone.problems) == listed - 243
    assert all(track.ids_N.size for track in map(alone.track, alone.videos))


def test_salads_labels_and_their_swapped_versions_have_the_same_steps() -> None:
    root = DATA / "50salads/mstcn_groundTruth_sample/visualization"
    classes = read_mapping(root / "mapping.txt")
    tracks = EntryTracks(classes, 30.0)
    for swapped in sorted((root / "groundtruth_swap_segments").glob("*.txt")):
        before = tracks(video_of(root / "groundtruth" / swapped.name)).ids_N
        after = tracks(video_of(swapped)).ids_N
        assert set(before) == set(after)
        assert abs(len(before) - len(after)) <= 1
        assert (before[: len(after)] != after[: len(before)]).any()


def test_m2cai16_phase_file_reads() -> None:
    path = DATA / "m2cai16/workflow_video_01_pred.txt"
    names = read_phases(str(path))
    ids = class_ids(names, M2CAI16_PHASES, str(path), first_line=2)
    assert len(ids) > 10_000
    assert ids.min() == 0


def test_breakfast_coffee_features_are_frames_first_and_fit_their_labels() -> None:
    root = DATA / "breakfast_coffee/dummy_data"
    for path in sorted((root / "features/coffee").glob("*.txt")):
        num_labels = len(read_lines(root / "groundTruth" / path.stem))
        file = inspect(str(path), slackened((num_labels, num_labels), True))
        assert file.width == 64
        assert not file.frames_last


def write_knot_tying(folder: Path, names: list[str]) -> None:
    """Gesture files (`start end Gk`, 1-based, inclusive) as one name per frame."""
    root = DATA / "jigsaws/knot_tying"
    videos = []
    for name in names:
        source = f"{root}/kinematics/{name}.npy"
        labels = ["-"] * len(np.load(source, mmap_mode="r"))
        for line in read_lines(root / f"gestures/{name}.txt"):
            start, stop, gesture = line.split()
            labels[int(start) - 1 : int(stop)] = [gesture] * (int(stop) - int(start) + 1)
        subject = name.split("_")[2]
        video = MadeVideo(id=name, split="audit", names_T=labels, source=source, group=subject)
        videos.append(video)
    write_manifest(folder, videos, fps=30)


def knot_tying_names() -> list[str]:
    return [path.stem for path in sorted((DATA / "jigsaws/knot_tying/kinematics").glob("*.npy"))]


def test_knot_tying_video_has_a_timestamp_and_pixels_for_every_frame() -> None:
    """These AVI files have B-frames, which FFmpeg delivers with swapped timestamps."""
    for path in sorted((DATA / "jigsaws/knot_tying/video").glob("*.avi"))[:2]:
        video = VideoFile(str(path))
        times = video.times()
        timeline, _ = sampled(times, None)
        assert timeline.source_fps == pytest.approx(30, rel=0.01)
        brightness = [float(frame.mean()) for frame in video.decode(times)]
        assert len(brightness) == len(times)
        for start in (0, 1, 250, 333, len(times) - 3):
            part = [float(frame.mean()) for frame in video.decode(times[start : start + 3])]
            assert part == brightness[start : start + 3], "a chunk shows the same frames"


def test_knot_tying_folds_keep_subjects_together(tmp_path: Path) -> None:
    write_knot_tying(tmp_path, knot_tying_names())
    (tmp_path / "classes.txt").write_text("G1\nG11\nG12\nG13\nG14\nG15\n")
    dataset = open_dataset(ManifestConfig(path=str(tmp_path), folds=4, length_mismatch="trim"))
    assert len(dataset.videos) == 36
    subjects = {v.id: v.group for v in dataset.videos}
    for fold in dataset.folds:
        assert not {subjects[v] for v in fold.train} & {subjects[v] for v in fold.held_out}
    track = dataset.read_track(dataset.videos[0])
    labels = track.at(np.arange(1000) / 30)
    assert labels[0] == -1, "frames before the first gesture are unlabelled"
    assert len(runs_of(labels)) > 3
