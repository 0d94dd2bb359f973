"""A command that is told to end does so as by Ctrl-C: one sentence, and how to go on."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys
import csl_dist.cli.lint  # registers the command
from csl_dist.cli.app import main
from csl_dist.lint import api

def ended(*_, **__):
    os.kill(os.getpid(), NUMBER)
    signal.pause()

api.lint = ended
main("lint", ".")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_to_end_is_one_sentence_and_its_own_exit_code(number: int) -> None:
    # Whoever runs the tests may be under nohup, which children inherit.
    heeded = f"import signal; signal.signal({int(number)}, signal.SIG_DFL)"
    code = heeded + SCRIPT.replace("NUMBER", str(int(number)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 128 + number, done.stderr
    assert done.stderr.strip() == "interrupted; what is done is kept, go on with: csl lint ."


def test_signal_that_is_ignored_stays_so() -> None:
    """As nohup has it."""
    code = SCRIPT.replace("NUMBER", str(int(signal.SIGHUP)))
    code = code.replace("signal.pause()", "os._exit(7)")
    done = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$0" -c "$1"', sys.executable, code],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 7, done.stderr
