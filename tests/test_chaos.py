"""The short form of benchmarks/chaos.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parents[1] / "benchmarks" / "chaos.py"


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(1800)
def test_random_kills_end_as_an_undisturbed_run() -> None:
    result = subprocess.run(
        [sys.executable, str(CHAOS), "--kills", "10"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout.splitlines()[-1])
    assert told["different"] == []
    assert sum(told["kills"].values()) >= 10
