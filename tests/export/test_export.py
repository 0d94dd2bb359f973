"""Exports, read back with each format's own reader, or by its documented form."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import h5py
import made_run
import numpy as np
import pandas as pd
import pytest

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.config import ActivityNetConfig
from csl_dist.data.layouts import read_dataset
from csl_dist.data.media.video import VideoFile
from csl_dist.errors import ConfigError
from csl_dist.export import FORMATS, Format, export
from csl_dist.types import Media


@pytest.fixture(scope="module")
def audit(made_folder: Path) -> Audit:
    return csl_dist.open_audit(str(made_folder / "run"))


@pytest.fixture(scope="module")
def flag(audit: Audit) -> pd.Series:
    return audit.flags().iloc[0]


def source_frames(flag: pd.Series) -> tuple[int, int]:
    """First and last frame of the 20 fps source behind a flag in frames at 10 fps, from 0."""
    return 2 * flag.start, 2 * flag.stop - 1


def test_frames_and_seconds_name_the_same_pictures_of_the_source(
    audit: Audit, flag: pd.Series, tmp_path: Path
) -> None:
    """The brightness of a picture tells its place in the video."""
    export(audit, "csv", tmp_path / "flags.csv")
    row = pd.read_csv(tmp_path / "flags.csv").iloc[0]
    times = VideoFile(row.source).times()
    for frame, seconds in ((row.source_start, row.start_seconds),):
        assert times[frame] == pytest.approx(seconds)
        by_frame, by_time = (
            next(iter(VideoFile(row.source).decode(np.array([time]))))
            for time in (times[frame], seconds)
        )
        assert (by_frame == by_time).all()
    assert times[row.source_stop - 1] + 1 / 20 == pytest.approx(row.stop_seconds)
    assert (row.source_start, row.source_stop - 1) == source_frames(flag)


@pytest.mark.parametrize(("name", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_tables_hold_every_column_of_the_flags(
    audit: Audit, tmp_path: Path, name: str, read: object
) -> None:
    words = export(audit, name, tmp_path / "flags")
    assert words.startswith("1 span of 1 video in")
    table = read(tmp_path / "flags")  # type: ignore[operator]
    assert set(audit.flags().columns) <= set(table.columns)
    assert table.score[0] == pytest.approx(audit.flags().score[0])


def test_label_studio_counts_from_one_to_the_last_frame(
    audit: Audit, flag: pd.Series, tmp_path: Path
) -> None:
    export(audit, "label-studio", tmp_path / "tasks.json")
    [task] = json.loads((tmp_path / "tasks.json").read_text())
    assert Path(task["data"]["video"]).exists()
    [region] = task["predictions"][0]["result"]
    first, last = source_frames(flag)
    assert region["value"]["ranges"] == [{"start": first + 1, "end": last + 1}]
    assert region["value"]["timelinelabels"] == ["b"]


def test_label_studio_accepts_the_tasks(audit: Audit, tmp_path: Path) -> None:
    reason = "label-studio-sdk is not installed; it needs an older numpy"
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason=reason)
    export(audit, "label-studio", tmp_path / "tasks.json")
    interface = sdk.LabelInterface((tmp_path / "tasks.xml").read_text())
    interface.validate()
    [task] = json.loads((tmp_path / "tasks.json").read_text())
    assert interface.validate_task({"data": task["data"]})
    assert interface.validate_prediction(task["predictions"][0])
    region = task["predictions"][0]["result"][0]
    assert interface.validate_region(region)


def test_fiftyone_labels_have_supports_within_the_video(
    audit: Audit, flag: pd.Series, tmp_path: Path
) -> None:
    export(audit, "fiftyone", tmp_path / "out")
    content = json.loads((tmp_path / "out/labels.json").read_text())
    [detection] = content["labels"]["v2"]
    first, last = source_frames(flag)
    assert detection["support"] == [first + 1, last + 1]
    assert content["classes"][detection["label"]] == "b"
    assert 0 <= detection["confidence"] <= 1
    assert (tmp_path / "out/data/v2.mp4").resolve().exists()
    export(audit, "fiftyone", tmp_path / "out")


def test_fiftyone_reads_the_dataset(audit: Audit, flag: pd.Series, tmp_path: Path) -> None:
    """With FiftyOne's own importer, which needs no database."""
    data = pytest.importorskip("fiftyone.utils.data", reason="fiftyone is not installed: 1 GB")
    export(audit, "fiftyone", tmp_path / "out")
    importer = data.FiftyOneTemporalDetectionDatasetImporter(
        str(tmp_path / "out"), compute_metadata=False
    )
    with importer:
        [(path, _, labels, _)] = list(importer)
    [detection] = labels.detections
    first, last = source_frames(flag)
    assert Path(path).resolve() == Path(audit.videos_by_id["v2"].source).resolve()
    assert detection.label == "b"
    assert list(detection.support) == [first + 1, last + 1]


def test_cvat_tags_the_flagged_frames_alone(audit: Audit, flag: pd.Series, tmp_path: Path) -> None:
    export(audit, "cvat", tmp_path / "out")
    root = ET.parse(tmp_path / "out/v2.xml").getroot()
    assert root.findtext("version") == "1.1"
    assert root.findtext("meta/task/size") == "600"
    frames = [int(image.attrib["id"]) for image in root.iter("image")]
    first, last = source_frames(flag)
    assert frames == list(range(first, last + 1))
    assert {tag.attrib["label"] for tag in root.iter("tag")} == {"b"}
    assert len(list(root.iter("tag"))) == len(frames)


def test_activitynet_is_read_by_our_own_reader_of_the_layout(
    audit: Audit, flag: pd.Series, tmp_path: Path, made_folder: Path
) -> None:
    export(audit, "activitynet", tmp_path / "flags.json")
    config = ActivityNetConfig(path=str(tmp_path / "flags.json"), media=str(made_folder))
    dataset = read_dataset(config)
    [video] = dataset.videos
    assert (video.id, dataset.problems) == ("v2", ())
    track = dataset.track(video)
    labels = track.at(np.arange(made_run.NUM_FRAMES) / made_run.FPS)
    assert np.flatnonzero(labels >= 0).tolist() == list(range(flag.start, flag.stop))


def test_hdf5_holds_whole_trajectories(audit: Audit, tmp_path: Path) -> None:
    export(audit, "hdf5", tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        assert list(file) == ["v2", "v3"]
        stored = file["v3/framewise/log_probability"][:]
        assert (stored == made_run.log_probabilities("v3", "framewise")).all()
        assert file["v2/transformer/csl"][:] == pytest.approx(audit.csl("v2"))
        assert file["v2/label"][130] == 2
        assert list(file.attrs["classes"]) == ["a", "b", "c"]


@pytest.fixture
def swapped(made_folder: Path) -> Audit:
    """The audit, as if its rule had found that a and b, frames 60 to 100 to 120, are swapped."""
    audit = csl_dist.open_audit(str(made_folder / "run"))
    found = audit.flags().head(1)
    audit._flags = found.assign(
        **{"start": 60, "stop": 120, "stop_seconds": 12.000000000000002, "label": "a"},
        **{"suggested": "b", "kind": "disorder", "fix": "swap 60 100 120", "probability": 0.81234},
    )
    return audit


def test_label_studio_of_a_swap_has_both_labels_and_the_probability(
    swapped: Audit, tmp_path: Path
) -> None:
    export(swapped, "label-studio", tmp_path / "tasks.json")
    [task] = json.loads((tmp_path / "tasks.json").read_text())
    [prediction] = task["predictions"]
    values = [region["value"] for region in prediction["result"]]
    assert values == [
        {"ranges": [{"start": 121, "end": 160}], "timelinelabels": ["b"]},
        {"ranges": [{"start": 161, "end": 240}], "timelinelabels": ["a"]},
    ]
    assert len({region["id"] for region in prediction["result"]}) == 2
    assert {prediction["score"], *(region["score"] for region in prediction["result"])} == {0.8123}


def test_fiftyone_of_a_swap_has_both_labels_and_the_probability(
    swapped: Audit, tmp_path: Path
) -> None:
    export(swapped, "fiftyone", tmp_path / "out")
    content = json.loads((tmp_path / "out/labels.json").read_text())
    found = [(d["label"], d["support"], d["confidence"]) for d in content["labels"]["v2"]]
    assert found == [(1, [121, 160], 0.8123), (0, [161, 240], 0.8123)]


def test_cvat_of_a_swap_tags_each_part_with_its_label(swapped: Audit, tmp_path: Path) -> None:
    export(swapped, "cvat", tmp_path / "out")
    images = list(ET.parse(tmp_path / "out/v2.xml").getroot().iter("image"))
    labels = [tag.attrib["label"] for image in images for tag in image.iter("tag")]
    assert labels == ["b"] * 40 + ["a"] * 80


def test_activitynet_of_a_swap_has_both_segments_in_milliseconds(
    swapped: Audit, tmp_path: Path
) -> None:
    export(swapped, "activitynet", tmp_path / "flags.json")
    video = json.loads((tmp_path / "flags.json").read_text())["database"]["v2"]
    segments = [(one["segment"], one["label"]) for one in video["annotations"]]
    assert segments == [([6.0, 8.0], "b"), ([8.0, 12.0], "a")]
    assert (video["fps"], video["duration"]) == (20.0, 30.0)


def test_table_of_a_swap_has_the_edits_and_seconds_in_milliseconds(
    swapped: Audit, tmp_path: Path
) -> None:
    export(swapped, "csv", tmp_path / "flags.csv")
    row = pd.read_csv(tmp_path / "flags.csv").iloc[0]
    assert json.loads(row.proposal) == [
        {"start": 60, "stop": 80, "label": "b"},
        {"start": 80, "stop": 120, "label": "a"},
    ]
    assert row.stop_seconds == 12.0


def test_flag_without_a_fix_is_exported_as_it_is_labelled(swapped: Audit, tmp_path: Path) -> None:
    """It says where to look, and not what to do."""
    swapped._flags = swapped._flags.assign(fix=np.nan, kind="ambiguous")
    export(swapped, "activitynet", tmp_path / "flags.json")
    [flag] = json.loads((tmp_path / "flags.json").read_text())["database"]["v2"]["annotations"]
    assert (flag["segment"], flag["label"]) == ([6.0, 12.0], "a")


@pytest.mark.parametrize(("name", "file"), [("cvat", "flags.xml"), ("fiftyone", "flags.json")])
def test_format_of_a_folder_refuses_the_name_of_a_file(
    audit: Audit, tmp_path: Path, name: str, file: str
) -> None:
    with pytest.raises(ConfigError, match="is a folder .*give a folder, such as .*/flags$"):
        export(audit, name, tmp_path / file)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_export_into_a_folder_that_does_not_exist_is_refused(
    audit: Audit, tmp_path: Path, form: Format
) -> None:
    with pytest.raises(ConfigError, match="there is no folder .*/none; make it first"):
        export(audit, form.name, tmp_path / f"none/out{form.suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["label-studio", "fiftyone"])
def test_features_for_a_tool_that_plays_videos_are_told(
    made_folder: Path, tmp_path: Path, name: str
) -> None:
    audit = csl_dist.open_audit(str(made_folder / "run"))
    audit.videos_by_id["v2"] = replace(audit.videos_by_id["v2"], media=Media.FEATURES)
    words = export(audit, name, tmp_path / "out")
    assert "1 of the videos are features, which the tool can't play: dataset.path names no" in words


def test_unknown_format_is_refused_with_a_list_of_formats(audit: Audit, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected one of label-studio, fiftyone"):
        export(audit, "coco", tmp_path / "out")
    assert {one.name for one in FORMATS} == {
        *("label-studio", "fiftyone", "cvat", "activitynet", "csv", "parquet", "hdf5")
    }
