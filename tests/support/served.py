"""The service for tests: an application over run roots, and what it refuses."""

from typing import Any

from starlette.testclient import TestClient

from csl_dist.review.store import store_of
from csl_dist.service.app import create_app
from csl_dist.service.settings import ServiceSettings

HERE = "http://127.0.0.1:8000"


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
