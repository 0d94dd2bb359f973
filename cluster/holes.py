"""Known holes in the pinned packages, as pip-audit tells them: `make packages`.

    python cluster/holes.py pip-audit constraints-hashes.txt

Ends with 1 where a hole is known. Where pip-audit's database can't be reached, that is one
sentence, and no failure: nothing was found, and nothing was looked up.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any


def told(packages: Sequence[dict[str, Any]]) -> tuple[list[str], int]:
    """What there is to say of pip-audit's answers, and the exit code."""
    looked_up = [package for package in packages if "skip_reason" not in package]
    if not looked_up:
        sentence = f"known holes: none of {len(packages)} packages could be looked up here"
        return [f"{sentence}, because pip-audit does not reach its database"], 0
    holes = [
        f"{package['name']} {package['version']}: {hole['id']}, mended in "
        f"{', '.join(hole['fix_versions']) or 'no version yet'}"
        for package in looked_up
        for hole in package["vulns"]
    ]
    counts = f"{len(holes)} in {len(looked_up)} of {len(packages)} packages that were looked up"
    return [f"known holes: {counts}", *holes], int(bool(holes))


def main() -> None:
    audit, constraints = sys.argv[1:]
    words = [audit, "--disable-pip", "--require-hashes", "--format", "json", "-r", constraints]
    done = subprocess.run(words, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        last = next(iter(done.stderr.strip().splitlines()[-1:]), "it said nothing")
        print(f"known holes: pip-audit could not look anything up: {last}")
        return
    lines, code = told(packages)
    print("\n".join(lines))
    sys.exit(code)


if __name__ == "__main__":
    main()
