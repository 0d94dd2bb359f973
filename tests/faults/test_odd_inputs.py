"""Values and files that no one writes on purpose: each is refused in one sentence."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import builder
import numpy as np
import pytest
import torch
from layout_files import touch, write_egoper
from PIL import Image
from typer.testing import CliRunner

from csl_dist.cli.app import app
from csl_dist.config import ActivityNetConfig, FlagConfig, load_config, parse_config
from csl_dist.data.check import all_problems, look_at_videos
from csl_dist.data.content import Contents
from csl_dist.data.feature_files import feature_shape, inspect
from csl_dist.data.layouts import open_dataset, read_dataset
from csl_dist.data.media.video import VideoFile
from csl_dist.data.text import read_lines
from csl_dist.errors import CheckpointError, ConfigError, CslError, DataError, StorageError
from csl_dist.flag.rules import thresholds
from csl_dist.storage.files import place
from csl_dist.storage.url import Storage
from csl_dist.training.imported import read_state


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": {"seed": 10**20}}, "train.seed"),
        ({"train": {"weight_decay": float("nan")}}, "train.weight_decay"),
        ({"dataset": {"path": "/d", "fps": 1e9}}, "dataset.fps"),
        ({"scorers": {"": {}}}, "a scorer needs a name"),
        ({"root": ""}, "names no folder"),
        ({"root": "  "}, "names no folder"),
        ({"root": "s3://"}, "names no folder"),
        ({"root": "://x"}, "names no folder"),
        ({"root": "s3:///x"}, "names no folder"),
        ({"train": {"epochs": 10**21}}, "train.epochs"),
        ({"features": {"size": 2**31}}, "features.size"),
        ({1: 2}, "keys should be strings"),
    ],
)
def test_odd_config_values_are_refused(changes: dict[Any, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_config({"root": "/r", "dataset": {"path": "/d"}} | changes, where="c")


@pytest.mark.parametrize("text", ["root: " + "[" * 100_000, "root: x\ndataset: " + "{a: " * 5000])
def test_deeply_nested_config_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_config(touch(tmp_path / "c.yaml", text))
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_config(touch(tmp_path / "c.yaml", "root: /r"), [f"train.epochs={'[' * 100_000}"])


@pytest.mark.parametrize("key", ["root", "dataset.path", "features.weights"])
@pytest.mark.parametrize("name", ["a" * 300, "a/\\0b"])
def test_name_that_no_file_can_have_is_refused(tmp_path: Path, key: str, name: str) -> None:
    config = touch(tmp_path / "c.yaml", "root: /r\ndataset: {path: /d}")
    with pytest.raises(ConfigError, match="can't be a path"):
        load_config(config, [f'{key}="{name}"'])


@pytest.mark.parametrize("url", ["", "s3://", "://x", "s3:///", "s3:///x"])
def test_url_that_names_nothing_never_becomes_the_current_folder(url: str) -> None:
    with pytest.raises(StorageError, match="names no folder"):
        Storage(url)
    if url:
        with pytest.raises(StorageError, match="names no folder"):
            place(url)


def test_path_that_is_too_long_is_a_sentence() -> None:
    words = [sys.executable, "-m", "csl_dist.cli", "lint", "a" * 300]
    said = subprocess.run(words, capture_output=True, text=True)
    assert said.returncode == 2
    assert " ".join(said.stderr.split()).endswith("is longer than any file's name can be")


NPY = b"\x93NUMPY\x01\x00"


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f4', 'fortran_order': False, 'shape': " + b"(" * 3000,
        b"{'a': lambda: 1}",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 4)}" % 10**30,
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 4)}",
        b"\xff\xfe",
    ],
)
def test_odd_headers_of_feature_files_are_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(NPY + len(header).to_bytes(2, "little") + header)
    with pytest.raises(DataError, match="can't be read as features"):
        feature_shape(str(path))


@pytest.mark.parametrize("read", [feature_shape, lambda path: VideoFile(path).times(), read_lines])
def test_pipe_is_refused_instead_of_waited_for(
    tmp_path: Path, read: Callable[[str], object]
) -> None:
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(DataError, match="is a pipe"):
        read(str(tmp_path / "x.npy"))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("frames_last", [False, True])
def test_features_that_are_no_numbers_are_told_as_such(
    tmp_path: Path, value: float, frames_last: bool
) -> None:
    features_TD = np.ones((5, 3), np.float32)
    features_TD[2, 1] = value
    np.save(tmp_path / "x.npy", features_TD.T if frames_last else features_TD)
    with pytest.raises(DataError, match="the features of frame 2 are NaN or infinite"):
        inspect(str(tmp_path / "x.npy"), (5, 5)).read()


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, bytes(range(256)) * 20])
def test_file_that_is_no_video_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.mp4").write_bytes(content)
    with pytest.raises(DataError, match="can't open the video"):
        VideoFile(str(tmp_path / "x.mp4")).times()


def test_picture_named_as_a_video_is_one_frame(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "x.png")
    os.replace(tmp_path / "x.png", tmp_path / "x.mp4")
    assert VideoFile(str(tmp_path / "x.mp4")).times().tolist() == [0.0]


@pytest.mark.parametrize(
    "state",
    [
        {"a": torch.eye(3).to_sparse()},
        {1: torch.eye(3)},
        {"a": torch.empty(3, device="meta")},
        {"a": [1, 2]},
        [1, 2],
    ],
)
def test_odd_weights_are_refused(tmp_path: Path, state: object) -> None:
    torch.save(state, tmp_path / "x.pt")
    with pytest.raises(CheckpointError):
        read_state(tmp_path / "x.pt")


@pytest.mark.parametrize(
    "segment", [[0, 1e308], [1e308, 1e308], [-1, "x"], None, [[1, 2], 3], [2, 1], []]
)
def test_odd_segments_are_refused(tmp_path: Path, segment: object) -> None:
    entry = {"subset": "training", "duration": 4, "fps": 30}
    entry |= {"annotations": [{"segment": segment, "label": "a"}]}
    path = touch(tmp_path / "a.json", json.dumps({"database": {"x": entry}}))
    touch(tmp_path / "x.mkv")

    def read() -> None:
        dataset = read_dataset(ActivityNetConfig(path=str(path), media=str(tmp_path)))
        dataset.track(dataset.videos[0])

    with pytest.raises(CslError):
        read()


def test_deeply_nested_labels_are_refused(tmp_path: Path) -> None:
    path = touch(tmp_path / "a.json", "[" * 100_000)
    with pytest.raises(DataError, match="is not JSON that can be read"):
        read_dataset(ActivityNetConfig(path=str(path)))


@pytest.mark.parametrize("kinds", [None, ["Slip", 0], [0], 3])
def test_action_types_of_egoper_are_checked(tmp_path: Path, kinds: object) -> None:
    config = write_egoper(tmp_path)
    content = json.loads((tmp_path / "annotation.json").read_text())
    for entry in content["tea"]["segments"]:
        if kinds is None:
            del entry["labels"]["action_type"]
        else:
            entry["labels"]["action_type"] = kinds
    (tmp_path / "annotation.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="action_type|action types|an action and its type"):
        open_dataset(config)


def test_check_names_rows_of_known_errors_that_fit_nothing(tmp_path: Path) -> None:
    videos = [
        builder.MadeVideo(
            id=name, split=split, names_T=["a", "b"] * 10, features_TD=np.ones((20, 4))
        )
        for name, split in (("v0", "train"), ("v1", "val"), ("v2", "audit"))
    ]
    builder.write_manifest(tmp_path, videos, fps=5)
    rows = ["v2,mislabel,0,5,b", "v9,mislabel,0,5,b", "v2,mislabel,15,25,b", "v2,mislabel,0,5,z"]
    rows += ["v2,mislabel,5,5,b"]
    truth = touch(tmp_path / "t.csv", "\n".join(["video,kind,start,stop,true_label", *rows]) + "\n")
    config = parse_config(
        {"root": str(tmp_path / "r"), "dataset": {"path": str(tmp_path), "truth": str(truth)}},
        where="c",
    )
    dataset = read_dataset(config.dataset)
    problems = all_problems(dataset, list(look_at_videos(dataset, config.dataset)), config)
    assert [p.removeprefix(f"{truth}:") for p in problems if "t.csv" in p] == [
        "3: there is no video 'v9'",
        "4: frames 15 to 25 of video 'v2', which has 20",
        "5: there is no class 'z'",
        "6: frames 5 to 5 of video 'v2', which has 20",
    ]


def test_videos_without_labels_are_named() -> None:
    with pytest.raises(DataError, match="none of the videos v1, v7 has a labelled frame"):
        thresholds(FlagConfig(), np.ones(3), {"v7": np.full(4, np.nan), "v1": np.full(4, np.nan)})


@pytest.mark.parametrize("name", ["000002.png", "000004.png"])
def test_picture_replaced_with_its_time_kept_is_noticed(tmp_path: Path, name: str) -> None:
    for number in range(1, 6):
        Image.new("L", (8, 8), number).save(tmp_path / f"{number:06d}.png")
    contents = Contents()
    before = contents.of_folder(str(tmp_path))
    facts = (tmp_path / name).stat()
    data = bytearray((tmp_path / name).read_bytes())
    data[-20] ^= 1
    (tmp_path / name).write_bytes(data)
    os.utime(tmp_path / name, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert contents.of_folder(str(tmp_path)) != before


def test_feature_file_changed_far_inside_with_its_time_kept_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((4096, 64), np.float32))
    contents, facts = Contents(), path.stat()
    before = contents.of_file(str(path))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert contents.of_file(str(path)) != before


@pytest.mark.parametrize(
    "command",
    [
        ["report", "ROOT"],
        ["report", "ROOT", "--figures", "OUT"],
        ["export", "ROOT", "--format", "csv", "--out", "OUT/x.csv"],
        ["relabel", "ROOT", "DATA"],
        ["diff", "ROOT", "1", "2"],
        ["audits", "rm", "ROOT", "1"],
        ["certify", "ROOT"],
        ["reviews", "export", "ROOT", "--out", "OUT"],
        ["query", "ROOT", "flags"],
        ["query", "ROOT", "below"],
    ],
    ids=" ".join,
)
def test_run_without_an_audit_is_told_as_such(
    made_root: str, made_folder: Path, tmp_path: Path, command: list[str]
) -> None:
    shutil.rmtree(Path(made_root) / "audits")
    places = {"ROOT": made_root, "DATA": str(made_folder)}
    words = [places.get(w, w.replace("OUT", str(tmp_path / "out"))) for w in command]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, CslError), result.exception
    assert "\n" not in str(result.exception)
