"""Corrected label files: what is written in each layout reads back as decided."""

import json
from pathlib import Path

import numpy as np
import pytest

from csl_dist.config import (
    ActivityNetConfig,
    Cholec80Config,
    DatasetConfig,
    EgoperConfig,
    ManifestConfig,
)
from csl_dist.data.layouts import Edge, Renaming, corrected_labels, write_renamed
from csl_dist.errors import DataError
from csl_dist.types import Split, Video

CLASSES = ("a", "b", "c")
TIMES = np.arange(100) / 10
"""Frames at 10 fps for 10 s: a until 3 s, b until 6 s, then c."""
LABELS = np.repeat([0, 1, 2], [30, 30, 40])


def edge(frame: int) -> Edge:
    if frame == 0:
        return Edge(after=-np.inf, at=0.0, middle=-np.inf)
    before = float(TIMES[frame - 1])
    if frame == len(TIMES):
        return Edge(after=before, at=10.0, middle=np.inf)
    return Edge(after=before, at=float(TIMES[frame]), middle=before + 0.05)


def renaming(start: int, stop: int, label: str) -> Renaming:
    return Renaming(start=edge(start), stop=edge(stop), label=label)


def read_back(config: DatasetConfig, video: Video, out: Path) -> np.ndarray:
    dataset = corrected_labels(config, CLASSES, [video], out)
    return dataset.track(dataset.videos[0]).at(TIMES)


def written(config: DatasetConfig, video: Video, out: Path, *spans: tuple[int, int, str]) -> Path:
    [path] = write_renamed(
        config,
        [video],
        {video.id: [renaming(*span) for span in spans]},
        frame_rates={video.id: 10.0},
        out=out,
    )
    return path


def expected(*spans: tuple[int, int, str]) -> np.ndarray:
    labels = LABELS.copy()
    for start, stop, label in spans:
        labels[start:stop] = CLASSES.index(label)
    return labels


SPANS = [
    ((20, 35, "c"),),
    ((0, 12, "b"),),
    ((85, 100, "a"),),
    ((30, 45, "a"),),
    ((10, 20, "b"), (15, 25, "c"), (60, 61, "a")),
]


@pytest.fixture(params=[10.0, 25.0, 30.0], ids=lambda fps: f"{fps:g} fps")
def names_file(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, float]:
    fps: float = request.param
    labels = tmp_path / "data" / "labels"
    labels.mkdir(parents=True)
    entries = LABELS[np.minimum(np.round(np.arange(int(10 * fps)) / fps * 10), 99).astype(int)]
    (labels / "v.txt").write_text("\n".join(CLASSES[i] for i in entries) + "\n")
    return labels / "v.txt", fps


@pytest.mark.parametrize("spans", SPANS)
def test_names_of_any_rate_read_back_as_decided(
    names_file: tuple[Path, float], tmp_path: Path, spans: tuple[tuple[int, int, str], ...]
) -> None:
    path, fps = names_file
    config = ManifestConfig(path=str(tmp_path / "data"))
    video = Video(id="v", split=Split.AUDIT, labels=str(path), source="v.mp4", labels_fps=fps)
    made = written(config, video, tmp_path / "out", *spans)
    assert made == tmp_path / "out" / "labels" / "v.txt"
    assert len(made.read_text().splitlines()) == int(10 * fps)
    np.testing.assert_array_equal(read_back(config, video, tmp_path / "out"), expected(*spans))


@pytest.mark.parametrize("spans", SPANS)
def test_cholec80_keeps_header_and_frame_numbers(
    tmp_path: Path, spans: tuple[tuple[int, int, str], ...]
) -> None:
    folder = tmp_path / "data" / "phase_annotations"
    folder.mkdir(parents=True)
    entries = LABELS[np.minimum(np.round(np.arange(250) / 2.5), 99).astype(int)]
    rows = [f"{i}\t{CLASSES[label]}" for i, label in enumerate(entries)]
    (folder / "video01-phase.txt").write_text("\n".join(["Frame\tPhase", *rows]) + "\n")
    config = Cholec80Config(path=str(tmp_path / "data"))
    labels = str(folder / "video01-phase.txt")
    video = Video(id="video01", split=Split.AUDIT, labels=labels, source="v.mp4")
    made = written(config, video, tmp_path / "out", *spans)
    lines = made.read_text().splitlines()
    assert lines[0] == "Frame\tPhase"
    assert [line.split("\t")[0] for line in lines[1:]] == [str(i) for i in range(250)]
    np.testing.assert_array_equal(read_back(config, video, tmp_path / "out"), expected(*spans))


def activitynet(tmp_path: Path) -> tuple[DatasetConfig, Video]:
    pieces = [
        {"segment": [0.0, 2.96], "label": "a", "label_id": 0},
        {"segment": [2.96, 6.0], "label": "b", "label_id": 1, "note": "kept"},
        {"segment": [6.0, 10.0], "label": "c", "label_id": 2},
    ]
    other = {"subset": "testing", "annotations": [{"segment": [0, 1], "label": "a"}]}
    content = {
        "version": "1.3",
        "database": {"v": {"subset": "testing", "annotations": pieces}, "w": other},
    }
    path = tmp_path / "data.json"
    path.write_text(json.dumps(content))
    video = Video(id="v", split=Split.AUDIT, labels=str(path), source="v.mp4")
    return ActivityNetConfig(path=str(path)), video


@pytest.mark.parametrize("spans", SPANS)
def test_activitynet_cuts_segments_and_keeps_the_rest(
    tmp_path: Path, spans: tuple[tuple[int, int, str], ...]
) -> None:
    config, video = activitynet(tmp_path)
    made = written(config, video, tmp_path / "out", *spans)
    np.testing.assert_array_equal(read_back(config, video, tmp_path / "out"), expected(*spans))
    content = json.loads(made.read_text())
    assert content["version"] == "1.3"
    assert content["database"]["w"]["annotations"] == [{"segment": [0, 1], "label": "a"}]
    times = [piece["segment"] for piece in content["database"]["v"]["annotations"]]
    assert all(start < stop for start, stop in times)


def test_edge_between_the_same_two_frames_is_kept(tmp_path: Path) -> None:
    """b starts at 2.96 s; the first frame of b is at 3.0 s."""
    config, video = activitynet(tmp_path)
    made = written(config, video, tmp_path / "out", (30, 60, "c"))
    pieces = json.loads(made.read_text())["database"]["v"]["annotations"]
    assert [(p["label"], p["segment"]) for p in pieces] == [
        ("a", [0.0, 2.96]),
        ("c", [2.96, 10.0]),
    ], "joined to the segment of the same name that follows"


@pytest.mark.parametrize("spans", SPANS)
def test_egoper_keeps_its_lists_parallel(
    tmp_path: Path, spans: tuple[tuple[int, int, str], ...]
) -> None:
    labels = {
        "time_stamp": [[0, 3], [3, 6], [6, 10]],
        "action": [0, 3, 7],
        "action_type": [0, 1, 0],
        "error_description": ["", "spilt", ""],
    }
    task = {
        "action2idx": {"a": 0, "b": 3, "c": 7},
        "actiontype2idx": {},
        "segments": [{"video_id": "v", "labels": labels}],
    }
    path = tmp_path / "data" / "annotation.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"tea": task, "oatmeal": {"segments": []}}))
    config = EgoperConfig(path=str(path.parent), task="tea")
    video = Video(id="v", split=Split.AUDIT, labels=str(path), source="v.mp4")
    made = written(config, video, tmp_path / "out", *spans)
    np.testing.assert_array_equal(read_back(config, video, tmp_path / "out"), expected(*spans))
    content = json.loads(made.read_text())
    assert content["oatmeal"] == {"segments": []}
    lists = content["tea"]["segments"][0]["labels"]
    assert list(lists) == list(labels)
    assert len({len(values) for values in lists.values()}) == 1


def test_entries_sparser_than_frames_follow_their_middle(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("\n".join("aaabbbcccc") + "\n")
    config = ManifestConfig(path=str(tmp_path))
    video = Video(id="v", split=Split.AUDIT, labels=str(path), source="v.mp4", labels_fps=1.0)
    made = written(config, video, tmp_path / "out", (14, 34, "c"))
    assert made.read_text().split() == list("accbbbcccc")


def test_lost_label_files_are_named(tmp_path: Path) -> None:
    config = ManifestConfig(path=str(tmp_path))
    video = Video(id="v", split=Split.AUDIT, labels=str(tmp_path / "gone.txt"), source="v.mp4")
    with pytest.raises(DataError, match="gone.txt"):
        written(config, video, tmp_path / "out", (0, 5, "c"))
