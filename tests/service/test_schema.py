"""Whatever the OpenAPI document allows, and much that it does not: no request brings a 5xx."""

import shutil
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from served import client_of

from csl_dist.service.app import create_app
from csl_dist.service.settings import ServiceSettings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

TOKEN = "a-token-for-schemathesis"
DOCUMENT = create_app(ServiceSettings(roots=())).openapi()
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
CHECKS = (
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
)


@pytest.fixture(scope="module")
def api(made_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("fuzzed") / "run"
    shutil.copytree(made_folder / "run", root)
    app = client_of(str(root), host="0.0.0.0", token=TOKEN).app
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def test_every_operation_of_the_document_is_tried() -> None:
    assert len(OPERATIONS) >= 18


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
@pytest.mark.parametrize("mode", MODES, ids=["allowed", "not allowed"])
def test_no_request_brings_a_server_error(api: Any, path: str, method: str, mode: Any) -> None:
    operation = api[path][method.upper()]

    @hypothesis.settings(
        max_examples=12,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        _name_what_there_is(case)
        case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS)

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        assert mode is schemathesis.GenerationMode.NEGATIVE, "nothing in it can be wrong"


def _name_what_there_is(case: Any) -> None:
    """Made-up names would all end at the same refusal; some requests keep theirs."""
    if len(case.path_parameters.get("audit", "")) % 2:
        case.path_parameters["audit"] = "run"
    for parameters in (case.query, case.body):
        if isinstance(parameters, dict) and isinstance(parameters.get("video"), str):
            parameters["video"] = "v2"
