"""The service over HTTP, without Ray: answers, bounds, and what is refused."""

import io
import json
import pickle
import pkgutil
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import builder
import made_run
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from made_run import NUM_EPOCHS, NUM_FRAMES, TRUE_LABELS, WRONG
from PIL import Image
from review_page import put_flags, read_flags
from served import HERE, client_of, refusal, replace_videos
from starlette.testclient import TestClient
from typer.testing import CliRunner

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.audit.relabel import relabel
from csl_dist.cli.app import app as cli
from csl_dist.cluster import jobs
from csl_dist.config import FlagConfig
from csl_dist.data.media.frames import FrameFolder
from csl_dist.errors import ConfigError, NotReadyError
from csl_dist.service import audits, encoding, routes, settings
from csl_dist.service.deployment import listening_socket, running_service
from csl_dist.service.guard import HEADERS
from csl_dist.service.responses import FlagPage
from csl_dist.service.routes import exports
from csl_dist.service.settings import ServiceSettings, audit_ids
from csl_dist.storage.run_file import read_videos
from csl_dist.types import Media, Split

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def root(made_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    copy = tmp_path_factory.mktemp("served") / "run"
    shutil.copytree(made_folder / "run", copy)
    return str(copy)


@pytest.fixture(scope="module")
def client(root: str) -> TestClient:
    return client_of(root)


@pytest.fixture(scope="module")
def audit(root: str) -> Audit:
    return csl_dist.open_audit(root)


def test_every_module_of_routes_is_in_the_list() -> None:
    modules = {name for _, name, _ in pkgutil.iter_modules(routes.__path__)}
    assert {make.__module__.rsplit(".", 1)[-1] for make in routes.ROUTES} == modules


# Reading


def test_audits_are_listed_and_described(client: TestClient, root: str) -> None:
    [entry] = client.get("/api/audits").json()
    assert entry == {
        "id": "run",
        "root": root,
        "ready": True,
        "revision": 1,
        "videos": 2,
        "flags": 1,
    }
    facts = client.get("/api/audits/run").json()
    assert [c["name"] for c in facts["classes"]] == ["a", "b", "c"]
    assert (facts["scorers"], facts["scorer"]) == (["transformer", "framewise"], "transformer")
    assert facts["missing"] == []


def test_status_and_videos_say_what_the_library_says(client: TestClient, audit: Audit) -> None:
    stages = {line["stage"]: line for line in client.get("/api/audits/run/status").json()}
    assert stages["audit transformer"]["done"] == 3
    page = client.get("/api/audits/run/videos").json()
    table = audit.videos()
    assert page["total"] == 2
    assert [row["video"] for row in page["videos"]] == table.video.tolist()
    assert page["videos"][0]["worst"] == pytest.approx(table.worst[0])
    assert (
        client.get("/api/audits/run/videos?offset=1&limit=1").json()["videos"][0]["video"] == "v3"
    )


def test_flags_are_filtered_and_paged(client: TestClient, audit: Audit) -> None:
    flag = audit.flags().iloc[0]
    found = client.get("/api/audits/run/flags").json()
    assert found["total"] == 1
    assert found["flags"][0]["start"] == flag.start
    assert found["flags"][0]["state"] == "undecided"
    for fitting in ("text=V2 c", "label=b", "kind=mislabel", "video=v2", "state=undecided"):
        assert client.get(f"/api/audits/run/flags?{fitting}").json()["total"] == 1, fitting
    for other in (
        "text=v3",
        "label=a",
        "kind=disorder",
        "video=v3",
        "min_score=99",
        "state=decided",
        "source=missed&text=v3",  # an empty table
    ):
        assert client.get(f"/api/audits/run/flags?{other}").json()["total"] == 0, other
    beyond = client.get("/api/audits/run/flags?offset=5").json()
    assert (beyond["total"], beyond["flags"]) == (1, [])


def test_error_without_a_flag_has_a_row_that_fits_the_document(made_root: str) -> None:
    client = client_of(made_root)
    marked = {"key": "k" * 8, "revision": 1, "video": "v3", "start": 0, "stop": 20}
    decided = {"decision": "wrong", "label": "b", "reviewer": "Ada"}
    assert client.post("/api/audits/run/reviews", json=marked | decided).status_code == 201
    page = client.get("/api/audits/run/flags?source=missed").json()
    [row] = FlagPage.model_validate(page).flags
    assert (row.video, row.score) == ("v3", None)


def test_flag_is_accepted_as_it_proposes(made_root: str) -> None:
    client = client_of(made_root)
    [flag] = client.get("/api/audits/run/flags").json()["flags"]
    span = {name: flag[name] for name in ("video", "start", "stop")}
    given = span | {"key": "k" * 8, "accept": True, "reviewer": "Ada"}
    saved = client.post("/api/audits/run/reviews", json=given)
    assert saved.status_code == 201
    assert saved.json()["edits"] == flag["proposal"] != []
    assert "and not both" in refusal(
        client.post("/api/audits/run/reviews", json=given | {"decision": "correct"}), 422
    )
    elsewhere = given | {"key": "l" * 8, "start": 0, "stop": 5}
    assert "are no flag" in refusal(client.post("/api/audits/run/reviews", json=elsewhere), 400)


def test_swap_is_proposed_and_accepted_with_the_new_boundary(made_root: str) -> None:
    paths = csl_dist.open_audit(made_root).paths
    swap = {"start": 0, "stop": 200, "label": "a", "suggested": "b", "kind": "disorder"}
    put_flags(paths, read_flags(paths).head(1).assign(**swap, fix="swap 0 120 200"))
    client = client_of(made_root)
    [flag] = client.get("/api/audits/run/flags").json()["flags"]
    parts = [(edit["start"], edit["stop"], edit["label"]) for edit in flag["proposal"]]
    assert parts == [(0, 80, "b"), (80, 200, "a")]
    given = {"key": "k" * 8, "video": flag["video"], "start": 0, "stop": 200}
    answer = client.post(
        "/api/audits/run/reviews", json=given | {"accept": True, "reviewer": "Ada"}
    )
    assert (answer.json()["decision"], answer.json()["edits"]) == ("edited", flag["proposal"])
    [shown] = client.get(f"/api/audits/run/video?video={flag['video']}").json()["flags"]
    assert shown["proposal"] == flag["proposal"]


def test_trajectory_of_a_frame_is_the_librarys(client: TestClient, audit: Audit) -> None:
    answer = client.get("/api/audits/run/trajectory?video=v2&frame=130").json()
    expected = audit.trajectory("v2", frames=130)
    assert answer["frames"] == [130]
    assert answer["epochs"] == list(range(1, NUM_EPOCHS + 1))
    np.testing.assert_allclose(answer["loss"], expected, atol=1e-5)


def test_trajectory_of_any_frames_and_checkpoints_in_every_form(
    client: TestClient, audit: Audit
) -> None:
    expected = audit.trajectory("v2", scorer="framewise", weighted=False)[[1, 4]][:, [5, 200]]
    path = (
        "/api/audits/run/trajectory?video=v2&frame=5&frame=200&epoch=2&epoch=5"
        "&scorer=framewise&weighted=false"
    )
    as_json = client.get(path).json()
    assert as_json["epochs"] == [2, 5]
    np.testing.assert_allclose(as_json["loss"], expected, atol=1e-5)
    as_npy = np.load(io.BytesIO(client.get(f"{path}&form=npy").content), allow_pickle=False)
    np.testing.assert_allclose(as_npy, expected, rtol=1e-6)
    table = pa.ipc.open_stream(client.get(f"{path}&form=arrow").content).read_all()
    assert table["frame"].to_pylist() == [5, 200]
    np.testing.assert_allclose(np.array(table["loss"].to_pylist()).T, expected, rtol=1e-6)
    assert json.loads(table.schema.metadata[b"epochs"]) == [2, 5]


def test_log_probabilities_come_whole(client: TestClient, audit: Audit) -> None:
    path = "/api/audits/run/trajectory?video=v2&values=log_probability&start=10&stop=14&form=npy"
    values = np.load(io.BytesIO(client.get(path).content), allow_pickle=False)
    np.testing.assert_array_equal(values, audit.log_probabilities("v2").read(10, 14))


def test_columns_are_means_of_losses_and_maxima_of_scores(client: TestClient, audit: Audit) -> None:
    path = "/api/audits/run/trajectory?video=v2&start=20&stop=120&columns=10&form=npy"
    means = np.load(io.BytesIO(client.get(path).content), allow_pickle=False)
    losses = audit.trajectory("v2", frames=slice(20, 120))
    np.testing.assert_allclose(means, losses.reshape(NUM_EPOCHS, 10, 10).mean(axis=2), rtol=1e-5)
    scores = client.get("/api/audits/run/scores?video=v2&columns=30").json()["scores"]["csl"]
    np.testing.assert_allclose(scores, audit.csl("v2").reshape(30, 10).max(axis=1), atol=1e-5)


def test_scores_under_given_labels_are_the_librarys(client: TestClient, audit: Audit) -> None:
    body = {
        "video": "v2",
        "edits": [{"start": WRONG.start, "stop": WRONG.stop, "label": "b"}],
        "names": ["deciding", "csl", "margin_late_segment"],
        "of": [WRONG.start, WRONG.stop],
    }
    answer = client.post("/api/audits/run/scores", json=body).json()
    for name, score in answer["scores"].items():
        expected = (
            audit.deciding_score("v2", labels=TRUE_LABELS)
            if name == "deciding"
            else audit.score("v2", name, labels=TRUE_LABELS)
        )
        np.testing.assert_allclose(score, expected, atol=1e-5, err_msg=name)
    assert answer["change"]["after"] < answer["threshold"] < answer["change"]["before"]
    whole = client.post(
        "/api/audits/run/scores", json={"video": "v2", "labels": TRUE_LABELS.tolist()}
    ).json()
    assert whole["scores"]["deciding"] == answer["scores"]["deciding"]


def test_trajectory_under_given_labels_is_the_librarys(client: TestClient, audit: Audit) -> None:
    names = [made_run.CLASSES[label] for label in TRUE_LABELS]
    body = {"video": "v2", "labels": names, "start": 118, "stop": 122, "form": "npy"}
    answer = client.post("/api/audits/run/trajectory", json=body)
    expected = audit.trajectory("v2", labels=TRUE_LABELS, frames=slice(118, 122))
    np.testing.assert_allclose(np.load(io.BytesIO(answer.content)), expected, rtol=1e-5)


def test_exports_are_those_of_the_command(client: TestClient, audit: Audit) -> None:
    as_csv = client.get("/api/audits/run/export?format=csv")
    assert pd.read_csv(io.BytesIO(as_csv.content)).start.tolist() == audit.flags().start.tolist()
    packed = client.get("/api/audits/run/export?format=label-studio")
    names = zipfile.ZipFile(io.BytesIO(packed.content)).namelist()
    assert sorted(Path(name).suffix for name in names) == [".json", ".xml"]
    linked = client.get("/api/audits/run/export?format=fiftyone")
    assert zipfile.ZipFile(io.BytesIO(linked.content)).namelist() == ["labels.json"]
    assert "one of label-studio" in refusal(client.get("/api/audits/run/export?format=exe"), 400)


def test_large_exports_are_left_to_the_command_line(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_EXPORT_BYTES", 10)
    assert "csl export" in refusal(client.get("/api/audits/run/export?format=hdf5"), 400)


def test_exports_leave_nothing_behind(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("csv", "label-studio", "fiftyone"):
        assert client.get(f"/api/audits/run/export?format={name}").status_code == 200
    assert list(tmp_path.iterdir()) == []


def test_metrics_count_requests_by_route(client: TestClient) -> None:
    for _ in range(3):
        client.get("/api/audits/run/video?video=v3")
    text = client.get("/metrics").text
    line = next(t for t in text.splitlines() if 'route="/api/audits/{audit}/video"' in t)
    assert float(line.split()[-1]) >= 3


def test_openapi_has_examples_and_every_route_a_sentence(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), (method, path)
    assert document["components"]["schemas"]["ReviewForm"]["examples"]
    assert client.get("/docs").status_code == 200


# Media


def test_video_is_sent_in_byte_ranges(client: TestClient, made_folder: Path) -> None:
    content = (made_folder / "v2.mp4").read_bytes()
    part = client.get("/api/audits/run/media?video=v2", headers={"range": "bytes=100-199"})
    assert part.status_code == 206
    assert part.headers["content-type"] == "video/mp4"
    assert part.content == content[100:200]
    assert client.get("/api/audits/run/media?video=v2").content == content


def test_picture_shows_the_frame(client: TestClient) -> None:
    brightness = [
        np.asarray(
            Image.open(
                io.BytesIO(client.get(f"/api/audits/run/picture?video=v2&frame={frame}").content)
            )
        ).mean()
        for frame in (30, 250)
    ]
    assert brightness == pytest.approx([30 * 255 / NUM_FRAMES, 250 * 255 / NUM_FRAMES], abs=8)


def test_frame_folder_is_shown_as_pictures(made_root: str, tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(NUM_FRAMES):
        Image.new("L", (8, 8), number * 255 // NUM_FRAMES).save(folder / f"{number:06d}.png")
    paths = csl_dist.open_audit(made_root).paths
    changed = {
        "v2": {"source": str(folder), "media": Media.FRAMES, "source_fps": 10.0},
        "v3": {"source": "features.npy", "media": Media.FEATURES},
    }
    own = paths.audit(1)
    videos = [replace(video, **changed.get(video.id, {})) for video in read_videos(own)]
    replace_videos(own, videos)
    assert len(FrameFolder(str(folder), 10.0).times()) == NUM_FRAMES
    client = client_of(made_root, media=(str(tmp_path),))
    facts = client.get("/api/audits/run/video?video=v2").json()
    assert facts["media"] == "frames"
    picture = client.get("/api/audits/run/picture?video=v2&frame=150")
    pixels = np.asarray(Image.open(io.BytesIO(picture.content)))
    assert pixels.mean() == pytest.approx(127, abs=4)
    features = client.get("/api/audits/run/video?video=v3").json()
    assert features["media"] == "features"
    (folder / "000151.png").write_bytes(b"torn")
    assert "000151.png" in refusal(client.get("/api/audits/run/picture?video=v2&frame=151"), 400)
    assert "no picture" in features["note"]
    refusal(client.get("/api/audits/run/picture?video=v3&frame=1"), 404)
    refusal(client.get("/api/audits/run/media?video=v2"), 404)


# A run that goes on while it is served


def test_unfinished_run_is_served_as_far_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = made_run.start_run(tmp_path)
    for video in ("v1", "v2"):
        made_run.write_trajectory(inputs, "transformer", video)
    scored = [*inputs.labels.in_split(Split.VAL), *inputs.labels.of(["v2"], Split.AUDIT)]
    builder.write_scores(inputs, "transformer", scored)
    monkeypatch.setattr(audits, "UNFINISHED_SECONDS", 0.0)
    client = client_of(inputs.run.config.root)
    assert client.get("/api/audits").json()[0]["flags"] is None
    assert client.get("/api/audits/run").json()["missing"]
    assert client.get("/api/audits/run/trajectory?video=v2&frame=1").status_code == 200
    assert client.get("/api/audits/run/scores?video=v2").status_code == 200
    refusal(client.get("/api/audits/run/trajectory?video=v3&frame=1"), 409)
    refusal(client.get("/api/audits/run/flags"), 409)
    for scorer in inputs.run.config.scorers:
        for video in made_run.HELD_OUT:
            made_run.write_trajectory(inputs, scorer, video)
    builder.finish_run(inputs)
    assert client.get("/api/audits/run/trajectory?video=v3&frame=1").status_code == 200
    assert client.get("/api/audits/run/flags").json()["total"] == 1


def test_new_revision_is_noticed_and_old_ones_stay(
    made_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "CHECK_SECONDS", 0.0)
    client = client_of(made_root)
    assert client.get("/api/audits/run/flags").json()["total"] == 1
    (tmp_path / "fixed").mkdir()
    (tmp_path / "fixed" / "v2.txt").write_text(made_run.label_text(TRUE_LABELS))
    relabel(made_root, tmp_path / "fixed")
    assert client.get("/api/audits/run").json()["revision"] == 2
    assert client.get("/api/audits/run/flags").json()["total"] == 0
    assert client.get("/api/audits/run/flags?revision=1").json()["total"] == 1
    assert "it has" in refusal(client.get("/api/audits/run/flags?revision=7"), 404)


def test_opened_audits_are_bounded(
    made_root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(audits, "MAX_OPEN", 2)
    roots = [made_root]
    for name in ("b", "c"):
        shutil.copytree(made_root, tmp_path / name)
        roots.append(str(tmp_path / name))
    pool = audits.AuditPool(roots)
    opened = [pool.read(name, None, lambda one: one) for name in ("run", "b", "c", "run")]
    assert opened[0] is not opened[3]
    assert pool.read("run", None, lambda one: one) is opened[3]


def test_audit_that_many_ask_for_is_opened_once(
    made_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def slowly(root: str, **given: Any) -> Audit:
        opened.append(root)
        time.sleep(0.3)
        return csl_dist.open_audit(root, **given)

    monkeypatch.setattr(audits, "open_audit", slowly)
    pool = audits.AuditPool([made_root])
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: pool.read("run", None, lambda one: one), range(8)))
    assert len(opened) == 1
    assert len(set(map(id, found))) == 1


def test_roots_of_one_name_get_ids_of_their_own() -> None:
    ids = audit_ids(["/x/run", "s3://bucket/run", "/x/run/", "/y/other"])
    assert list(ids.values()) == ["/x/run", "s3://bucket/run", "/y/other"]
    assert next(iter(ids)) == "run"
    assert len(set(ids)) == 3
    assert audit_ids(["/x/run", "s3://bucket/run"]) == dict(list(ids.items())[:2])


# Safety


ATTACKS = (
    "..%2F..%2Fetc%2Fpasswd",
    "%2e%2e",
    "....//....//etc",
    "/etc/passwd",
    "run%2F..%2F..",
    "run%00",
    "C:%5Cwindows",
    "\u202erun",
)


@pytest.mark.parametrize("evil", ATTACKS)
def test_ids_that_look_like_paths_find_nothing(client: TestClient, evil: str) -> None:
    for path in (
        f"/api/audits/{evil}/flags",
        f"/api/audits/{evil}/media?video=v2",
        f"/api/audits/run/media?video={evil}",
        f"/api/audits/run/picture?video={evil}&frame=1",
        f"/api/audits/run/trajectory?video={evil}&frame=1",
        f"/api/audits/run/video?video={evil}",
        f"/static/{evil}",
        f"/static/..%2f{evil}",
    ):
        answer = client.get(path)
        assert answer.status_code == 404, (path, answer.status_code)
        assert "root:" not in answer.text


def test_label_and_run_files_are_not_handed_out(client: TestClient) -> None:
    for name in ("run.json", "v2.txt", "../run.json", "videos.parquet"):
        assert client.get(f"/api/audits/run/media?video={name}").status_code == 404
        assert client.get(f"/static/{name}").status_code == 404


def test_oversized_requests_are_refused(client: TestClient) -> None:
    body = b'{"video": "v2", "labels": [' + b"1," * (5 << 20) + b"1]}"
    headers = {"content-type": "application/json"}
    assert "bytes" in refusal(
        client.post("/api/audits/run/scores", content=body, headers=headers), 413
    )

    def in_pieces() -> Iterator[bytes]:  # without a length
        for start in range(0, len(body), 1 << 16):
            yield body[start : start + (1 << 16)]

    refusal(client.post("/api/audits/run/scores", content=in_pieces(), headers=headers), 413)


def test_oversized_answers_are_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_VALUES", 1000)
    assert "at most 1,000" in refusal(client.get("/api/audits/run/trajectory?video=v2"), 400)
    assert client.get("/api/audits/run/trajectory?video=v2&columns=20").status_code == 200
    refusal(client.get("/api/audits/run/flags?limit=100000"), 422)
    refusal(client.get("/api/audits/run/scores?video=v2&columns=99999"), 422)
    many = "&".join(f"frame={i}" for i in range(settings.MAX_FRAMES_LISTED + 1))
    refusal(client.get(f"/api/audits/run/trajectory?video=v2&{many}"), 422)


@pytest.mark.parametrize(
    "path",
    [
        "trajectory?video=v2&frame=300",
        "trajectory?video=v2&start=10&stop=5",
        "trajectory?video=v2&epoch=99",
        "scores?video=v2&start=300",
        "picture?video=v2&frame=9999",
    ],
)
def test_frames_outside_the_video_are_refused_with_a_sentence(
    client: TestClient, path: str
) -> None:
    refusal(client.get(f"/api/audits/run/{path}"), 400)


def test_malformed_bodies_are_refused_with_a_sentence(client: TestClient) -> None:
    path = "/api/audits/run/scores"
    headers = {"content-type": "application/json"}
    for body in (b"", b"[", b"null", b'{"video": 3}', b"\xff\xfe", b'{"video":"v2","more":1}'):
        refusal(client.post(path, content=body, headers=headers), 422)
    edit = {"start": 0, "stop": 5, "label": "nothing"}
    assert "no class 'nothing'" in refusal(
        client.post(path, json={"video": "v2", "edits": [edit]}), 400
    )
    assert "frames" in refusal(client.post(path, json={"video": "v2", "labels": ["a"]}), 400)


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://["}, {"origin": "\xff"}, {"content-length": "²"}, {"host": "["}],
)
def test_headers_that_make_no_sense_are_refused(
    client: TestClient, headers: dict[str, str]
) -> None:
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    assert client.get("/api/audits", headers=raw).status_code in (403, 413, 421)  # type: ignore[arg-type]


def test_internal_error_has_the_form_of_every_refusal(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "open_audit", lambda *_, **__: 1 / 0)
    assert "internal error" in refusal(client_of(root).get("/api/audits/run"), 500)


def test_browser_does_not_cache_the_page(client: TestClient) -> None:
    for path in ("/", "/docs", "/static/main.js", "/static/style.css"):
        assert client.get(path).headers["cache-control"] == "no-cache", path


def test_token_is_required_if_the_service_has_one(root: str) -> None:
    client = client_of(root, host="0.0.0.0", token=TOKEN)
    paths = ("/api/audits", "/api/audits/run/flags", "/api/audits/run/media?video=v2", "/metrics")
    for path in paths:
        assert "token" in refusal(client.get(path), 401)
        for wrong in ("Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
            refusal(client.get(path, headers={"authorization": wrong}), 401)
        right = client.get(path, headers={"authorization": f"Bearer {TOKEN}"})
        assert right.status_code == 200
    refusal(client.post("/api/audits/run/reviews", json={}), 401)
    for path in ("/", "/api/health", "/static/main.js", "/docs", "/openapi.json"):
        assert client.get(path).status_code == 200, "the page holds no data"


def test_cookie_reads_but_does_not_write(root: str) -> None:
    client = client_of(root, host="0.0.0.0", token=TOKEN)
    refusal(client.post("/api/session"), 401)
    made = client.post("/api/session", headers={"authorization": f"Bearer {TOKEN}"})
    assert made.status_code == 204
    cookie = made.headers["set-cookie"].lower()
    assert "csl_token_8000" in cookie
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/api/audits/run/picture?video=v2&frame=1").status_code == 200
    refusal(client.post("/api/audits/run/reviews", json={}), 401)


def test_cookies_of_other_services_on_the_machine_do_no_harm(root: str) -> None:
    """A browser sends the cookies of a host to all of its ports."""
    client = client_of(root, host="0.0.0.0", token=TOKEN)
    mine = f"csl_token_8000={TOKEN}"
    for others in ('notebook={"a": [1, 2]}', "csl_token_8001=another-token-of-that-length"):
        for cookies in (f"{others}; {mine}", f"{mine}; {others}"):
            assert client.get("/api/audits", headers={"cookie": cookies}).status_code == 200


def test_service_that_others_reach_does_not_start_without_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "some.host"):
        with pytest.raises(ConfigError, match="token"):
            ServiceSettings(roots=(), host=host)
    with pytest.raises(ConfigError, match="16"):
        ServiceSettings(roots=(), host="0.0.0.0", token="short")
    for host in ("127.0.0.1", "localhost", "::1"):
        ServiceSettings(roots=(), host=host)


def test_other_origins_and_hosts_are_refused(client: TestClient) -> None:
    path = "/api/audits/run/reviews"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        sentence = refusal(client.post(path, json={}, headers={"origin": origin}), 403)
        assert "origin" in sentence
    refusal(client.get(path, headers={"sec-fetch-site": "cross-site"}), 403)
    refusal(client.get(path, headers={"host": "evil.example"}), 421)
    assert client.get(path, headers={"origin": HERE}).status_code == 200
    preflight = client.options(
        path, headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
    )
    assert preflight.status_code == 403
    answers = [preflight, client.get(path)]
    for answer in answers:
        assert "access-control-allow-origin" not in answer.headers
        assert all(answer.headers[name] == value for name, value in HEADERS.items())


def test_nothing_in_a_run_root_is_unpickled(made_root: str) -> None:
    """A pickle in place of a chunk is only bytes of the wrong length."""

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (Path(made_root) / "owned",))

    for chunk in Path(made_root, "transformer", "trajectories.zarr", "v2").rglob("c/0/*/*"):
        chunk.write_bytes(pickle.dumps(Evil()))
    answer = client_of(made_root).get("/api/audits/run/trajectory?video=v2&frame=1")
    assert "damaged" in refusal(answer, 503)
    assert not (Path(made_root) / "owned").exists()


def test_submitting_must_be_allowed(client: TestClient) -> None:
    body = {"config": {"root": "/x", "dataset": {"path": "/y"}}}
    assert "--allow-submit" in refusal(client.post("/api/audits", json=body), 403)


def test_submitted_config_is_checked_and_handed_to_ray(
    root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The queue itself is tested against a real cluster in test_scale_out."""
    submitted: list[str] = []

    class Queue:
        def __init__(self, address: str | None):
            assert address == "http://head:8265"

        def submit(self, config: Any, stage: str) -> str:
            submitted.append(config.root)
            return "csl-1"

        def roots(self) -> list[str]:
            return submitted

    monkeypatch.setattr(jobs, "JobQueue", Queue)
    client = client_of(
        root,
        allow_submit=True,
        token="t" * 20,
        submit_below=(str(tmp_path), "/y"),
        jobs_address="http://head:8265",
    )
    client.headers["authorization"] = f"Bearer {'t' * 20}"
    bad = {"config": {"root": "/x", "dataset": {"pth": "/y"}}}
    assert "did you mean 'path'" in refusal(client.post("/api/audits", json=bad), 400)
    odd = b'{"config": {"root": "/x", "dataset": {"\\ud800": 1}}}'  # no UTF-8 can say this
    headers = {"content-type": "application/json"}
    refusal(client.post("/api/audits", content=odd, headers=headers), 400)
    good = {"config": {"root": str(tmp_path / "new"), "dataset": {"path": "/y"}}}
    made = client.post("/api/audits", json=good)
    assert made.status_code == 202
    assert made.json() == {"audit": "new", "job": "csl-1"}


def test_reads_after_the_first_do_not_open_files_again(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(root)
    client.get("/api/audits/run/flags")
    monkeypatch.setattr(audits, "open_audit", lambda *_, **__: pytest.fail("opened again"))
    start = time.monotonic()
    while time.monotonic() - start < audits.CHECK_SECONDS + 0.5:
        assert client.get("/api/audits/run/flags").status_code == 200


def test_flag_config_without_flags_serves_an_empty_queue(tmp_path: Path) -> None:
    root = made_run.make_run(
        tmp_path, FlagConfig(rule="validation", scorer="transformer", min_frames=290)
    )
    page = client_of(root).get("/api/audits/run/flags?text=x").json()
    assert (page["total"], page["flags"]) == (0, [])


def test_port_that_is_taken_is_refused_before_anything_starts(root: str) -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        settings = ServiceSettings(roots=(root,), port=port)
        with pytest.raises(ConfigError, match="choose another --port"), running_service(settings):
            pytest.fail("it must not start")


def test_root_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="is not a run root"):
        CliRunner().invoke(cli, ["serve", str(tmp_path)], catch_exceptions=False)
    assert not (tmp_path / "reviews.db").exists()
