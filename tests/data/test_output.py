"""Corrected labels never land on a file that is read, nor outside the folder that was asked for."""

import os
from pathlib import Path

import numpy as np
import pytest
from layout_files import WRITERS, touch

from csl_dist.config import DatasetConfig, ManifestConfig
from csl_dist.data.layouts import (
    Dataset,
    Edge,
    Renaming,
    corrected_labels,
    open_dataset,
    read_dataset,
    write_renamed,
)
from csl_dist.data.layouts.places import places
from csl_dist.errors import DataError

TIMES = np.arange(3) / 20

START = Edge(after=-np.inf, at=0.0, middle=-np.inf)
STOP = Edge(after=0.5, at=0.6, middle=0.55)


def relabelled(dataset: Dataset, config: DatasetConfig, out: Path, *ids: str) -> list[Path]:
    """Gives the first frames of some videos the last class; of all videos where none are named."""
    wanted = ids or tuple(video.id for video in dataset.videos)
    renaming = Renaming(start=START, stop=STOP, label=dataset.classes[-1])
    return write_renamed(
        config,
        dataset.videos,
        {video: [renaming] for video in wanted},
        frame_rates=dict.fromkeys(wanted, 5.0),
        out=out,
    )


def first_labels(dataset: Dataset, config: DatasetConfig, path: Path) -> dict[str, list[int]]:
    found = corrected_labels(config, dataset.classes, dataset.videos, path)
    return {video.id: found.track(video).at(TIMES).tolist() for video in found.videos}


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("layout", WRITERS)
def test_labels_below_another_folder_read_back(tmp_path: Path, layout: str) -> None:
    config = WRITERS[layout](tmp_path / "data")
    dataset, before = open_dataset(config), contents(tmp_path / "data")
    out = tmp_path / "x" / ".." / "fixed"
    for path in relabelled(dataset, config, out):
        assert path.resolve().is_relative_to(tmp_path / "fixed")
    last = len(dataset.classes) - 1
    read = first_labels(dataset, config, out)
    assert read == {video.id: [last] * 3 for video in dataset.videos}
    assert contents(tmp_path / "data") == before


@pytest.mark.parametrize("layout", WRITERS)
@pytest.mark.parametrize("out", ["data", "data/../data", "linked", "other/../data"])
def test_folder_of_the_dataset_is_never_written_to(tmp_path: Path, layout: str, out: str) -> None:
    config = WRITERS[layout](tmp_path / "data")
    (tmp_path / "other").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "data")
    dataset, before = open_dataset(config), contents(tmp_path / "data")
    with pytest.raises(DataError, match="is a file that the audit reads, and is not overwritten"):
        relabelled(dataset, config, tmp_path / out)
    assert contents(tmp_path / "data") == before


@pytest.mark.parametrize("layout", WRITERS)
def test_dataset_that_is_named_through_a_link_is_safe_too(tmp_path: Path, layout: str) -> None:
    WRITERS[layout](tmp_path / "data")
    (tmp_path / "linked").symlink_to(tmp_path / "data")
    config = WRITERS[layout](tmp_path / "linked")
    dataset, before = open_dataset(config), contents(tmp_path / "data")
    with pytest.raises(DataError, match="not overwritten"):
        relabelled(dataset, config, tmp_path / "data")
    relabelled(dataset, config, tmp_path / "fixed")
    assert contents(tmp_path / "data") == before
    assert len(first_labels(dataset, config, tmp_path / "fixed")) == len(dataset.videos)


@pytest.mark.parametrize("layout", WRITERS)
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_links_to_label_files_are_not_written_through(
    tmp_path: Path, layout: str, link: object
) -> None:
    assert callable(link)
    config = WRITERS[layout](tmp_path / "data")
    dataset, before = open_dataset(config), contents(tmp_path / "data")
    [first, *_] = relabelled(dataset, config, tmp_path / "fixed", dataset.videos[-1].id)
    first.unlink()
    link(dataset.videos[-1].labels, first)
    with pytest.raises(DataError, match="not overwritten"):
        relabelled(dataset, config, tmp_path / "fixed")
    assert contents(tmp_path / "data") == before


@pytest.mark.parametrize("layout", WRITERS)
def test_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path, layout: str) -> None:
    config = WRITERS[layout](tmp_path / "data")
    dataset = open_dataset(config)
    [first, *_] = relabelled(dataset, config, tmp_path / "fixed", dataset.videos[-1].id)
    first.unlink()
    first.symlink_to(touch(tmp_path / "elsewhere", "mine"))
    with pytest.raises(DataError, match="leads to .*elsewhere, which is outside"):
        relabelled(dataset, config, tmp_path / "fixed")
    assert (tmp_path / "elsewhere").read_text() == "mine"


@pytest.mark.parametrize("layout", WRITERS)
def test_labels_that_were_corrected_before_are_kept(tmp_path: Path, layout: str) -> None:
    """The next correction starts from them, so that writing to them would lose it."""
    config = WRITERS[layout](tmp_path / "data")
    dataset = open_dataset(config)
    relabelled(dataset, config, tmp_path / "first")
    before = contents(tmp_path / "first")
    found = corrected_labels(config, dataset.classes, dataset.videos, tmp_path / "first")
    current = {video.id: video.labels for video in found.videos}

    def again(out: Path) -> list[Path]:
        span = Renaming(start=START, stop=STOP, label=dataset.classes[0])
        video = dataset.videos[0].id
        rates = {video: 5.0}
        return write_renamed(
            config, dataset.videos, {video: [span]}, frame_rates=rates, out=out, current=current
        )

    with pytest.raises(DataError, match="not overwritten"):
        again(tmp_path / "first")
    assert contents(tmp_path / "first") == before
    again(tmp_path / "second")
    assert first_labels(dataset, config, tmp_path / "second")[dataset.videos[0].id] == [0] * 3


def test_further_inputs_are_kept(tmp_path: Path) -> None:
    """Such as the labels of videos that are trained on, which are not among those to correct."""
    config = WRITERS["manifest"](tmp_path / "data")
    dataset = open_dataset(config)
    trained = touch(tmp_path / "fixed/labels/m3.txt", "stir\n")
    span = Renaming(start=START, stop=STOP, label="cut")
    with pytest.raises(DataError, match="not overwritten"):
        write_renamed(
            config,
            dataset.videos,
            {"m3": [span]},
            frame_rates={"m3": 5.0},
            out=tmp_path / "fixed",
            inputs=[str(trained)],
        )
    assert trained.read_text() == "stir\n"


# --- label files that a manifest names in unusual ways ---


def manifest_of(folder: Path, *labels: str) -> tuple[ManifestConfig, Dataset]:
    rows = [f"v{i},v{i}.mp4,{path},audit,5" for i, path in enumerate(labels)]
    touch(folder / "manifest.csv", "\n".join(["id,source,labels,split,fps", *rows, ""]))
    for path in labels:
        if not (folder / path).exists():
            touch(folder / path, "a\na\na\nb\n")
    config = ManifestConfig(path=str(folder / "manifest.csv"))
    return config, read_dataset(config)


def check_written(
    tmp_path: Path, config: ManifestConfig, dataset: Dataset, expected: list[str]
) -> None:
    """Files of each video alone stand where they should, and are read back for it alone."""
    before = {video.labels: Path(video.labels).read_text() for video in dataset.videos}
    for number, video in enumerate(dataset.videos):
        out = tmp_path / "fixed" / str(number)
        [path] = relabelled(dataset, config, out, video.id)
        assert path == out / expected[number]
        assert first_labels(dataset, config, out) == {video.id: [1, 1, 1]}
    out = tmp_path / "fixed" / "all"
    assert relabelled(dataset, config, out) == [out / place for place in expected]
    assert set(first_labels(dataset, config, out)) == {video.id for video in dataset.videos}
    assert {file: Path(file).read_text() for file in before} == before


def test_labels_beside_the_manifests_folder_are_not_overwritten(tmp_path: Path) -> None:
    """`fixed/../labels/x.txt` is the original."""
    config, dataset = manifest_of(tmp_path / "data", "../labels/x.txt", "../labels/y.txt")
    originals = contents(tmp_path / "labels")
    files = relabelled(dataset, config, tmp_path / "fixed")
    assert files == [tmp_path / "fixed/x.txt", tmp_path / "fixed/y.txt"]
    assert contents(tmp_path / "labels") == originals
    with pytest.raises(DataError, match="not overwritten"):
        relabelled(dataset, config, tmp_path / "labels")
    assert contents(tmp_path / "labels") == originals


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["labels/x.txt", "labels/y.txt"], ["labels/x.txt", "labels/y.txt"]),
        (["a/x.txt", "b/x.txt"], ["a/x.txt", "b/x.txt"]),
        (["x.txt", "a/x.txt"], ["x.txt", "a/x.txt"]),
        (["../a/x.txt", "../b/x.txt"], ["a/x.txt", "b/x.txt"]),
        (["../a/x.txt", "../b/c/x.txt"], ["a/x.txt", "b/c/x.txt"]),
        (["sub/../x.txt", "a/x.txt"], ["x.txt", "a/x.txt"]),
        (["a/x.txt", "../b/a/x.txt"], ["a/x.txt", "x.txt"]),
        (
            ["a/x.txt", "../b/a/x.txt", "../b/y.txt"],
            ["data/a/x.txt", "b/a/x.txt", "b/y.txt"],
        ),
        (["a/x.txt", "../b/y.txt"], ["a/x.txt", "y.txt"]),
    ],
)
def test_files_of_one_name_stay_apart(
    tmp_path: Path, labels: list[str], expected: list[str]
) -> None:
    (tmp_path / "data/sub").mkdir(parents=True)
    config, dataset = manifest_of(tmp_path / "data", *labels)
    check_written(tmp_path, config, dataset, expected)


def test_absolute_and_linked_paths_stay_apart(tmp_path: Path) -> None:
    touch(tmp_path / "far/a/x.txt", "a\na\na\nb\n")
    touch(tmp_path / "far/b/x.txt", "a\na\na\nb\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/linked").symlink_to(tmp_path / "far/b")
    config, dataset = manifest_of(tmp_path / "data", f"{tmp_path}/far/a/x.txt", "linked/x.txt")
    check_written(tmp_path, config, dataset, ["x.txt", "linked/x.txt"])


def test_two_links_with_dots_that_look_alike_stay_apart(tmp_path: Path) -> None:
    """`linked/../x.txt` is not `x.txt`: the link leads elsewhere."""
    touch(tmp_path / "far/x.txt", "a\na\na\nb\n")
    (tmp_path / "far/sub").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/linked").symlink_to(tmp_path / "far/sub")
    config, dataset = manifest_of(tmp_path / "data", "linked/../x.txt", "x.txt")
    check_written(tmp_path, config, dataset, ["far/x.txt", "data/x.txt"])


def test_one_file_of_two_videos_gets_the_changes_of_both(tmp_path: Path) -> None:
    config, dataset = manifest_of(tmp_path / "data", "x.txt", "x.txt")
    spans = {
        "v0": [Renaming(start=START, stop=Edge(after=0.0, at=0.2, middle=0.1), label="b")],
        "v1": [Renaming(start=Edge(after=0.2, at=0.4, middle=0.3), stop=STOP, label="b")],
    }
    rates = {"v0": 5.0, "v1": 5.0}
    files = write_renamed(config, dataset.videos, spans, frame_rates=rates, out=tmp_path / "fixed")
    assert files == [tmp_path / "fixed/x.txt"]
    assert files[0].read_text().split() == ["b", "a", "b", "b"]


def test_single_file_is_taken_only_where_its_name_is_of_one_video(tmp_path: Path) -> None:
    config, dataset = manifest_of(tmp_path / "data", "a/x.txt", "b/x.txt", "b/y.txt")
    given = touch(tmp_path / "y.txt", "b\nb\nb\nb\n")
    assert first_labels(dataset, config, given) == {"v2": [1, 1, 1]}
    unclear = touch(tmp_path / "x.txt", "b\nb\nb\nb\n")
    with pytest.raises(DataError, match="labels of none of the audited videos"):
        first_labels(dataset, config, unclear)


def test_nothing_is_written_where_one_file_is_refused(tmp_path: Path) -> None:
    config, dataset = manifest_of(tmp_path / "data", "a/x.txt", "b/x.txt")
    (tmp_path / "fixed").mkdir()
    (tmp_path / "fixed/b").symlink_to(tmp_path / "data/b")
    with pytest.raises(DataError, match="not overwritten"):
        relabelled(dataset, config, tmp_path / "fixed")
    assert not (tmp_path / "fixed/a").exists()


def test_folder_with_a_dot_in_its_name_is_a_folder(tmp_path: Path) -> None:
    config, dataset = manifest_of(tmp_path / "data.v2", "labels/x.txt")
    config = ManifestConfig(path=str(tmp_path / "data.v2"))
    check_written(tmp_path, config, dataset, ["labels/x.txt"])


def test_file_of_two_names_does_not_hide_that_two_others_meet(tmp_path: Path) -> None:
    touch(tmp_path / "b/a/x.txt")
    touch(tmp_path / "data/a/x.txt")
    (tmp_path / "data/y.txt").symlink_to(touch(tmp_path / "data/z.txt"))
    names = ["data/a/x.txt", "b/a/x.txt", "b/w.txt", "data/y.txt", "data/z.txt"]
    files = [str(tmp_path / name) for name in names]
    found = places(files, tmp_path / "data")
    assert found[files[0]] != found[files[1]]


def test_places_never_leave_the_folder(tmp_path: Path) -> None:
    files = ["/", "..", "../..", "/etc/x", "a/../../b", "data/../x", "./x"]
    for place in places([f"{tmp_path}/{file}/l.txt" for file in files], tmp_path).values():
        assert not place.is_absolute()
        assert ".." not in place.parts
