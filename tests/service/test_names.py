"""Who reviews: tokens with names, a proxy's login header, and what only leads may see."""

from pathlib import Path
from typing import Any

import pytest
from served import ADA, BOB, client_of, refusal, with_annotators

import csl_dist
from csl_dist.errors import ConfigError
from csl_dist.review.annotators import annotator_records
from csl_dist.review.carried import decisions_on
from csl_dist.review.store import store_of
from csl_dist.service.settings import ServiceSettings, read_tokens

PROXY = "the-proxy-has-one-too"
NAMED = {"tokens": (("Ada", ADA), ("Bob", BOB)), "host": "0.0.0.0"}


def bearing(token: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", **more}


def decision(reviewer: str, key: str = "key-number-1", **values: Any) -> dict[str, Any]:
    span = {"video": "v2", "start": 120, "stop": 160, "decision": "wrong", "label": "b"}
    return {"key": key, "reviewer": reviewer, **span, **values}


def test_token_tells_who_decides(made_root: str) -> None:
    client = client_of(made_root, **NAMED)
    assert client.get("/api/me", headers=bearing(ADA)).json()["name"] == "Ada"
    path = "/api/audits/run/reviews"
    refusal(client.get("/api/me"), 401)
    refusal(client.post(path, json=decision("Ada"), headers=bearing("somebody-elses-token")), 401)
    sentence = refusal(client.post(path, json=decision("Bob"), headers=bearing(ADA)), 403)
    assert "knows you as 'Ada'" in sentence
    assert client.post(path, json=decision("Ada"), headers=bearing(ADA)).status_code == 201
    # A cookie is for pictures: it reads as the one whose token it is, and does not decide.
    assert client.post("/api/session", headers=bearing(BOB)).status_code == 204
    assert client.get("/api/me").json()["name"] == "Bob"
    refusal(client.post(path, json=decision("Bob", "key-number-2")), 401)
    assert [r.reviewer for r in store_of(made_root, None).after(0)] == ["Ada"]


def test_proxy_says_who_is_logged_in_and_nobody_else_can(made_root: str) -> None:
    client = client_of(made_root, token=PROXY, login_header="X-Forwarded-User")
    proxied = {"host": "review.example.org", "x-forwarded-user": "Zoë".encode()}
    answer = client.get("/api/me", headers=bearing(PROXY) | proxied)
    assert answer.json()["name"] == "Zoë"
    assert "no name" in refusal(client.get("/api/me", headers=bearing(PROXY)), 401)
    refusal(client.get("/api/me", headers=proxied), 401)
    assert client.get("/", headers={"host": "review.example.org"}).status_code == 200


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"login_header": "X-User"}, "needs --token"),
        ({"login_header": "X User", "token": PROXY}, "name of a header"),
        ({"token": PROXY, "tokens": (("Ada", ADA),)}, "exclude each other"),
        ({"tokens": (("Ada", "short"),)}, "token of 'Ada' has 5 characters"),
        ({"leads": ("Ada",)}, "needs --tokens"),
    ],
)
def test_settings_that_would_not_protect_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ServiceSettings(roots=(), **given)


def test_file_of_tokens_is_read_and_its_faults_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(f'# who, token\nAda, {ADA}\n\n"Bob, the second",{BOB}\n')
    assert read_tokens(path) == (("Ada", ADA), ("Bob, the second", BOB))
    for text, words in (
        ("Ada\n", "line 1: expected"),
        (f"Ada,{ADA}\nBob,{ADA}\n", "line 2: a name and a token"),
        ("# nobody\n", "names nobody"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=words):
            read_tokens(path)
    with pytest.raises(ConfigError, match="can't be read"):
        read_tokens(tmp_path / "none.csv")


def test_only_leads_see_how_annotators_fared(made_root: str) -> None:
    with_annotators(made_root)
    client = client_of(made_root, leads=("Ada",), **NAMED)
    path = "/api/audits/run/annotators"
    assert "--lead" in refusal(client.get(path, headers=bearing(BOB)), 403)
    assert [row["annotator"] for row in client.get(path, headers=bearing(ADA)).json()] == [
        "Yan",
        "Zoe",
    ]
    assert client_of(made_root).get(path).status_code == 200  # who sits at the machine
    shared = client_of(made_root, token=PROXY)
    refusal(shared.get(path, headers=bearing(PROXY)), 403)


def test_decisions_against_an_annotator_are_counted_by_class_and_boundary(made_root: str) -> None:
    with_annotators(made_root)
    client = client_of(made_root)
    edits = [{"start": 100, "stop": 115, "label": "a"}]  # a ends 1.5 s later
    moved = {"decision": "edited", "edits": edits, "label": None}
    for number, values in enumerate(
        [
            {},
            {"video": "v2", "start": 100, "stop": 120, **moved},
            {"video": "v3", "start": 0, "stop": 100, "decision": "correct", "label": None},
            {"video": "v3", "start": 100, "stop": 200, "decision": "unsure", "label": None},
        ]
    ):
        answer = client.post(
            "/api/audits/run/reviews", json=decision("Ada", f"key-{number:04d}", **values)
        )
        assert answer.status_code == 201, answer.text
    audit = csl_dist.open_audit(made_root)
    current = decisions_on(audit, store_of(made_root, None)).by_span()
    yan, zoe = annotator_records(audit, current)
    assert (yan.decided, yan.against) == (1, 0)
    assert [(p.name, p.decided, p.against) for p in yan.classes] == [("a", 1, 0)]
    assert (zoe.decided, zoe.against) == (2, 2)
    assert [(p.name, p.decided, p.against) for p in zoe.classes] == [("c", 1, 1)]
    assert [(p.name, p.decided, p.against) for p in zoe.boundaries] == [("a → b", 1, 1)]
