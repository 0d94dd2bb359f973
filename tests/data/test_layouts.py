"""Layouts on small files in their true formats, with the oddities that real files have."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from builder import MadeVideo, write_manifest
from layout_files import touch, write_activitynet, write_cholec80, write_egoper, write_mstcn
from PIL import Image

from csl_dist.config import (
    Cholec80Config,
    EgoperConfig,
    ManifestConfig,
    MstcnConfig,
    SplitLists,
    load_config,
)
from csl_dist.data.documents.document import Parsed
from csl_dist.data.formats.egoper import FORMAT as EGOPER
from csl_dist.data.init import draft_config
from csl_dist.data.layouts import open_dataset, read_dataset
from csl_dist.data.layouts.cholec80 import PHASES, read_phases
from csl_dist.data.layouts.mstcn import read_bundle, read_mapping
from csl_dist.data.media.frames import FrameFolder
from csl_dist.data.media.pixels import whole_frames
from csl_dist.data.media.timeline import sampled
from csl_dist.data.tracks import EntryTrack, SegmentTrack
from csl_dist.errors import ConfigError, DataError
from csl_dist.types import ErrorKind, Media, Split

# --- tracks ---


def test_entries_must_be_as_many_as_frames_at_equal_rates() -> None:
    timeline, _ = sampled(np.arange(1198) / 25, 5)
    assert EntryTrack(np.zeros(1198, int), 25).misfit(timeline) is None
    misfit = EntryTrack(np.zeros(1204, int), 25).misfit(timeline)
    assert misfit is not None
    assert misfit.words == "1,204 labels but 1,198 frames at 25 fps"
    assert misfit.share == pytest.approx(6 / 1204)


def test_entries_at_a_coarser_rate_may_be_rounded_up_or_down() -> None:
    timeline, _ = sampled(np.arange(1010) / 25, None)  # 40.4 seconds
    fits = [n for n in range(38, 45) if EntryTrack(np.zeros(n, int), 1).misfit(timeline) is None]
    assert fits == [40, 41]
    even, _ = sampled(np.arange(1000) / 25, None)  # 40 seconds: one entry more is a header line
    assert EntryTrack(np.zeros(41, int), 1).misfit(even) is not None


def test_sparse_entry_covers_the_frames_until_the_next() -> None:
    ids = EntryTrack(np.arange(10), 1).at(np.arange(250) / 25)
    assert ids.tolist() == np.repeat(np.arange(10), 25).tolist()


def test_labels_at_another_rate_are_resampled_by_timestamp() -> None:
    ids = np.repeat(np.arange(10), 25)
    at_five = EntryTrack(ids, 25).at(np.arange(50) / 5)
    assert at_five.tolist() == np.repeat(np.arange(10), 5).tolist()


def test_frames_beyond_the_last_label_are_unlabelled() -> None:
    assert EntryTrack(np.array([3, 4]), 10).at(np.array([0.0, 0.1, 0.2])).tolist() == [3, 4, -1]


def drawn_track(*drawn: tuple[float, float, str], overlap: str = "error") -> SegmentTrack:
    """Segments of classes a, b, c in a file of one line each."""
    parsed = Parsed("v.csv")
    for line, (start, stop, label) in enumerate(drawn, start=1):
        parsed.add(video="v", start_seconds=start, stop_seconds=stop, label=label, line=line)
    ids = {"a": 0, "b": 1, "c": 2}
    return SegmentTrack(segments=tuple(parsed.segments), ids=ids, file="v.csv", overlap=overlap)


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("first", [0, 0, 0, 0, 2, 2, -1]),
        ("last", [0, 1, 2, 2, 2, 2, -1]),
        ("longest", [0, 0, 0, 0, 2, 2, -1]),
    ],
)
def test_overlapping_segments_are_resolved_as_asked(overlap: str, expected: list[int]) -> None:
    track = drawn_track((0, 4, "a"), (1, 2, "b"), (2, 6, "c"), overlap=overlap)
    assert track.at(np.arange(7.0)).tolist() == expected


def test_overlap_is_refused_with_its_place_unless_it_is_asked_for() -> None:
    track = drawn_track((0, 4, "a"), (4, 6, "b"), (5.5, 8, "c"))
    with pytest.raises(DataError) as caught:
        track.at(np.arange(7.0))
    assert str(caught.value) == (
        "v.csv:3: video 'v': 'c' (5.50 to 8.00 s) starts inside 'b' (4.00 to 6.00 s) of line 2; "
        "correct it, or set dataset.overlap: first, last or longest"
    )


def test_segments_are_half_open_and_gaps_unlabelled() -> None:
    track = drawn_track((0.0, 0.3, "b"), (0.5, 0.7, "c"))
    times = np.arange(9) / 10
    assert track.at(times).tolist() == [1, 1, 1, -1, -1, 2, 2, -1, -1]
    timeline, _ = sampled(times, None)
    assert track.misfit(timeline) is None
    late = drawn_track((0.0, 5.0, "b"))
    misfit = late.misfit(timeline)
    assert misfit is not None
    assert misfit.words == "labels end at 5.0 s but the video at 0.9 s"


@pytest.mark.parametrize(("start", "stop"), [(3.0, 2.0), (1.0, 1.0), (np.nan, 1.0), (-1.0, 1.0)])
def test_segment_that_does_not_end_after_its_start_is_refused(start: float, stop: float) -> None:
    with pytest.raises(DataError, match=r"v\.csv:1: 'a' (runs from|starts at -1 s, before)"):
        drawn_track((start, stop, "a"))


# --- Cholec80 ---


def test_cholec80_has_the_papers_split(tmp_path: Path) -> None:
    dataset = open_dataset(write_cholec80(tmp_path, 80))
    counts = {split: len(dataset.in_split(split)) for split in Split}
    assert counts == {Split.TRAIN: 50, Split.VAL: 10, Split.AUDIT: 20}
    assert dataset.in_split(Split.AUDIT)[0].id == "video61"
    assert dataset.classes == PHASES


@pytest.mark.parametrize(("name", "counts"), [("tecno", (40, 8, 32)), ("tmrnet", (40, 0, 40))])
def test_cholec80_has_other_peoples_splits(
    tmp_path: Path, name: str, counts: tuple[int, ...]
) -> None:
    write_cholec80(tmp_path, 80)
    dataset = open_dataset(
        Cholec80Config(path=str(tmp_path), splits=name)  # type: ignore[arg-type]
    )
    assert tuple(len(dataset.in_split(split)) for split in Split) == counts


def test_cholec80_labels_survive_crlf(tmp_path: Path) -> None:
    dataset = open_dataset(write_cholec80(tmp_path, 1, ending="\r\n"))
    track = dataset.read_track(dataset.videos[0])
    assert isinstance(track, EntryTrack)
    assert track.fps == 25
    assert track.ids_N.tolist() == [i // 25 for i in range(100)]


def test_cholec80_takes_frames_and_features_where_there_is_no_video(tmp_path: Path) -> None:
    write_cholec80(tmp_path, 3)
    (tmp_path / "videos/video02.mp4").unlink()
    (tmp_path / "videos/video03.mp4").unlink()
    touch(tmp_path / "cutMargin/2/1.jpg")
    touch(tmp_path / "features/video03.npy")
    dataset = open_dataset(Cholec80Config(path=str(tmp_path)))
    assert [v.media for v in dataset.videos] == [Media.VIDEO, Media.FRAMES, Media.FEATURES]


def test_rate_of_frame_folders_is_the_layouts_or_the_one_that_is_set(tmp_path: Path) -> None:
    write_cholec80(tmp_path, 2)
    (tmp_path / "videos/video02.mp4").unlink()
    touch(tmp_path / "cutMargin/2/1.jpg")
    for fps, expected in ((None, 25.0), (5.0, 5.0)):
        config = Cholec80Config(path=str(tmp_path), frames_fps=fps)
        [_, frames] = open_dataset(config).videos
        assert (frames.media, frames.source_fps) == (Media.FRAMES, expected)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Phase\n0\tPreparation\n", r":1: expected the header"),
        ("Frame\tPhase\n0 Preparation\n", r":2: expected a frame number, a tab and a phase"),
        ("Frame\tPhase\n0\tPreparation\n2\tPreparation\n", r":3: frame 2 where 1 should come"),
        ("Frame\tPhase\n", "holds no labels"),
    ],
)
def test_bad_phase_file_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_phases(str(touch(tmp_path / "v-phase.txt", text)))


# --- EgoPER ---


@pytest.mark.parametrize("folder", ["tea", "Tea"])
def test_egoper_reads_segments_splits_and_wrong_executions(tmp_path: Path, folder: str) -> None:
    dataset = open_dataset(write_egoper(tmp_path, folder))
    assert dataset.classes == ("background", "pour water", "stir")
    assert [v.split for v in dataset.videos] == [Split.TRAIN, Split.VAL, Split.AUDIT]
    track = dataset.read_track(dataset.videos[0])
    assert track.at(np.array([0.0, 1.9, 2.0, 3.4, 3.5])).tolist() == [1, 1, 0, 0, -1]
    assert track.num_frames(10)[0] == 25, "features may go on after the last segment"
    [known] = dataset.known_segments(dataset.videos[2])
    assert (known.kind, known.start_seconds, known.stop_seconds) == (ErrorKind.EXECUTION, 2.0, 3.5)
    assert dataset.known_segments(dataset.videos[0]) == []


def test_egoper_names_videos_that_are_not_annotated(tmp_path: Path) -> None:
    config = write_egoper(tmp_path)
    touch(tmp_path / "tea/test.txt", "tea_u3_error_a1\nghost\n")
    with pytest.raises(DataError, match=r"test\.txt:2: video 'ghost' is not in .*annotation\.json"):
        open_dataset(config)


def edited_egoper(root: Path, **lists: list[object]) -> EgoperConfig:
    """The first video of the task has other lists."""
    config = write_egoper(root)
    assert isinstance(config, EgoperConfig)
    content = json.loads((root / "annotation.json").read_text())
    content["tea"]["segments"][0]["labels"] |= lists
    (root / "annotation.json").write_text(json.dumps(content))
    return config


def authors_frames(times: list[list[float]], actions: list[int]) -> list[int]:
    """As EgoPER's code makes frames of segments (`to_frame_wise`, 10 fps), -1 for none."""
    scaled = [(start * 10, stop * 10) for start, stop in times]
    frames = [-1] * int(scaled[-1][1])
    for (start, stop), action in zip(scaled, actions, strict=True):
        if stop != start:
            frames[int(start) : int(stop)] = [action] * (int(stop) - int(start))
    return frames


def test_egoper_frames_are_those_of_its_authors_code(tmp_path: Path) -> None:
    """An addition (number 3 of 3 names), segments of no length, times between frames, overlaps."""
    times = [[0.0, 1.29], [1.29, 1.29], [1.29, 2.3], [2.15, 2.9], [2.9, 3.5]]
    actions = [5, 0, 3, 7, 0]
    lists = {
        "time_stamp": times,
        "action": actions,
        "action_type": [0, 2, 4, 0, 0],
        "error_description": ["", "", "spoon", "", ""],
    }
    config = edited_egoper(tmp_path, **lists)  # type: ignore[arg-type]
    dataset = open_dataset(replace(config, overlap="last"))
    assert dataset.classes == ("background", "addition", "pour water", "stir")
    numbers = {0: 0, 3: 1, 5: 2, 7: 3, -1: -1}
    first = dataset.videos[0]
    frames_T = dataset.track(first).at(np.arange(35) / 10)
    assert frames_T.tolist() == [numbers[n] for n in authors_frames(times, actions)]
    [known] = dataset.known_segments(first)
    assert (known.start_seconds, known.stop_seconds) == (1.2, 2.3), "the one without length is none"
    content = (tmp_path / "annotation.json").read_bytes()
    document = EGOPER.parse(content, "annotation.json", config)
    assert document.edited([]) == content


def test_egoper_number_beyond_additions_is_refused(tmp_path: Path) -> None:
    config = edited_egoper(tmp_path, action=[3, 4])
    with pytest.raises(DataError, match="has an action 4 that action2idx lacks"):
        open_dataset(config)


@pytest.mark.parametrize("task", [None, "cake"])
def test_egoper_needs_one_of_its_tasks(tmp_path: Path, task: str | None) -> None:
    write_egoper(tmp_path)
    with pytest.raises(DataError, match="EgoPER's tasks are coffee, oatmeal, pinwheels"):
        open_dataset(EgoperConfig(path=str(tmp_path), task=task))


# --- MS-TCN ---


def test_mstcn_reads_mapping_bundles_and_labels(tmp_path: Path) -> None:
    dataset = open_dataset(write_mstcn(tmp_path))
    assert dataset.classes == ("take cup", "pour_water")
    assert [(v.id, v.split) for v in dataset.videos] == [
        ("S1", Split.TRAIN),
        ("S2", Split.TRAIN),
        ("S3", Split.AUDIT),
    ]
    track = dataset.read_track(dataset.videos[0])
    assert isinstance(track, EntryTrack)
    assert track.ids_N.tolist() == [0, 1, 1]


def test_mstcn_bundles_may_hold_names_or_paths(tmp_path: Path) -> None:
    bundle = touch(tmp_path / "b.bundle", "#bundle\r\na b.txt\r\n./x/c.txt\r\n\r\n")
    assert read_bundle(bundle) == [(2, "a b"), (3, "c")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 a\n2 b\n", "must count up from 0"),
        ("a\n", ":1: expected `id name`"),
        ("0 a\n0 b\n", ":2"),
    ],
)
def test_bad_mapping_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_mapping(touch(tmp_path / "mapping.txt", text))


# --- ActivityNet ---


def test_activitynet_reads_segments_and_audits_validation_without_a_test_set(
    tmp_path: Path,
) -> None:
    dataset = open_dataset(write_activitynet(tmp_path))
    assert dataset.classes == ("cut up", "stir")
    assert [v.split for v in dataset.videos] == [Split.TRAIN, Split.AUDIT]
    track = dataset.read_track(dataset.videos[0])
    assert track.at(np.array([0.0, 0.5, 1.0, 2.5])).tolist() == [-1, 1, -1, 0]


def test_rate_of_features_beside_activitynets_times_is_guessed_or_must_be_told(
    tmp_path: Path,
) -> None:
    config = write_activitynet(tmp_path)
    path = Path(config.path)
    content = json.loads(path.read_text())
    content["database"]["v2"]["duration"] = 6.0
    path.write_text(json.dumps(content))
    shutil.rmtree(tmp_path / "videos")
    (tmp_path / "features").mkdir()
    for name, seconds in (("v1", 4), ("v2", 6)):
        np.save(tmp_path / f"features/{name}.npy", np.zeros((30 * seconds, 7), np.float32))
    with pytest.raises(DataError, match=r"how many features a second .* set dataset\.features_fps"):
        open_dataset(config)
    drafted = draft_config("activitynet", tmp_path, tmp_path / "csl.yaml")
    assert drafted.dataset["features_fps"] == 30.0
    assert drafted.notes["features_fps"].startswith("a guess")
    [video, _] = open_dataset(replace(config, features_fps=30.0)).videos
    assert video.source_fps == 30.0


def test_activitynet_segment_that_ends_before_it_starts_is_refused(tmp_path: Path) -> None:
    config = write_activitynet(tmp_path)
    text = Path(config.path).read_text().replace("[2.0, 3.0]", "[3.0, 2.0]")
    Path(config.path).write_text(text)
    dataset = open_dataset(config)
    with pytest.raises(DataError, match="'cut up' runs from 3 s to 2 s, but must end after"):
        dataset.track(dataset.videos[0])


# --- splits and folds ---


def test_lists_choose_videos_and_name_what_is_wrong(tmp_path: Path) -> None:
    write_mstcn(tmp_path)
    lists = SplitLists(train=("S3",), audit=("S1", "S3", "ghost"))
    dataset = read_dataset(MstcnConfig(path=str(tmp_path), splits=lists))
    assert [(v.id, v.split) for v in dataset.videos] == [("S1", "audit"), ("S3", "train")]
    assert list(dataset.problems) == [
        "dataset.splits: video 'S3' is in train and in audit",
        "dataset.splits.audit: there is no video 'ghost'",
    ]


def write_grouped_manifest(root: Path) -> None:
    videos = (
        MadeVideo(id=f"v{i}", split="audit", names_T=["a", "b"], group=f"g{i % 4}")
        for i in range(12)
    )
    write_manifest(root, videos, fps=5)


def test_folds_audit_every_video_once_and_keep_groups_together(tmp_path: Path) -> None:
    write_grouped_manifest(tmp_path)
    dataset = open_dataset(ManifestConfig(path=str(tmp_path), folds=3))
    scored = [video for fold in dataset.folds for video in fold.held_out]
    assert sorted(scored) == sorted(v.id for v in dataset.videos)
    group_of = {v.id: v.group for v in dataset.videos}
    for fold in dataset.folds:
        assert not {group_of[v] for v in fold.train} & {group_of[v] for v in fold.held_out}
        assert set(fold.train) | set(fold.held_out) == set(group_of)
    assert all(v.split is Split.AUDIT for v in dataset.videos)


def test_more_folds_than_groups_are_refused(tmp_path: Path) -> None:
    write_grouped_manifest(tmp_path)
    with pytest.raises(DataError, match="folds is 5, but there are only 4 videos or groups"):
        open_dataset(ManifestConfig(path=str(tmp_path), folds=5))


def test_group_can_be_a_part_of_the_id_in_any_layout(tmp_path: Path) -> None:
    write_mstcn(tmp_path)
    dataset = read_dataset(MstcnConfig(path=str(tmp_path), group="^(S)[0-9]"))
    assert {v.group for v in dataset.videos} == {"S"}
    assert list(dataset.problems) == [
        "group 'S' is both in train and in audit; keep a group together, or use folds"
    ]
    with pytest.raises(ConfigError, match="is no regular expression"):
        read_dataset(MstcnConfig(path=str(tmp_path), group="("))


def test_one_file_under_two_ids_is_a_problem(tmp_path: Path) -> None:
    write_mstcn(tmp_path)
    (tmp_path / "features/S3.npy").unlink()
    (tmp_path / "features/S3.npy").symlink_to(tmp_path / "features/S1.npy")
    with pytest.raises(DataError, match="S1.npy is listed as 2 videos .S1, S3.; keep one"):
        open_dataset(MstcnConfig(path=str(tmp_path)))


def test_json_of_another_form_is_one_sentence(tmp_path: Path) -> None:
    config = write_egoper(tmp_path)
    touch(tmp_path / "annotation.json", json.dumps({"tea": {"segments": []}}))
    with pytest.raises(DataError, match="task 'tea' has no action2idx or no segments"):
        open_dataset(config)


def test_cholec80_split_goes_by_number_where_videos_are_missing(tmp_path: Path) -> None:
    write_cholec80(tmp_path, 80)
    (tmp_path / "phase_annotations/video03-phase.txt").unlink()
    dataset = open_dataset(Cholec80Config(path=str(tmp_path)))
    assert dataset.in_split(Split.AUDIT)[0].id == "video61"


def test_activitynet_test_entries_without_labels_are_left_out(tmp_path: Path) -> None:
    config = write_activitynet(tmp_path)
    content = json.loads(Path(config.path).read_text())
    content["database"]["v3"] = {"subset": "testing", "annotations": []}
    Path(config.path).write_text(json.dumps(content))
    dataset = open_dataset(config)
    assert [v.split for v in dataset.videos] == [Split.TRAIN, Split.AUDIT]


@pytest.mark.parametrize("length_mismatch", ["trim", "error"])
@pytest.mark.parametrize("num_labels", [90, 120])
def test_trimming_stops_where_a_rate_must_be_wrong(
    tmp_path: Path, num_labels: int, length_mismatch: Literal["trim", "error"]
) -> None:
    touch(tmp_path / "manifest.csv", "id,source,labels,split,fps\nv,v.mp4,v.txt,audit,10\n")
    touch(tmp_path / "v.txt", "a\n" * num_labels)
    dataset = open_dataset(ManifestConfig(path=str(tmp_path), length_mismatch=length_mismatch))
    timeline, _ = sampled(np.arange(100) / 10, None)
    with pytest.raises(DataError, match="too far apart to trim; is a rate or a unit wrong"):
        dataset.labels(dataset.videos[0], timeline)


# --- frame folders ---


def write_frames(folder: Path, numbers: range, template: str = "{:06d}.png") -> FrameFolder:
    folder.mkdir()
    for n in numbers:
        Image.fromarray(np.full((8, 8, 3), n, dtype=np.uint8)).save(folder / template.format(n))
    return FrameFolder(str(folder), fps=10)


@pytest.mark.parametrize(
    ("numbers", "first"), [(range(0, 12), 0.0), (range(1, 13), 0.0), (range(50, 62), 5.0)]
)
def test_frame_folder_takes_times_from_numbers(
    tmp_path: Path, numbers: range, first: float
) -> None:
    frames = write_frames(tmp_path / "f", numbers)
    times = frames.times()
    assert np.allclose(times, first + np.arange(12) / 10)
    shown = [int(frame.mean()) for frame in frames.decode(times[[0, 3, 11]])]
    assert shown == [numbers[0], numbers[3], numbers[11]]


def test_frame_folder_sorts_by_number_not_by_name(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "f", range(8, 12), "frame{}.png")
    assert [int(f.mean()) for f in frames.decode(frames.times())] == [8, 9, 10, 11]


def test_two_pictures_of_one_number_are_refused_and_hidden_files_left_out(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "f", range(0, 3))
    touch(tmp_path / "f/._000001.png")
    assert len(frames.times()) == 3
    touch(tmp_path / "f/000001.jpg")
    with pytest.raises(DataError, match="have the same frame number"):
        frames.times()


def test_broken_picture_is_named_with_its_time(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "f", range(0, 5))
    (tmp_path / "f/000003.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"000003\.png, at 0\.30 s, can't be read"):
        list(whole_frames(frames.decode(frames.times())))


@pytest.mark.parametrize("names", [[], ["cover.jpg"]])
def test_folder_without_numbered_frames_is_refused(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "f").mkdir()
    for name in names:
        touch(tmp_path / "f" / name)
    with pytest.raises(DataError, match="frame"):
        FrameFolder(str(tmp_path / "f"), fps=10).times()


# --- the configs that carry the paper's protocol ---

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize(
    ("name", "writer", "options"),
    [
        ("cholec80", lambda root: write_cholec80(root, 80), []),
        ("egoper", write_egoper, ["dataset.task=tea"]),
        ("mstcn", write_mstcn, []),
    ],
)
def test_config_opens_a_folder_of_its_layout(
    tmp_path: Path, name: str, writer: Callable[[Path], object], options: list[str]
) -> None:
    writer(tmp_path)
    config = load_config(CONFIGS / f"{name}.yaml", [f"dataset.path={tmp_path}", *options])
    dataset = open_dataset(config.dataset)
    assert dataset.in_split(Split.TRAIN)
    assert dataset.in_split(Split.AUDIT)
