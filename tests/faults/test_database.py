"""PostgreSQL that goes away in the middle of a review, and comes back."""

from collections.abc import Iterator

import pytest
from postgres_server import PostgresServer, stoppable_postgres
from served import client_of, refusal
from starlette.testclient import TestClient

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with stoppable_postgres() as found:
        if found is None:
            pytest.skip("PostgreSQL is not installed")
        yield found


def decide(client: TestClient, key: str, decision: str) -> object:
    body = {
        "key": key * 8,
        "revision": 1,
        "video": "v2",
        "start": 120,
        "stop": 160,
        "decision": decision,
        "reviewer": "Ada",
    }
    return client.post("/api/audits/run/reviews", json=body)


def decisions(client: TestClient) -> list[str]:
    rows = client.get("/api/audits/run/reviews").json()["reviews"]
    return [row["decision"] for row in rows]


def test_database_that_goes_away_in_mid_review_loses_no_decision(
    made_root: str, server: PostgresServer
) -> None:
    with_password = server.url.replace("csl@", "csl:secret@")
    client = client_of(made_root, database=with_password)
    assert decide(client, "a", "unsure").status_code in (200, 201)  # type: ignore[attr-defined]
    server.stop()
    try:
        sentence = refusal(decide(client, "b", "correct"), 503)
        assert "the reviews" in sentence
        assert "secret" not in sentence
        assert "the reviews" in refusal(client.get("/api/audits/run/reviews"), 503)
        # What needs no database is shown all the same.
        assert client.get("/api/health").status_code == 200
        assert client.get("/api/audits/run/video?video=v2").status_code == 200
        assert client.get("/").status_code == 200
    finally:
        server.start()
    # The page sends a decision again until it is answered; twice counts once.
    for _ in range(2):
        assert decide(client, "b", "correct").status_code in (200, 201)  # type: ignore[attr-defined]
    assert decisions(client) == ["unsure", "correct"]
