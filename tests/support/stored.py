"""What a run has stored, without times: equal for two runs that did the same."""

import re
from pathlib import Path

UNCOMPARED = ("sources.json", "pulse.json", "id.json", "lock.json", "report.json")
"""Files that hold nothing but times, or what names this root alone."""
TIMES = rb'"(created|seconds|frames_per_second)": [0-9.e+-]+|"#digest": "[0-9a-f]+"'
"""Times in JSON, and digests of what holds them."""


def stored(root: Path) -> dict[str, bytes]:
    """The content of every file below a run root, by its path."""
    found = {}
    for path in sorted(root.rglob("*")):
        # A kill may leave a temporary file of obstore, which no listing shows.
        if path.is_file() and path.name not in UNCOMPARED and "#" not in path.name:
            data = path.read_bytes()
            if path.suffix in (".json", ".jsonl"):
                data = re.sub(TIMES, b"", data)
            found[str(path.relative_to(root))] = data
    return found


def different(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Files that only one of two runs has, or that differ."""
    return sorted(key for key in one.keys() | other if one.get(key) != other.get(key))
