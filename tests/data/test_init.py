import shutil
from pathlib import Path

import numpy as np
import pytest
from format_files import SAMPLES, write_sample
from layout_files import WRITERS, write_cholec80, write_mstcn

from csl_dist.config import load_config
from csl_dist.data.check import look_at_videos
from csl_dist.data.init import config_text, draft_config, recognise, with_even_folds
from csl_dist.data.layouts import open_dataset
from csl_dist.errors import DataError
from csl_dist.types import Media


@pytest.mark.parametrize("layout", WRITERS)
def test_config_that_init_writes_opens_the_dataset(tmp_path: Path, layout: str) -> None:
    data = tmp_path / "my: data #1"
    WRITERS[layout](data)
    out = tmp_path / "csl.yaml"
    for asked in (layout, "auto"):
        out.write_text(config_text(draft_config(asked, data, out), name="x"))
        config = load_config(out)
        assert config.dataset.layout == layout
        assert len(open_dataset(config.dataset).videos) > 1


def test_folder_without_splits_gets_folds(tmp_path: Path) -> None:
    write_mstcn(tmp_path / "d")
    for file in (tmp_path / "d/splits").iterdir():
        file.unlink()
    (tmp_path / "d/splits").rmdir()
    draft = draft_config("mstcn", tmp_path / "d", tmp_path / "csl.yaml")
    assert draft.dataset["folds"] == 3


def test_init_makes_a_manifest_of_videos_and_labels_of_the_same_name(
    small_dataset: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    for kind, suffix in (("videos", ".mp4"), ("labels", ".txt")):
        (data / kind).mkdir(parents=True)
        for name in ("train01", "train02", "train03"):
            target = data / kind / f"{name}{suffix}"
            target.write_bytes((small_dataset / kind / target.name).read_bytes())
    out = tmp_path / "csl.yaml"
    draft = draft_config("manifest", data, out)
    out.write_text(config_text(draft, name="x"))
    draft = with_even_folds(draft, open_dataset(load_config(out).dataset))
    out.write_text(config_text(draft, name="x"))
    dataset = open_dataset(load_config(out).dataset)
    assert [v.id for v in dataset.videos] == ["train01", "train02", "train03"]
    assert len(dataset.folds) == 3, "a seed is found that leaves no fold empty"
    for video in dataset.videos:
        assert dataset.read_track(video).num_frames(10)[0] > 40
    assert not (data / "manifest.csv").exists(), "the user's folder is only read"


@pytest.mark.parametrize(
    ("layout", "sentence"),
    [
        ("mstcn", "not in the mstcn layout: it lacks mapping.txt, groundTruth"),
        (
            "auto",
            "none of the known layouts: manifest lacks manifest.csv; ",
        ),
        ("manifest", "found 1 media and 0 label files"),
        ("coco", "'coco' is not one of auto, manifest"),
    ],
)
def test_folder_that_is_something_else_says_what_it_lacks(
    tmp_path: Path, layout: str, sentence: str
) -> None:
    np.save(tmp_path / "lonely.npy", np.zeros(1))
    with pytest.raises(DataError, match=sentence):
        draft_config(layout, tmp_path, tmp_path / "csl.yaml")


def test_recognise_prefers_the_layout_that_lacks_nothing(tmp_path: Path) -> None:
    write_cholec80(tmp_path, 1)
    assert recognise(tmp_path) == "cholec80"


@pytest.mark.parametrize("layout", [*WRITERS, *SAMPLES])
def test_labels_alone_are_recognised_where_no_media_are_needed(tmp_path: Path, layout: str) -> None:
    WRITERS[layout](tmp_path) if layout in WRITERS else write_sample(layout, tmp_path)
    for media in ("videos", "features", "tea/features_10fps"):
        shutil.rmtree(tmp_path / media, ignore_errors=True)
    assert recognise(tmp_path, media="optional") == layout


def test_init_finds_videos_behind_links_and_with_any_name(
    small_dataset: Path, tmp_path: Path
) -> None:
    for kind, suffix in (("videos", ".mp4"), ("labels", ".txt")):
        for number in (1, 2, 3):
            target = tmp_path / "disk" / kind / f"Fall #{number} Müller (2){suffix}"
            target.parent.mkdir(parents=True, exist_ok=True)
            source = small_dataset / kind / f"train0{number}{suffix}"
            target.write_bytes(source.read_bytes())
    data = tmp_path / "data"
    data.mkdir()
    (data / "linked").symlink_to(tmp_path / "disk")
    out = tmp_path / "csl.yaml"
    out.write_text(config_text(draft_config("manifest", data, out), name="x"))
    assert b"\r" not in (tmp_path / "csl.manifest.csv").read_bytes()
    config = load_config(out)
    dataset = open_dataset(config.dataset)
    assert [video.media for video in dataset.videos] == [Media.VIDEO] * 3
    assert all(not facts.problems for facts in look_at_videos(dataset, config.dataset))
