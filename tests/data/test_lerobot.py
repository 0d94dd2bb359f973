"""LeRobot v3: episodes are ranges of shared files, subtasks stand in parquet files."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from format_files import renaming
from lerobot_files import CAMERA, FPS, LENGTHS, SUBTASKS, put, write_lerobot

from csl_dist.config import LerobotConfig
from csl_dist.data.check import look_at_videos
from csl_dist.data.init import draft_config
from csl_dist.data.layouts import corrected_labels, open_dataset, read_dataset, write_renamed
from csl_dist.data.media.pixels import pixel_source
from csl_dist.errors import DataError
from csl_dist.service.media import _views, views_of

EPISODES = "meta/episodes/chunk-000/file-000.parquet"
FRAMES = "data/chunk-000/file-000.parquet"


@pytest.mark.parametrize("form", ["dense", "language"])
def test_episodes_are_ranges_of_files_with_their_own_labels(tmp_path: Path, form: str) -> None:
    config = write_lerobot(tmp_path, form=form)
    dataset = open_dataset(config)
    assert dataset.classes == ("grasp", "lift", "reach")
    assert [(v.id, v.start_seconds, v.stop_seconds) for v in dataset.videos] == [
        ("episode_000000", 0.0, 3.0),
        ("episode_000001", 3.0, 5.0),
        ("episode_000002", 0.0, 2.5),
        ("episode_000003", 2.5, 6.5),
    ]
    assert len({video.source for video in dataset.videos}) == 2
    assert {video.procedure for video in dataset.videos} == {"put the cube away"}
    for number, found in enumerate(look_at_videos(dataset, config)):
        assert found.problems == ()
        assert found.timeline is not None
        assert len(found.timeline.times_T) == LENGTHS[number]
        labels_T = dataset.labels(found.video, found.timeline)
        expected = [
            dataset.classes.index(name)
            for name, start, stop in SUBTASKS[number]
            for _ in range(round((stop - start) * FPS))
        ]
        assert labels_T.tolist() == expected


def test_other_cameras_of_an_episode_are_known(tmp_path: Path) -> None:
    config = write_lerobot(tmp_path, videos=False)
    first = open_dataset(config).videos[1]
    assert views_of(config, first, (config.path,)) == {}
    _views.cache_clear()
    info = json.loads((tmp_path / "meta/info.json").read_text())
    info["features"]["wrist"] = {"dtype": "video"}
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    columns = pq.read_table(tmp_path / EPISODES).to_pydict()
    columns |= {n.replace(CAMERA, "wrist"): v for n, v in columns.items() if CAMERA in n}
    columns["videos/wrist/from_timestamp"] = [7.0, 11.0, 0.0, 1.0]
    put(tmp_path / EPISODES, columns)
    views = views_of(config, first, (config.path,))
    assert views_of(config, first, ()) == {}, "a dataset that may not be read"
    _views.cache_clear()
    assert list(views) == [CAMERA, "wrist"]
    assert views[CAMERA] == first
    assert views["wrist"].source == first.source.replace(CAMERA, "wrist")
    assert views["wrist"].start_seconds == 11.0


@pytest.mark.parametrize("number", range(4))
def test_range_shows_the_frames_of_its_own_seconds(tmp_path: Path, number: int) -> None:
    video = open_dataset(write_lerobot(tmp_path)).videos[number]
    source = pixel_source(video)
    times_T = source.times()
    np.testing.assert_allclose(times_T, np.arange(LENGTHS[number]) / FPS, atol=1e-9)
    first = (0, LENGTHS[0], 0, LENGTHS[2])[number]
    wanted = [0, 7, LENGTHS[number] - 1]
    shown = [float(np.mean(frame)) for frame in source.decode(times_T[wanted])]  # type: ignore[arg-type]
    np.testing.assert_allclose(shown, [20 + 3 * (first + frame) for frame in wanted], atol=2.5)


def test_range_is_not_read_to_the_end_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from csl_dist.data.media import video as module

    opened = module._open
    num_packets = 0

    class Counted:
        def __init__(self, container: object):
            self._container = container

        def __enter__(self) -> "Counted":
            self._container.__enter__()  # type: ignore[attr-defined]
            return self

        def __exit__(self, *error: object) -> None:
            self._container.__exit__(*error)  # type: ignore[attr-defined]

        def __getattr__(self, name: str) -> object:
            return getattr(self._container, name)

        def demux(self, stream: object) -> object:
            nonlocal num_packets
            for packet in self._container.demux(stream):  # type: ignore[attr-defined]
                num_packets += 1
                yield packet

    monkeypatch.setattr(module, "MOST_REORDERED", 2)
    monkeypatch.setattr(module, "HEAD_PACKETS", 2)
    monkeypatch.setattr(module, "_open", lambda path: Counted(opened(path)))
    video = open_dataset(write_lerobot(tmp_path)).videos[2]
    assert len(pixel_source(video).times()) == LENGTHS[2]
    assert num_packets < LENGTHS[2] + 12, "the file has 65 frames"


@pytest.mark.parametrize("form", ["dense", "language"])
def test_corrected_subtasks_are_written_and_all_else_is_equal(tmp_path: Path, form: str) -> None:
    config = write_lerobot(tmp_path / "data", form=form, videos=False)
    dataset = open_dataset(config)
    name = EPISODES if form == "dense" else FRAMES
    before = pq.read_table(tmp_path / "data" / name)
    [written] = write_renamed(
        config,
        dataset.videos,
        {"episode_000002": [renaming(8, 20, "reach")]},
        frame_rates={"episode_000002": FPS},
        out=tmp_path / "out",
    )
    assert written == tmp_path / "out" / name
    after = pq.read_table(written)
    assert after.schema.equals(before.schema, check_metadata=True)
    labels = [c for c in before.column_names if "subtask" in c or c.startswith("language")]
    assert after.drop_columns(labels).equals(before.drop_columns(labels))
    again = corrected_labels(config, dataset.classes, dataset.videos, tmp_path / "out")
    expected = {video.id: dataset.track(video).at(np.arange(25) / FPS) for video in dataset.videos}
    expected["episode_000002"][8:20] = dataset.classes.index("reach")
    for video in again.videos:
        labels_T = again.track(video).at(np.arange(25) / FPS)
        assert labels_T.tolist() == expected[video.id].tolist()


def test_init_tells_tracks_and_cameras(tmp_path: Path) -> None:
    write_lerobot(tmp_path, videos=False)
    draft = draft_config("auto", tmp_path, tmp_path / "csl.yaml")
    assert draft.layout == "lerobot"
    assert draft.dataset["track"] == "dense"
    assert draft.dataset["camera"] == CAMERA
    assert draft.notes["track"] == "of dense (9)"


def test_ranges_that_share_seconds_are_a_problem(tmp_path: Path) -> None:
    config = write_lerobot(tmp_path, videos=False)
    table = pq.read_table(tmp_path / EPISODES).to_pydict()
    table[f"videos/{CAMERA}/from_timestamp"][1] = 2.5
    put(tmp_path / EPISODES, table)
    [problem] = read_dataset(config).problems
    assert "'episode_000000' and 'episode_000001' share its seconds 2.5 to 3" in problem


def edited_info(root: Path, **values: object) -> None:
    info = json.loads((root / "meta/info.json").read_text()) | values
    (root / "meta/info.json").write_text(json.dumps(info))


def edited_episodes(root: Path, **columns: list[object]) -> None:
    table = pq.read_table(root / EPISODES).to_pydict()
    for name, values in columns.items():
        table.pop(name) if not values else table.update({name: values})
    put(root / EPISODES, table)


def read_all(config: LerobotConfig) -> None:
    dataset = open_dataset(config)
    for video in dataset.videos:
        dataset.track(video)


MALFORMED = {
    "no JSON": (lambda r: (r / "meta/info.json").write_text("{"), "info.json is not valid JSON"),
    "another version": (
        lambda r: edited_info(r, codebase_version="v2.1"),
        "codebase_version is 'v2.1', expected v3.0",
    ),
    "no version": (lambda r: (r / "meta/info.json").write_text("[]"), "codebase_version is ''"),
    "no info": (lambda r: (r / "meta/info.json").unlink(), "can't read .*info.json"),
    "no camera": (lambda r: edited_info(r, features={}), "no feature of the dtype video"),
    "no parquet": (lambda r: (r / EPISODES).write_bytes(b"PAR1"), "is no parquet file"),
    "cut parquet": (
        lambda r: (r / EPISODES).write_bytes((r / EPISODES).read_bytes()[:-9]),
        "is no parquet file",
    ),
    "no episodes": (lambda r: edited_episodes(r, episode_index=[]), "no column episode_index"),
    "no labels": (lambda r: edited_episodes(r, dense_subtask_names=[]), "has no labels: no column"),
    "fewer starts": (
        lambda r: edited_episodes(r, dense_subtask_start_times=[[0.0], [0.0], [0.0], [0.0]]),
        "episode 0: 2 dense_subtask_names but 1 starts and 2 ends",
    ),
    "ends before it starts": (
        lambda r: edited_episodes(r, dense_subtask_end_times=[[0, 3], [1, 2], [1, 2, 3], [2, 4]]),
        "'reach' runs from 0 s to 0 s, but must end after its start",
    ),
    "no video": (
        lambda r: (r / f"videos/{CAMERA}/chunk-000/file-000.mp4").unlink(),
        "episode_000000 has no video: no media at",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_dataset_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    config = write_lerobot(tmp_path, videos=False)
    spoil, sentence = MALFORMED[case]
    spoil(tmp_path)  # type: ignore[no-untyped-call]
    with pytest.raises(DataError, match=sentence) as caught:
        read_all(config)
    assert "\n" not in str(caught.value)
