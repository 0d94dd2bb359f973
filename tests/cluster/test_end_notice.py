"""A command that is ended from outside has a sentence; one that ends by itself has none."""

import subprocess
import sys

import pytest

from csl_dist.cluster.end_notice import SENTENCE

START = "from csl_dist.cluster.end_notice import END_NOTICE; END_NOTICE.start()\n"


def said_by(script: str) -> str:
    result = subprocess.run([sys.executable, "-c", START + script], capture_output=True, text=True)
    return result.stderr


@pytest.mark.parametrize(
    "end",
    [
        "import os; os._exit(1)",  # as Ray's core does when its head is gone
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.abort()",
    ],
)
def test_process_that_is_ended_has_its_sentence(end: str) -> None:
    assert SENTENCE + "\n" in said_by(end)


@pytest.mark.parametrize(
    "end", ["", "raise SystemExit(2)", "END_NOTICE.cancel(); END_NOTICE.cancel()"]
)
def test_process_that_ends_by_itself_has_none(end: str) -> None:
    assert said_by(end) == ""


def test_error_of_ours_is_all_that_is_said() -> None:
    assert SENTENCE not in said_by("raise ValueError('x')")
