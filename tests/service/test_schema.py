"""Whatever the OpenAPI document allows, and much that it does not: no request brings a 5xx."""

import shutil
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hypothesis
import pytest
from served import HERE, client_of

from csl_dist.service.app import create_app
from csl_dist.service.settings import ServiceSettings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

TOKEN = "a-token-for-schemathesis"
DOCUMENT = create_app(ServiceSettings(roots=())).openapi()
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
CHECKS = (
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
)


LONG_COUNT = 200
"""Requests to each operation in each of two modes, in the long form."""
SLOWEST_ANSWER = 30_000
"""Milliseconds; a request that takes longer fails."""
RIGHT = {"Authorization": f"Bearer {TOKEN}"}
LOCAL = {"Host": HERE.removeprefix("http://")}
OPEN = ("/api/health",)
"""Operations that anybody may ask for."""
ATTACKS = (
    *("../../../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "/etc/passwd", "....//....//etc/passwd"),
    *("run/../../run", "file:///etc/passwd", "http://169.254.169.254/latest", "s3://bucket/x"),
    *("v2\0", "'; DROP TABLE csl_reviews; --", "1 OR 1=1", "${7*7}{{7*7}}", "$(id)", "`id`"),
    *("<script>alert(1)</script>", "=cmd|' /C calc'!A0", "\u202ev2", "v2\r\nSet-Cookie: a=b"),
    *("-1", "9" * 400, "1e309", "NaN", "true", "x" * 5000, "", " ", "[]", "{}", "os:system"),
)


ANSWERS: Counter[int] = Counter()
"""Answers by their status, of all that schemathesis asked."""


@pytest.fixture(scope="module", autouse=True)
def told() -> Iterator[None]:
    """Says with `pytest -s` how many requests there were."""
    yield
    print(f"\n{ANSWERS.total():,} requests of schemathesis, by status: {sorted(ANSWERS.items())}")


@pytest.fixture(scope="module")
def root(made_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("fuzzed") / "run"
    shutil.copytree(made_folder / "run", root)
    return str(root)


@pytest.fixture(scope="module")
def guarded(root: str) -> Any:
    """The service that others reach, which has a token."""
    return client_of(root, host="0.0.0.0", token=TOKEN)


@pytest.fixture(scope="module")
def api(guarded: Any) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", guarded.app)


@pytest.fixture(scope="module")
def open_api(root: str) -> Any:
    """The service on this machine alone, without a token."""
    return schemathesis.openapi.from_asgi("/openapi.json", client_of(root).app, headers=LOCAL)


def test_every_operation_of_the_document_is_tried() -> None:
    assert len(OPERATIONS) >= 33


EACH_OPERATION = pytest.mark.parametrize(("path", "method"), OPERATIONS)
EACH_MODE = pytest.mark.parametrize("mode", MODES, ids=["allowed", "not allowed"])
LONG = pytest.param(LONG_COUNT, marks=[pytest.mark.slow, pytest.mark.timeout(300)])


@EACH_OPERATION
@EACH_MODE
@pytest.mark.parametrize("count", [12, LONG])
def test_no_request_brings_a_server_error(
    api: Any, path: str, method: str, mode: Any, count: int
) -> None:
    fuzz(api[path][method.upper()], mode, count, headers=RIGHT)


@EACH_OPERATION
@EACH_MODE
@pytest.mark.parametrize("count", [4, LONG])
def test_no_request_without_a_token_brings_a_server_error(
    open_api: Any, path: str, method: str, mode: Any, count: int
) -> None:
    fuzz(open_api[path][method.upper()], mode, count, headers=LOCAL)


@EACH_OPERATION
@EACH_MODE
@pytest.mark.parametrize("count", [2, LONG])
def test_no_request_without_the_token_is_let_in(
    api: Any, path: str, method: str, mode: Any, count: int
) -> None:
    statuses = fuzz(api[path][method.upper()], mode, count)
    assert set(statuses) <= {401} or path in OPEN


def fuzz(
    operation: Any, mode: Any, count: int, headers: dict[str, str] | None = None
) -> Counter[int]:
    """Sends requests whose answers fit the document; how many of each status came."""
    statuses: Counter[int] = Counter()

    @hypothesis.settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=SLOWEST_ANSWER,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        _name_what_there_is(case)
        answer = case.call_and_validate(headers=headers, checks=CHECKS)
        statuses[answer.status_code] += 1

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        assert mode is schemathesis.GenerationMode.NEGATIVE, "nothing in it can be wrong"
    ANSWERS.update(statuses)
    return statuses


def attacks_on(path: str, method: str, every: int) -> Iterator[tuple[str, dict[str, str]]]:
    """An operation with each attack in place of the audit, and of each parameter in turn."""
    parameters = DOCUMENT["paths"][path][method].get("parameters", ())
    asked = [one["name"] for one in parameters if one["in"] == "query"]
    given = {name: "v2" if name == "video" else "1" for name in asked if name in ("video", "frame")}
    for attack in ATTACKS[::every]:
        if "{audit}" in path:
            yield path.replace("{audit}", quote(attack, safe="")), given
        for name in asked:
            yield path.replace("{audit}", "run"), given | {name: attack}


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_attacks_are_refused_with_and_without_the_token(
    guarded: Any, path: str, method: str, every: int
) -> None:
    body = {"json": {"video": "v2", "path": "/etc/passwd"}} if method == "post" else {}
    for url, query in [(path.replace("{audit}", "run"), {}), *attacks_on(path, method, every)]:
        ask = partial(guarded.request, method, url, params=query, **body)
        answer = ask(headers=RIGHT)
        assert answer.status_code < 500, (url, query, answer.text)
        assert "root:" not in answer.text
        assert "set-cookie" not in answer.headers or path == "/api/session"
        guarded.cookies.clear()
        if path not in OPEN:
            for wrong in ({}, {"Authorization": f"Bearer {TOKEN[:-1]}"}, {"Cookie": f"x={TOKEN}"}):
                assert ask(headers=wrong).status_code == 401, (url, wrong)
            assert guarded.get(url, params={"token": TOKEN}).status_code in (401, 404)


def _name_what_there_is(case: Any) -> None:
    """Made-up names would all end at the same refusal; some requests keep theirs."""
    if len(case.path_parameters.get("audit", "")) % 2:
        case.path_parameters["audit"] = "run"
    for parameters in (case.query, case.body):
        if isinstance(parameters, dict) and isinstance(parameters.get("video"), str):
            parameters["video"] = "v2"
