"""Size and time of each install, in a fresh environment: the core, and each extra by itself.

    python benchmarks/install.py --work /tmp/installs [--extras core serve run timm]

Packages come from where pip is set up to find them, in the versions of constraints.txt. Megabytes
are those of the environment without pip itself; pip compiles what it installs.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from figures import parser_of, print_figures

REPOSITORY = Path(__file__).parents[1]
EXTRAS = ("core", "figures", "formats", "serve", "run", "run,serve", "run,timm")


def megabytes(folder: Path) -> int:
    """As a disk counts them, in blocks."""
    blocks = (path.lstat().st_blocks for path in folder.rglob("*"))
    return round(sum(blocks) * 512 / 2**20)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--extras", nargs="+", default=list(EXTRAS))
    options = parser.parse_args()
    figures = {}
    for extra in options.extras:
        folder = options.work / extra.replace(",", "-")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        before, begun = megabytes(folder), time.perf_counter()
        wanted = f"{REPOSITORY}" if extra == "core" else f"{REPOSITORY}[{extra}]"
        constraints = ["-c", str(REPOSITORY / "constraints.txt")]
        quiet = ["-qq", "--disable-pip-version-check"]
        subprocess.run([folder / "bin/pip", "install", *quiet, *constraints, wanted], check=True)
        figures[extra] = {
            "seconds": round(time.perf_counter() - begun),
            "MB": megabytes(folder) - before,
        }
        print(extra, figures[extra], file=sys.stderr, flush=True)
        shutil.rmtree(folder)
    print_figures(figures, as_json=options.json)


if __name__ == "__main__":
    main()
