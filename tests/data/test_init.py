import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from builder import MadeVideo, write_manifest
from format_files import SAMPLES, write_sample
from layout_files import WRITERS, touch, write_cholec80, write_mstcn
from typer.testing import CliRunner

from csl_dist.cli import main  # noqa: F401  registers every command
from csl_dist.cli.app import app
from csl_dist.config import load_config
from csl_dist.data.check import look_at_videos
from csl_dist.data.facts import dataset_facts
from csl_dist.data.init import (
    config_text,
    draft_config,
    guessed_group,
    recognise,
    with_even_folds,
    with_settings,
)
from csl_dist.data.layouts import open_dataset
from csl_dist.data.splits import balanced_seed, fold_of
from csl_dist.errors import DataError
from csl_dist.types import Media, Split, Video


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


@pytest.mark.parametrize("splits", [("audit",) * 3, ("train",) * 3, ("train", "audit", "audit")])
def test_recipe_has_folds_where_a_manifest_does_not_say_what_to_train_on(
    tmp_path: Path, splits: tuple[str, ...]
) -> None:
    videos = [
        MadeVideo(id=f"v{k}", split=split, names_T=["a", "b"], features_TD=np.zeros((2, 3)))
        for k, split in enumerate(splits)
    ]
    write_manifest(tmp_path / "d", videos, fps=1)
    out = tmp_path / "csl.yaml"
    draft = draft_config("manifest", tmp_path / "d", out)
    out.write_text(config_text(draft, name="x"))
    dataset = open_dataset(load_config(out).dataset)
    made = with_settings(draft, dataset, {"folds": (3, "models")})
    assert ("folds" in made.dataset) == (len(set(splits)) == 1)


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
    dataset = open_dataset(load_config(out).dataset)
    draft = with_even_folds(draft, dataset, dataset_facts(dataset).classes)
    out.write_text(config_text(draft, name="x"))
    dataset = open_dataset(load_config(out).dataset)
    assert [v.id for v in dataset.videos] == ["train01", "train02", "train03"]
    assert len(dataset.folds) == 3, "a seed is found that leaves no fold empty"
    for video in dataset.videos:
        assert dataset.read_track(video).num_frames(10)[0] > 40
    assert not (data / "manifest.csv").exists(), "the user's folder is only read"


def test_manifest_of_ready_features_needs_the_rate_of_labels(tmp_path: Path) -> None:
    for name in ("v1", "v2", "v3"):
        np.save(tmp_path / f"{name}.npy", np.zeros((6, 2)))
        (tmp_path / f"{name}.txt").write_text("a\n" * 6)
    out = tmp_path / "csl.yaml"
    with pytest.raises(
        DataError, match=r"how many labels a second .*v1.txt, beside v1.npy; give --fps"
    ):
        draft_config("manifest", tmp_path, out)
    out.write_text(config_text(draft_config("manifest", tmp_path, out, fps=30), name="x"))
    dataset = open_dataset(load_config(out).dataset)
    assert {video.labels_fps for video in dataset.videos} == {30}


def test_rate_is_refused_where_files_say_it(tmp_path: Path) -> None:
    out = tmp_path / "csl.yaml"
    write_manifest(tmp_path / "own", [], fps=1)
    write_mstcn(tmp_path / "mstcn")
    with pytest.raises(DataError, match=r"in its column fps; leave --fps out"):
        draft_config("manifest", tmp_path / "own", out, fps=30)
    with pytest.raises(DataError, match=r"--fps goes with `csl init manifest` alone"):
        draft_config("mstcn", tmp_path / "mstcn", out, fps=30)


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


def test_table_that_names_files_finds_them_at_any_depth(tmp_path: Path) -> None:
    rows = "video,start,end,label\na.mp4,0,1,cut\nb.mp4,0,1,cut\np2/c.mp4,0,1,cut\np.1,0,1,cut\n"
    touch(tmp_path / "labels.csv", rows)
    files = {"a": "a.mp4", "b": "deep/er/b.mp4", "p2/c": "p2/c.mp4", "p.1": "videos/p.1.mp4"}
    for file in (*files.values(), "videos/p.mp4", "c.mp4"):
        touch(tmp_path / file)
    out = tmp_path / "csl.yaml"
    out.write_text(config_text(draft_config("auto", tmp_path, out), name="x"))
    dataset = open_dataset(load_config(out).dataset)
    found = {video.id: str(Path(video.source).relative_to(tmp_path)) for video in dataset.videos}
    assert found == files


def init_words(path: Path, out: Path) -> str:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(
        app, ["init", "auto", str(path), "--out", str(out)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert all(len(line) <= 80 or "/" in line for line in lines), "but for paths"
    return "\n".join(line.rstrip() for line in lines)


def test_init_tells_what_is_there_what_it_guessed_and_how_to_change_it(tmp_path: Path) -> None:
    write_sample("epic_kitchens", tmp_path / "data")
    shutil.rmtree(tmp_path / "data/videos")
    said = init_words(tmp_path / "data", tmp_path / "csl.yaml")
    for words in (
        "  layout    epic_kitchens",
        "  videos    2 (without media)",
        "  track     verb",
        "  labels    6.5 s; 5 segments, 1.3 s in the mean",
        "  classes   3: cut, serve, stir",
        "  groups    2: P01, P02",
        "section dataset:",
        "  track      verb (of verb (5), noun (5), narration (5))",
        "labels alone: csl lint",
    ):
        assert words in said
    assert "has no media in" in said
    assert "lower it" not in said, "what follows from that is not told"


@pytest.mark.parametrize(("first_wrong", "written"), [(0, False), (2, True)])
def test_init_of_a_manifest_that_run_refuses_fails_and_says_what_came_of_the_config(
    tmp_path: Path, first_wrong: int, written: bool
) -> None:
    videos = [
        MadeVideo(
            id=f"v{k}",
            split="foo" if k >= first_wrong else "audit",
            names_T=["a", "b"],
            features_TD=np.zeros((2, 3)),
        )
        for k in range(6)
    ]
    write_manifest(tmp_path / "d", videos, fps=1)
    out = tmp_path / "csl.yaml"
    done = CliRunner().invoke(app, ["init", "manifest", str(tmp_path / "d"), "--out", str(out)])
    assert isinstance(done.exception, DataError)
    assert ("is written, but csl run refuses it" in str(done.exception)) == written
    assert ("is not written, since no video can be used" in str(done.exception)) != written
    assert out.exists() == written
    assert "split is 'foo'" in done.stderr


def test_init_of_an_unknown_layout_says_so_first(tmp_path: Path) -> None:
    out = tmp_path / "csl.yaml"
    out.touch()
    done = CliRunner().invoke(app, ["init", "foo", str(tmp_path), "--out", str(out)])
    assert isinstance(done.exception, DataError)
    assert "'foo' is not one of auto, manifest" in str(done.exception)


def test_init_of_one_track_and_of_a_table_tells_it(tmp_path: Path) -> None:
    write_sample("elan", tmp_path / "elan")
    shutil.rmtree(tmp_path / "elan/videos")
    assert "  track     steps, the only one" in init_words(tmp_path / "elan", tmp_path / "a.yaml")
    write_sample("segments", tmp_path / "table")
    shutil.rmtree(tmp_path / "table/videos")
    said = init_words(tmp_path / "table", tmp_path / "b.yaml")
    assert "guessed from labels.csv: start is begin, stop is end" in said
    assert "unit       s (or ms, frames (with labels_fps), clock (hh:mm:ss))" in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "case,t_on,t_off,code\nx1,0.5,3.2,A\nx1,3.2,8.0,B\nx2,0.0,2.0,A\n",
            {"start": "t_on", "stop": "t_off", "label": "code", "video": "case", "unit": "s"},
        ),
        (
            "VideoID;FrameNo;Phase\n269;0;1\n269;1300;2\n270;0;1\n270;800;3\n",
            {"start": "FrameNo", "label": "Phase", "video": "VideoID", "unit": "frames"},
        ),
        (
            "Begin Time - msec\tEnd Time - msec\tsteps\n0\t1500\tcut\n1500\t3000\tstir\n",
            {
                "start": "Begin Time - msec",
                "stop": "End Time - msec",
                "label": "steps",
                "unit": "ms",
            },
        ),
        (
            "0:00:01.5\t0:00:03\tcut\n0:00:03\t0:00:09\tstir\n",
            {"start": 0, "stop": 1, "label": 2, "unit": "clock"},
        ),
        (
            "Datei;start;stop;label\na.mp4;0,00;2,50;x\na.mp4;2,50;4,00;y\nb.mp4;0;3;x\n",
            {"start": "start", "stop": "stop", "label": "label", "unit": "s"},
        ),
        (
            "video|start|stop|label\na|0|2.5|x\na|2.5|4|y\n",
            {"start": "start", "stop": "stop", "label": "label", "video": "video", "unit": "s"},
        ),
        (
            "Video Name,Start Time (s),Duration,Activity\na,0,2,x\na,2,3,y\n",
            {
                "start": "Start Time (s)",
                "duration": "Duration",
                "label": "Activity",
                "video": "Video Name",
                "unit": "s",
            },
        ),
    ],
)
def test_any_table_of_times_is_drafted(
    tmp_path: Path, text: str, expected: dict[str, object]
) -> None:
    touch(tmp_path / "data/table.txt", text)
    draft = draft_config("auto", tmp_path / "data", tmp_path / "csl.yaml")
    assert draft.layout == "segments"
    columns = draft.dataset["columns"]
    assert isinstance(columns, dict)
    assert columns | {"unit": draft.dataset["unit"]} == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "labels.csv is empty; expected a table of times and labels"),
        ("video,start,stop,label\n", "labels.csv has one line; expected a table"),
        (
            "video,start,stop,label\na,0,2,x\na,2,4,y\nb,-1,2,x\nb,2,five,y\n",
            "labels.csv:4: start is '-1', expected a time from 0 on",
        ),
        (
            "video,start,stop,label\na,0,2,x\na,2,4,y\na,4,?,y\nb,2,five,y\nb,5,8,x\n",
            r"labels.csv:4: stop is '\?' \(1 more like it\), expected a time",
        ),
        (
            "video,start,stop,label\na,0,00,2,50,x\na,2,50,4,00,y\n",
            "labels.csv:2: expected 4 columns, as the first line has, got 6",
        ),
        ("a,b\nc,d\n", r"labels.csv is no table of times .* \(its first row: a, b\)"),
    ],
)
def test_table_that_is_wrong_says_first_what_is_wrong_with_it(
    tmp_path: Path, text: str, sentence: str
) -> None:
    touch(tmp_path / "labels.csv", text)
    with pytest.raises(DataError, match=f"^{tmp_path}/{sentence}"):
        draft_config("auto", tmp_path, tmp_path / "csl.yaml")


def test_unknown_folder_names_formats_of_the_files_that_are_there(tmp_path: Path) -> None:
    touch(tmp_path / "x.xml", "<a/>")
    with pytest.raises(DataError, match=r"cvat lacks a file \*.xml of that form"):
        recognise(tmp_path)


def test_folder_that_lacks_only_its_media_names_its_own_layout_first(tmp_path: Path) -> None:
    write_mstcn(tmp_path)
    shutil.rmtree(tmp_path / "features")
    (tmp_path / "mapping.txt").unlink()
    with pytest.raises(DataError, match="layouts: mstcn lacks mapping.txt, features"):
        recognise(tmp_path)


@pytest.mark.parametrize(
    ("ids", "people"),
    [
        (["Tie_S02_T01", "Tie_S02_T02", "Tie_S10_T01"], ["S02", "S02", "S10"]),
        (["P03_cam01_P03_tea", "P04_cam01_P04_tea", "P04_cam02_P04_tea"], ["P03", "P04", "P04"]),
        (["Suturing_B001", "Suturing_B002", "Suturing_C001"], ["B", "B", "C"]),
        (["case01", "case02", "case03"], None),
        (["S1_a", "S2_a", "S3_a", "S4_b"], None),
        (["S1_a", "S1_b", "P1_a", "P1_b"], None),
        (["trial_T01", "trial_T01b", "S2_x", "S2_y"], None),
    ],
)
def test_people_are_told_from_ids_where_each_is_seen_more_than_once(
    ids: list[str], people: list[str] | None
) -> None:
    pattern = guessed_group(ids)
    if people is None:
        assert pattern is None
        return
    assert pattern is not None
    found = [re.search(pattern, video) for video in ids]
    assert [match and match.group(match.lastindex or 0) for match in found] == people


def test_init_keeps_a_persons_videos_in_one_fold(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for person in range(4):
        for trial in range(2):
            name = f"Knot_Tying_S{person:02d}_T{trial:02d}"
            touch(data / f"gestures/{name}.txt", "1 60 G1 \n61 120 G2 \n")
            np.save(touch(data / f"kinematics/{name}.npy", ""), np.random.rand(120, 3))
    out = tmp_path / "csl.yaml"
    result = CliRunner().invoke(app, ["init", "auto", str(data), "--out", str(out)])
    assert result.exit_code == 0, result.output
    dataset = open_dataset(load_config(out).dataset)
    assert {video.source_fps for video in dataset.videos} == {30}, "labels count these frames"
    assert len(dataset.folds) > 1
    for fold in dataset.folds:
        trained, held_out = (
            {v.split("_")[2] for v in part} for part in (fold.train, fold.held_out)
        )
        assert not trained & held_out


def test_init_finds_the_rate_of_features_by_where_labels_end(tmp_path: Path) -> None:
    for i, seconds in enumerate((20, 31, 44)):
        np.save(touch(tmp_path / f"data/v{i}.npy", ""), np.random.rand(10 * seconds, 5))
    rows = [f"v{i},{a},{b},{name}" for i in range(3) for a, b, name in ((0, 9, "x"), (9, 19, "y"))]
    touch(tmp_path / "data/labels.csv", "\n".join(["video,start,end,label", *rows, "v2,19,43,x"]))
    draft = draft_config("auto", tmp_path / "data", tmp_path / "csl.yaml")
    assert draft.dataset["features_fps"] == 10
    assert draft.notes["features_fps"].startswith("a guess: labels then end at 95% of")


def test_seed_of_folds_lets_every_model_see_every_class() -> None:
    videos = [Video(id=f"v{i}", split=Split.AUDIT, labels="", source="") for i in range(6)]
    classes = {v.id: frozenset({0, 1} if v.id in ("v0", "v1") else {0}) for v in videos}
    seed = balanced_seed(videos, 2, classes)
    folds = {video.id: fold_of(video.id, 2, seed) for video in videos}
    assert folds["v0"] != folds["v1"], "else the fold that audits both never saw class 1"
    assert sorted(folds.values()) == [0, 0, 0, 1, 1, 1]
