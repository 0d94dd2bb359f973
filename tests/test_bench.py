"""The benchmarks run and print what they promise; how fast it is depends on the machine."""

import json

import pytest
from typer.testing import CliRunner

from csl_dist.bench import query
from csl_dist.cli.app import app


def test_query_benchmark_prints_one_json_object(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"NUM_CHECKPOINTS": 3, "NUM_FRAMES": 300, "NUM_QUERIES": 4, "NUM_RELABELLINGS": 1}
    for name, size in sizes.items():
        monkeypatch.setattr(query, name, size)
    result = CliRunner().invoke(app, ["bench", "query", "--json"])
    assert result.exit_code == 0, result.output
    values = json.loads(result.stdout)
    assert set(values) == {"trajectory_ms", "vs_h5py", "relabel_s"}
    assert all(value > 0 for value in values.values())
