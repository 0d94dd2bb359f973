"""Times `csl demo` from nothing, and again when all is done.

.venv/bin/python benchmarks/demo.py [--json]
"""

import subprocess
import sys
import tempfile

from figures import parser_of, print_figures, seconds_of


def run_demo(root: str) -> None:
    command = [sys.executable, "-m", "csl_dist.cli", "demo", "--root", root]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    arguments = parser_of(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as root:
        times = [round(seconds_of(lambda: run_demo(root)), 1) for _ in range(2)]
    figures = dict(zip(("fresh_s", "again_s"), times, strict=True))
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
