"""Times `csl demo` from nothing, and again when all is done; prints one JSON object.

.venv/bin/python benchmarks/demo.py
"""

import json
import subprocess
import sys
import tempfile
import time


def seconds_of_demo(root: str) -> float:
    begun = time.monotonic()
    command = [sys.executable, "-c", "from csl_dist.cli import main; main('demo')", "--root", root]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return round(time.monotonic() - begun, 1)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        print(json.dumps({"fresh_s": seconds_of_demo(root), "again_s": seconds_of_demo(root)}))
