"""Videos that are ranges of one file: player, pictures, report and every export show their seconds.

The brightness of a picture tells its frame in the file, so that a wrong second is seen.
"""

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import h5py
import numpy as np
import pandas as pd
import pytest
from audited import audited
from lerobot_files import CAMERA, FPS, LENGTHS, write_lerobot
from PIL import Image
from review_page import Reviewer, serving
from served import client_of

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.data.media.video import VideoFile
from csl_dist.export import FORMATS, export
from csl_dist.report.thumbnails import frame_pictures, span_pictures
from csl_dist.review.edits import proposal
from csl_dist.types import Span

SUFFIXES = {one.name: one.suffix for one in FORMATS}
EPISODES = {"episode_000001": LENGTHS[0], "episode_000003": LENGTHS[2]}
"""Audited episodes, and the frame of their file that each begins with."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("robots")
    config = write_lerobot(folder / "data")
    return audited(config, folder / "run", train="episode_000002", audit=tuple(EPISODES))


@pytest.fixture(scope="module")
def audit(root: str) -> Audit:
    return csl_dist.open_audit(root)


def brightness(frame_in_file: int) -> Any:
    return pytest.approx(20 + 3 * frame_in_file, abs=3)


def mean_of(picture: bytes) -> float:
    return float(np.asarray(Image.open(io.BytesIO(picture))).mean())


@pytest.mark.parametrize("video", EPISODES)
def test_service_shows_the_frames_of_the_range(root: str, video: str) -> None:
    client = client_of(root)
    facts = client.get(f"/api/audits/run/video?video={video}").json()
    assert facts["media"] == "video"
    assert facts["start_seconds"] == EPISODES[video] / FPS
    for frame in (0, 7, 19):
        answer = client.get(f"/api/audits/run/picture?video={video}&frame={frame}")
        assert mean_of(answer.content) == brightness(EPISODES[video] + frame)
    played = client.get(f"/api/audits/run/media?video={video}").content
    assert played == Path(csl_dist.open_audit(root).videos_by_id[video].source).read_bytes()


def test_player_plays_the_seconds_of_the_range(browser: Any, root: str, audit: Audit) -> None:
    flag = audit.flags().iloc[0]
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.see("#clock", f"frame {flag.start}")
        at = ada.page.locator("#video").evaluate(
            "v => new Promise((done) => {"
            " const tell = () => v.seeking || v.readyState < 2 ? setTimeout(tell, 20)"
            " : done(v.currentTime); tell(); })"
        )
        assert at == pytest.approx((EPISODES[flag.video] + flag.start) / FPS, abs=0.5 / FPS)
        ada.press("Shift+ArrowLeft")
        ada.see("#clock", re.compile(rf"frame {max(0, flag.start - FPS)}\b"))
        ada.leave()


def test_report_and_figures_show_the_frames_of_the_range(audit: Audit) -> None:
    for video, first in EPISODES.items():
        [pictures] = span_pictures(audit, video, [Span(4, 15)]).values()
        shown = [mean_of(base64.b64decode(one.partition(",")[2])) for one in pictures]
        assert shown == [brightness(first + frame) for frame in (4, 9, 14)]
        pixels = frame_pictures(audit, video, np.array([12, 3]))
        assert [float(one.mean()) for one in pixels] == [brightness(first + f) for f in (12, 3)]


Spans = dict[tuple[str, int], tuple[int, int]]
"""Frames of the file, from 0 and half-open, by video and first frame of a flag."""


def of_table(read: Callable[[Path], pd.DataFrame]) -> Callable[[Path, pd.DataFrame], Spans]:
    return lambda path, _: {
        (row.video, row.start): (row.source_start, row.source_stop)
        for row in read(path).itertuples()
    }


def of_label_studio(path: Path, flags: pd.DataFrame) -> Spans:
    by_rank = {row.rank: row for row in flags.itertuples()}
    spans = {}
    for task in json.loads(path.read_text()):
        for region in task["predictions"][0]["result"]:
            rank, _ = region["id"].removeprefix("csl-").split("-")
            row = by_rank[int(rank)]
            [found] = region["value"]["ranges"]
            spans[row.video, row.start] = (found["start"] - 1, found["end"])
    return spans


def of_cvat(path: Path, flags: pd.DataFrame) -> Spans:
    ids = {
        video: {int(image.get("id", "")) for image in ET.parse(path / f"{video}.xml").iter("image")}
        for video in flags.video.unique()
    }
    spans = {}
    for row in flags.itertuples():
        first = EPISODES[row.video] + row.start
        length = row.stop - row.start
        assert set(range(first, first + length)) <= ids[row.video]
        assert min(ids[row.video]) >= EPISODES[row.video]
        spans[row.video, row.start] = (first, first + length)
    return spans


def of_fiftyone(path: Path, flags: pd.DataFrame) -> Spans:
    labels = json.loads((path / "labels.json").read_text())["labels"]
    for video in labels:
        link = path / f"data/{video}.mp4"
        assert link.resolve().parts[-3:-1] == (CAMERA, "chunk-000")
    return {
        (row.video, row.start): (support[0] - 1, support[1])
        for video, own in flags.groupby("video", sort=False)
        for row, support in zip(
            own.itertuples(), (one["support"] for one in labels[video]), strict=True
        )
    }


def of_activitynet(path: Path, flags: pd.DataFrame) -> Spans:
    database = json.loads(path.read_text())["database"]
    spans = {}
    for video, own in flags.groupby("video", sort=False):
        entry = database[video]
        for row, one in zip(own.itertuples(), entry["annotations"], strict=True):
            start, stop = (round((entry["source_start"] + s) * FPS) for s in one["segment"])
            spans[video, row.start] = (start, stop)
    return spans


def of_hdf5(path: Path, flags: pd.DataFrame) -> Spans:
    spans = {}
    with h5py.File(path) as file:
        for row in flags.itertuples():
            group = file[row.video]
            seconds_T = group.attrs["source_start"] + group["seconds"][:]
            frames = np.round(seconds_T * FPS).astype(int)
            spans[row.video, row.start] = (int(frames[row.start]), int(frames[row.stop - 1]) + 1)
    return spans


READERS: dict[str, Callable[[Path, pd.DataFrame], Spans]] = {
    "csv": of_table(pd.read_csv),
    "parquet": of_table(pd.read_parquet),
    "label-studio": of_label_studio,
    "cvat": of_cvat,
    "fiftyone": of_fiftyone,
    "activitynet": of_activitynet,
    "hdf5": of_hdf5,
}


def test_every_export_has_its_reader_here() -> None:
    assert set(READERS) == set(SUFFIXES)


def _written(audit: Audit, flag: dict[str, Any], name: str) -> tuple[int, int]:
    """The flag's own frames, or, by formats of labels, those that its fix labels."""
    edits = proposal(flag, audit.annotation(flag["video"]).labels_T)
    if name in ("label-studio", "fiftyone", "activitynet") and edits:
        return edits[0].start, edits[0].stop
    return flag["start"], flag["stop"]


@pytest.mark.parametrize("name", READERS)
def test_export_names_the_frames_of_the_file(audit: Audit, tmp_path: Path, name: str) -> None:
    flags = audit.flags()
    assert set(flags.video) == set(EPISODES)
    path = tmp_path / f"out{SUFFIXES[name]}"
    export(audit, name, path)
    spans = READERS[name](path, flags)
    assert spans == {
        (flag["video"], flag["start"]): tuple(
            EPISODES[flag["video"]] + frame for frame in _written(audit, flag, name)
        )
        for flag in flags.to_dict("records")
    }
    for (video, _), (start, _) in spans.items():
        file = VideoFile(audit.videos_by_id[video].source)
        [pixels] = file.decode(file.times()[[start]])
        assert float(np.mean(pixels)) == brightness(start)  # type: ignore[arg-type]
