"""What holds for every layout: its section in the config, and labels that need no media."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from format_files import SAMPLES, write_sample
from layout_files import WRITERS, touch
from lerobot_files import write_lerobot

from csl_dist.config import DATASET_SECTIONS, DatasetConfig, ManifestConfig
from csl_dist.data.layouts import LAYOUTS, open_dataset, read_dataset
from csl_dist.errors import DataError

ALL: dict[str, Callable[[Path], DatasetConfig]] = WRITERS | {
    "lerobot": partial(write_lerobot, videos=False),
}
ALL |= {layout: partial(write_sample, layout) for layout in SAMPLES}
MEDIA_FOLDERS = ("videos", "features", "tea/features_10fps")


def test_every_layout_has_its_section_in_the_config() -> None:
    assert list(LAYOUTS) == list(DATASET_SECTIONS) == list(ALL)
    for name, layout in LAYOUTS.items():
        assert layout.name == name


@pytest.mark.parametrize("layout", ALL)
def test_copy_without_media_lists_the_same_videos_and_labels(tmp_path: Path, layout: str) -> None:
    whole = open_dataset(ALL[layout](tmp_path / "whole"))
    config = ALL[layout](tmp_path / "labels")
    for folder in MEDIA_FOLDERS:
        shutil.rmtree(tmp_path / "labels" / folder, ignore_errors=True)
    alone = read_dataset(config, media="optional")
    assert alone.problems == ()
    assert alone.classes == whole.classes
    assert [(v.id, v.split, v.group) for v in alone.videos] == [
        (v.id, v.split, v.group) for v in whole.videos
    ]
    assert alone.folds == whole.folds
    times_T = np.arange(0, 5, 0.1)
    for video, original in zip(alone.videos, whole.videos, strict=True):
        assert Path(video.labels).is_relative_to(tmp_path / "labels")
        labels_T = alone.track(video).at(times_T)
        assert (labels_T >= 0).any()
        assert labels_T.tolist() == whole.track(original).at(times_T).tolist()


@pytest.mark.parametrize("layout", [name for name in ALL if name != "manifest"])
def test_media_that_are_not_there_are_problems_unless_optional(tmp_path: Path, layout: str) -> None:
    config = ALL[layout](tmp_path)
    for folder in MEDIA_FOLDERS:
        shutil.rmtree(tmp_path / folder, ignore_errors=True)
    assert read_dataset(config).videos == ()
    with pytest.raises(DataError, match=r"no media|no features|no video"):
        open_dataset(config)
    assert {video.source for video in read_dataset(config, media="optional").videos} == {""}


def test_manifest_of_labels_alone_needs_no_sources(tmp_path: Path) -> None:
    touch(tmp_path / "manifest.csv", "id,labels,fps\nv,v.txt,2\nw,w.txt,2\n")
    for name in ("v", "w"):
        touch(tmp_path / f"{name}.txt", "a\nb\n")
    config = ManifestConfig(path=str(tmp_path))
    dataset = read_dataset(config, media="optional")
    assert [(video.id, video.source) for video in dataset.videos] == [("v", ""), ("w", "")]
    assert dataset.problems == ()
    with pytest.raises(DataError, match="column source is missing"):
        read_dataset(config)
