"""LeRobot v3: episodes of robots, several of which share one mp4 file.

`meta/info.json`, `meta/episodes/chunk-*/file-*.parquet`, `data/chunk-*/file-*.parquet` and
`videos/<camera>/chunk-*/file-*.mp4`. An episode is a video: a range of seconds of its file.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from csl_dist.config import LerobotConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.formats.lerobot import EPISODE, FORMAT, LANGUAGE, episode_id, parquet_table
from csl_dist.data.layouts.document_files import DocumentFiles
from csl_dist.data.layouts.label_sets import LabelSets, SegmentTracks, read_sets
from csl_dist.data.layouts.layout import DEFAULT_FOLDS, Draft, FolderLayout, Parts, refuse_missing
from csl_dist.data.media.sources import MediaNeed
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, place, read_bytes
from csl_dist.types import Split, Video

if TYPE_CHECKING:
    import pyarrow as pa

INFO = "meta/info.json"
EPISODES = "meta/episodes/*/file-*.parquet"
FRAMES = "data/*/file-*.parquet"


class LerobotLayout(FolderLayout):
    """Episodes as ranges of shared files."""

    name: ClassVar[str] = "lerobot"
    label_parts: ClassVar[Parts] = ((INFO,), (EPISODES,))
    media_parts: ClassVar[Parts] = (("videos/*",),)

    def draft(self, path: AnyPath, out: Path) -> Draft:
        refuse_missing(self, path)
        cameras = _cameras(_info(path))
        sets = _labels(path, None)
        tracks = sets.tracks
        chosen = max(tracks, key=lambda track: len({s.video for s in tracks[track]}))
        num_episodes = len({segment.video for segment in tracks[chosen]})
        tracks_text = ", ".join(f"{name} ({len(own):,})" for name, own in tracks.items())
        return Draft(
            layout=self.name,
            dataset={
                "path": path,
                "track": chosen,
                "camera": cameras[0],
                "folds": max(2, min(DEFAULT_FOLDS, num_episodes)),
            },
            notes={
                "track": f"of {tracks_text}",
                "camera": f"of {', '.join(cameras)}",
                "folds": "every episode is audited by a model that never saw it",
            },
        )

    def open(self, config: LerobotConfig, need: MediaNeed) -> Dataset:
        root = place(config.path)
        info = _info(root)
        camera = _camera(config, info)
        sets = _labels(root, config)
        if not sets.segments:
            problem = sets.problems[0] if sets.problems else f"{root} has no subtask labels"
            raise DataError(problem)
        found = sets.in_track(config.track, config.path)
        template = str(info.get("video_path") or DEFAULT_VIDEO_PATH)
        videos, problems = [], list(sets.problems)
        for row in _episodes(root):
            video = episode_id(row[EPISODE])
            if (video, None) not in found:
                continue
            source = _file_of(root, template, camera, row)
            if need == "required" and not source.is_file():
                problems.append(f"{root}/meta/episodes: {video} has no video: no media at {source}")
                continue
            videos.append(
                Video(
                    id=video,
                    split=Split.AUDIT,
                    labels=sets.files[video, None],
                    source=str(source) if source.is_file() else "",
                    start_seconds=float(row[f"videos/{camera}/from_timestamp"]),
                    stop_seconds=float(row[f"videos/{camera}/to_timestamp"]),
                    procedure="; ".join(row.get("tasks") or ()) or None,
                )
            )
        classes = tuple(sorted({s.label for own in found.values() for s in own} - {""}))
        lengths = {video.id: (video.stop_seconds or 0.0) - video.start_seconds for video in videos}
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=SegmentTracks(classes, found, lengths, config.overlap),
            problems=tuple(problems),
        )

    def label_files(self, config: LerobotConfig) -> DocumentFiles:
        return DocumentFiles(place(config.path), FORMAT, config)


def _file_of(root: AnyPath, template: str, camera: str, row: dict[str, Any]) -> AnyPath:
    """The file that holds an episode as one camera saw it."""
    return root / template.format(
        video_key=camera,
        chunk_index=row[f"videos/{camera}/chunk_index"],
        file_index=row[f"videos/{camera}/file_index"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraView:
    """An episode as one camera saw it: a range of seconds of a file."""

    camera: str
    source: str
    start_seconds: float
    stop_seconds: float


def camera_views(path: str) -> dict[str, list[CameraView]]:
    """All cameras of each episode, whichever of them is audited."""
    root = place(path)
    info = _info(root)
    template = str(info.get("video_path") or DEFAULT_VIDEO_PATH)
    return {
        episode_id(row[EPISODE]): [
            CameraView(
                camera=camera,
                source=str(_file_of(root, template, camera, row)),
                start_seconds=float(row[f"videos/{camera}/from_timestamp"]),
                stop_seconds=float(row[f"videos/{camera}/to_timestamp"]),
            )
            for camera in _cameras(info)
        ]
        for row in _episodes(root)
    }


LAYOUT = LerobotLayout()
DEFAULT_VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"


def _info(root: AnyPath) -> dict[str, Any]:
    path = root / INFO
    try:
        info = json.loads(read_bytes(path))
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from error
    version = str(info.get("codebase_version", "")) if isinstance(info, dict) else ""
    if not version.startswith("v3"):
        raise DataError(
            f"{path}: codebase_version is {version!r}, expected v3.0; convert the dataset with "
            "lerobot's convert_dataset_v21_to_v30"
        )
    return dict(info)


def _cameras(info: dict[str, Any]) -> list[str]:
    features = info.get("features") or {}
    found = [
        name for name, f in features.items() if isinstance(f, dict) and f.get("dtype") == "video"
    ]
    if not found:
        raise DataError("meta/info.json has no feature of the dtype video")
    return found


def _camera(config: LerobotConfig, info: dict[str, Any]) -> str:
    cameras = _cameras(info)
    if config.camera is None:
        return cameras[0]
    if config.camera not in cameras:
        raise DataError(
            f"{config.path}: there is no camera {config.camera!r}; the cameras are "
            f"{', '.join(cameras)}"
        )
    return config.camera


def _episodes(root: AnyPath) -> list[dict[str, Any]]:
    """A row an episode: where it lies in the files of its cameras."""
    rows: list[dict[str, Any]] = []
    for file in sorted(root.glob(EPISODES), key=str):
        table = _table(file)
        names = [
            n for n in table.column_names if n.startswith("videos/") or n in (EPISODE, "tasks")
        ]
        rows += table.select(names).to_pylist()
    return rows


def _table(file: Any) -> "pa.Table":
    return parquet_table(read_bytes(file), str(file))


def _labels(root: AnyPath, config: LerobotConfig | None) -> LabelSets:
    """Subtasks in the files of episodes, or else in those of their frames."""
    sets = read_sets(sorted(root.glob(EPISODES), key=str), FORMAT, config)
    if sets.segments or sets.problems:
        return sets
    frames: list[AnyPath] = sorted(root.glob(FRAMES), key=str)
    if not frames or LANGUAGE not in _table(frames[0]).column_names:
        raise DataError(
            f"{root} has no labels: no column sparse_ or dense_subtask_names in meta/episodes, no "
            f"{LANGUAGE} in data"
        )
    return read_sets(frames, FORMAT, config)
