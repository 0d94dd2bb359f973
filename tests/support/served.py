"""The service for tests: an application over run roots, and what it refuses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.testclient import TestClient

import csl_dist
from csl_dist.flag.record import FILES
from csl_dist.review.store import store_of
from csl_dist.service.app import create_app
from csl_dist.service.settings import ServiceSettings
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import put_videos, read_videos
from csl_dist.storage.tables import digest_of
from csl_dist.storage.url import Storage
from csl_dist.types import Video

HERE = "http://127.0.0.1:8000"
ADA, BOB = "ada-has-a-long-token", "bob-has-a-long-token"


def client_of(*roots: str, **given: Any) -> TestClient:
    for root in roots:
        store_of(root, given.get("database")).create()
    app = create_app(ServiceSettings(roots=roots, **given))
    return TestClient(app, base_url=HERE, raise_server_exceptions=False)


def refusal(answer: Any, status: int) -> str:
    """The one sentence of a refused request."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    sentence: str = answer.json()["error"]
    assert sentence
    assert "\n" not in sentence
    return sentence


def with_annotators(root: str) -> None:
    """Zoe labelled v2, in which 40 frames are wrong, and Yan v3."""
    folder = csl_dist.open_audit(root).paths.audit(1)
    names = {"v2": "Zoe", "v3": "Yan"}
    replace_videos(folder, [replace(v, annotator=names.get(v.id)) for v in read_videos(folder)])


def replace_videos(folder: Storage, videos: Sequence[Video]) -> None:
    """Writes other videos into an audit, as if it had been published with these."""
    put_videos(folder, videos)
    note_digest(folder, RunPaths.VIDEO_LIST)


def note_digest(folder: Storage, key: str) -> None:
    """Makes an audit's record say that a file is as it is now."""
    content = folder.read_json(RunPaths.AUDIT, dict)
    content[FILES] = content[FILES] | {key: digest_of(folder.read(key))}
    folder.put_json(RunPaths.AUDIT, content)
