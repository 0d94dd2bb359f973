"""Requests to storage of a `csl run` whose root is on S3: fresh, and once more with nothing to do.

.venv/bin/python benchmarks/storage_requests.py

A small embedded dataset (18 videos, two scorers, three epochs) runs against moto through a proxy
that counts. Each line is a kind of object: how many there are, and how often they were asked for.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import yaml

from csl_dist.data.demo import DemoSpec, write_demo
from csl_dist.types import Split

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from s3_server import BUCKET, FaultyProxy, s3_server, settings

SPEC = DemoSpec(
    num_videos={Split.TRAIN: 8, Split.VAL: 4, Split.AUDIT: 6}, phase_frames=(6, 10), size=32
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, s3_server() as endpoint:
        write_demo(Path(folder) / "dataset", SPEC)
        config = write_config(Path(folder))
        proxy = FaultyProxy(endpoint)
        for name in ("fresh", "unchanged"):
            proxy.requests.clear()
            run(config, proxy)
            report(name, proxy.requests)


def write_config(folder: Path) -> Path:
    content = {
        "root": f"s3://{BUCKET}/run",
        "dataset": {
            "path": str(folder / "dataset"),
            "truth": str(folder / "dataset" / "errors.csv"),
        },
        "features": {"weights": "random", "size": 32},
        "scorers": {"transformer": {"arguments": {"preset": "tiny"}}, "framewise": {}},
        "train": {"epochs": 3, "learning_rate": 1e-3, "batch_frames": 256},
    }
    path = folder / "csl.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def run(config: Path, proxy: FaultyProxy) -> None:
    command = [sys.executable, "-m", "csl_dist.cli", "run", str(config)]
    environment = {**os.environ, **settings(proxy.endpoint)}
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)


def report(name: str, requests: list[tuple[str, str]]) -> None:
    """Prints requests by what they were for, the most first."""
    asked = [(method, kind_of(path)) for method, path in requests]
    print(f"{name}: {len(asked):,} requests")
    for kind, count in Counter(kind for _, kind in asked).most_common(14):
        methods = Counter(method for method, own in asked if own == kind)
        objects = len({path for _, path in requests if kind_of(path) == kind})
        words = ", ".join(f"{method} {number}" for method, number in methods.most_common())
        print(f"  {kind:<40} {count:>6,} for {objects:>5,} objects ({words})")


def kind_of(path: str) -> str:
    """A key without ids, fingerprints and numbers."""
    key, _, query = path.removeprefix(f"/{BUCKET}").lstrip("/").partition("?")
    if "list-type" in query:
        return "listings"
    key = re.sub(r"[0-9a-f]{16}", "*", key.removeprefix("run/"))
    key = re.sub(r"(train|val|audit)\d+(~swapped|=7Eswapped)?", "VIDEO", key)
    return re.sub(r"\d+", "N", key)


if __name__ == "__main__":
    main()
