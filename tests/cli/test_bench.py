"""`csl bench`: a thin command over the scripts of the checkout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from csl_dist.cli import bench
from csl_dist.errors import ConfigError

COMMAND = [sys.executable, "-c", "from csl_dist.cli import main; main('bench')"]


def csl_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_options_are_handed_on_and_figures_are_one_json_object() -> None:
    sizes = ("--checkpoints", "5", "--frames", "300", "--queries", "3")
    result = csl_bench("query", "--json", *sizes)
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert set(figures) == {"trajectory_ms", "vs_h5py", "relabel_s"}
    assert min(figures.values()) > 0


def test_options_after_the_name_are_those_of_the_script() -> None:
    refused = csl_bench("extract", "--minutes", "0")
    assert refused.returncode == 2
    assert "--minutes is 0, expected 0.1 or more" in refused.stderr


def test_unknown_benchmark_ends_in_one_sentence_with_the_known_ones() -> None:
    result = csl_bench("speed")
    assert result.returncode == 2
    [sentence] = result.stderr.strip().splitlines()
    assert "there is no benchmark 'speed'; there are" in sentence
    assert "extract" in sentence
    assert "figures" not in sentence, "what the scripts share is no benchmark"


def test_without_a_name_benchmarks_are_listed_with_their_purpose() -> None:
    result = csl_bench()
    assert result.returncode == 0, result.stderr
    purposes = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert {"extract", "train", "predict", "query", "serve"} <= set(purposes)
    assert purposes["extract"].startswith("How fast extraction is")


def test_installed_without_the_source_says_where_benchmarks_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path)
    with pytest.raises(ConfigError, match="installed without it; clone the repository"):
        bench.bench("query")
