"""Anything at all as config, labels, features, weights, names and requests.

A sentence or a result, never a traceback; nothing lands outside the folder, nothing is run. The
slow form tries many times as many.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import builder
import made_run
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from layout_files import WRITERS
from served import client_of
from starlette.testclient import TestClient

from csl_dist.audit.reader import open_audit
from csl_dist.config import ManifestConfig, load_config, parse_config
from csl_dist.data.feature_files import feature_shape
from csl_dist.data.layouts import open_dataset, read_dataset
from csl_dist.data.media.video import VideoFile
from csl_dist.errors import CslError
from csl_dist.export import FORMATS, export
from csl_dist.storage.url import Storage, key_part
from csl_dist.training.imported import read_state

NAMES = [
    *("a/b", "../up", "..", ".", ".hidden", "-rf", " blank ", "a  b", "x" * 300, "ä", "a\u0308"),
    *("<script>alert(1)</script>", "=cmd|' /C calc'!A0", "a@b", "a#1", "a%2Fb", "con", "a\\b"),
    *("'; DROP TABLE csl_reviews; --", "\u202egnp", "🎬", "a=2Eb", "{{7*7}}", "$(id)", "a:b"),
]
"""Ids and labels as nobody should choose them."""

SHORT = 40
LONG = 2000

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def tried(**given_by: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A property that holds for a few examples, and in the slow form for many."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        usual = {
            "deadline": None,
            "suppress_health_check": list(HealthCheck),
            "phases": [Phase.explicit, Phase.generate],
        }

        @pytest.mark.parametrize(
            "count",
            [SHORT, pytest.param(LONG, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
        )
        def test(tmp_path: Path, count: int) -> None:
            @settings(max_examples=count, **usual)  # type: ignore[arg-type]
            @given(**given_by)
            def holds(**drawn: Any) -> None:
                check(tmp_path, **drawn)

            holds()

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def in_a_sentence(action: Callable[[], object]) -> None:
    """Runs something that may be refused, but only by an error of ours."""
    with suppress(CslError):
        action()


SECTIONS = [
    "dataset",
    "train",
    "scorers",
    "predict",
    "score",
    "flag",
    "audit",
    "features",
    "corrupt",
]


@tried(
    section=st.sampled_from(SECTIONS),
    key=st.sampled_from(
        ["path", "fps", "epochs", "seed", "layout", "folds", "window", "splits", "x"]
    ),
    value=values,
)
def test_any_config_value_is_taken_or_refused(
    folder: Path, section: str, key: str, value: object
) -> None:
    data: dict[str, Any] = {"root": "/r", "dataset": {"path": "/d"}}
    data[section] = data.get(section, {}) | {key: value}
    in_a_sentence(lambda: parse_config(data, where="c"))


@tried(text=st.text(max_size=60) | st.builds(yaml.safe_dump, values))
def test_any_text_as_a_config_is_taken_or_refused(folder: Path, text: str) -> None:
    (folder / "c.yaml").write_text(text, encoding="utf-8", errors="replace")
    in_a_sentence(lambda: load_config(folder / "c.yaml"))


@tried(layout=st.sampled_from(sorted(WRITERS)), content=st.binary(max_size=200), data=st.data())
def test_any_bytes_as_a_label_file_are_taken_or_refused(
    folder: Path, layout: str, content: bytes, data: st.DataObject
) -> None:
    config = WRITERS[layout](folder / layout)
    files = sorted(path for path in (folder / layout).rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files))
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(data.draw(st.sampled_from([content, whole[:cut] + content, content + whole])))

    def read() -> None:
        dataset = read_dataset(config)
        for video in dataset.videos:
            dataset.track(video).at(np.arange(5.0))
            dataset.known_segments(video)

    in_a_sentence(read)


@tried(layout=st.sampled_from(["egoper", "activitynet"]), value=values, data=st.data())
def test_any_value_in_annotations_is_taken_or_refused(
    folder: Path, layout: str, value: object, data: st.DataObject
) -> None:
    config = WRITERS[layout](folder / layout)
    [path] = [p for p in (folder / layout).glob("*.json")]
    content = json.loads(path.read_text())
    places = list(_places(content))
    holder, key = places[data.draw(st.integers(0, len(places) - 1))]
    holder[key] = value
    path.write_text(json.dumps(content))

    def read() -> None:
        dataset = read_dataset(config)
        for video in dataset.videos:
            dataset.track(video).at(np.arange(5.0))
            dataset.known_segments(video)

    in_a_sentence(read)


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    keys = range(len(content)) if isinstance(content, list) else list(content)
    for key in keys:
        yield content, key
        if isinstance(content[key], list | dict):
            yield from _places(content[key])


@tried(
    suffix=st.sampled_from([".npy", ".h5", ".txt", ".zarr"]),
    content=st.binary(max_size=300),
    whole=st.booleans(),
)
def test_any_bytes_as_features_are_taken_or_refused(
    folder: Path, suffix: str, content: bytes, whole: bool
) -> None:
    path = folder / f"x{suffix}"
    if whole and suffix == ".npy":
        np.save(path, np.ones((4, 3), np.float32))
        content = path.read_bytes()[: len(content)] + content
    path.write_bytes(content)
    in_a_sentence(lambda: feature_shape(str(path)))


@tried(suffix=st.sampled_from([".pt", ".pth", ".safetensors"]), content=st.binary(max_size=300))
def test_any_bytes_as_weights_are_refused(folder: Path, suffix: str, content: bytes) -> None:
    (folder / f"x{suffix}").write_bytes(content)
    in_a_sentence(lambda: read_state(folder / f"x{suffix}"))


@tried(content=st.binary(max_size=300), head=st.sampled_from([b"", b"\0\0\0\x18ftypmp42", b"RIFF"]))
def test_any_bytes_as_a_video_are_refused(folder: Path, content: bytes, head: bytes) -> None:
    (folder / "x.mp4").write_bytes(head + content)
    in_a_sentence(lambda: VideoFile(str(folder / "x.mp4")).times())


@tried(name=st.text(max_size=300) | st.sampled_from(NAMES))
def test_any_name_stays_below_its_folder(folder: Path, name: str) -> None:
    part = key_part(name.encode("utf-8", "replace").decode())
    assert part == os.path.basename(part)
    assert part not in ("", ".", "..") or not name
    assert len(part) < 200
    if part:
        storage = Storage(str(folder / "root"))
        storage.put(f"{part}/x", b"1")
        assert storage.list_keys(part) == [f"{part}/x"]
        assert sorted(os.listdir(folder)) == ["root"]


def test_names_that_differ_have_places_that_differ() -> None:
    assert len({key_part(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_dataset_with_odd_ids_and_labels_is_read_and_exported_below_its_folder(
    made_folder: Path, tmp_path: Path, name: str
) -> None:
    audit = open_audit(str(made_folder / "run"))
    audit.classes = (name, *audit.classes[1:])
    video = audit.videos_by_id["v2"]
    object.__setattr__(video, "id", name)
    flags = audit.flags().assign(video=name, label=name, suggested=name)
    annotation = audit.annotation("v2")
    audit.videos_by_id = {name: video}
    audit.flags = lambda **_: flags  # type: ignore[method-assign]
    audit.annotation = lambda *_, **__: annotation  # type: ignore[method-assign]
    for form in FORMATS:
        if form.name != "hdf5":  # reads the trajectories of the real videos
            out = tmp_path / "out" / form.name / f"x{form.suffix}"
            out.parent.mkdir(parents=True)
            export(audit, form.name, out if form.suffix else out.parent)
    assert os.listdir(tmp_path) == ["out"]
    table = (tmp_path / "out/csv/x.csv").read_text()
    assert "\n=cmd" not in table
    assert ",=cmd" not in table


@pytest.mark.parametrize("name", [n for n in NAMES if n.strip() == n])
def test_manifest_with_odd_ids_and_labels_is_read_as_written(tmp_path: Path, name: str) -> None:
    rows = [["id", "source", "labels", "split", "fps"]]
    for number, split in enumerate(("train", "val", "audit")):
        own = name if split == "audit" else f"{name}{number}"
        np.save(tmp_path / f"{number}.npy", np.ones((4, 3)))
        (tmp_path / f"{number}.txt").write_text(builder.label_text([name, "b", "b", name]))
        rows.append([own, f"{number}.npy", f"{number}.txt", split, "5"])
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"
    (tmp_path / "manifest.csv").write_text(text)
    dataset = open_dataset(ManifestConfig(path=str(tmp_path)))
    assert dataset.videos[-1].id == name
    assert name in dataset.classes


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return client_of(made_run.make_run(tmp_path_factory.mktemp("fuzzed")))


PATHS = ["reviews", "scores", "trajectory", "nothing"]


@pytest.mark.parametrize("count", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_any_body_is_answered_without_a_fault(client: TestClient, count: int) -> None:
    keys = st.sampled_from(
        ["key", "video", "start", "stop", "decision", "label", "reviewer", "edits"]
    )
    known = st.sampled_from(["v2", "wrong", "a", 120, 160, "12345678", "Ada", "nobody"])
    bodies = st.dictionaries(keys, known | values, max_size=8) | values

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(path=st.sampled_from(PATHS), body=bodies)
    def holds(path: str, body: object) -> None:
        content = json.dumps(body).encode("utf-8", "replace")
        headers = {"content-type": "application/json"}
        answer = client.post(f"/api/audits/run/{path}", content=content, headers=headers)
        assert answer.status_code < 500, answer.text

    holds()


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"a":' * 50_000, b"\xff" * 100, b"", b"null", b"1e999", b'{"key": NaN}'],
)
def test_bodies_that_are_nested_or_torn_are_refused(client: TestClient, content: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post("/api/audits/run/reviews", content=content, headers=headers)
    assert 400 <= answer.status_code < 500
