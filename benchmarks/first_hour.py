"""A new user's hour, timed: a folder of 30 videos with a CSV of segments, to a report.

    python benchmarks/first_hour.py --work /tmp/first_hour [--recipe quick]

No config key is typed: the commands are those that each one names as the next. The videos are made
as those of `csl demo`; a third of them have errors. `--weights FILE` puts ResNet-18's weights where
torch keeps downloaded ones, for a machine without a network; without it and without a network the
run is refused, as it would be for that user.
"""

import csv
import os
import shutil
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path

import torch
from figures import parser_of, print_figures

from csl_dist.config import FeaturesConfig
from csl_dist.data.demo import DemoSpec, write_demo
from csl_dist.features.families.resnet import Resnet
from csl_dist.types import Split

CSL = Path(sys.executable).parent / "csl"
PUBLISHED = "resnet18-f37072fd.pth"
SPEC = DemoSpec(num_videos={Split.TRAIN: 14, Split.VAL: 6, Split.AUDIT: 10}, size=128)


def write_folder(folder: Path) -> None:
    """Videos and one CSV of segments, in seconds; nothing else."""
    made = folder.with_name("made")
    write_demo(made, SPEC)
    (folder / "videos").mkdir(parents=True, exist_ok=True)
    with (folder / "segments.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["video", "start", "end", "label"])
        for labels in sorted((made / "labels").glob("*.txt")):
            shutil.copy(made / "videos" / f"{labels.stem}.mp4", folder / "videos")
            place = 0
            for name, run in groupby(labels.read_text().splitlines()):
                stop = place + len(list(run))
                writer.writerow([labels.stem, place / SPEC.fps, stop / SPEC.fps, name])
                place = stop


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--recipe", default=None)
    parser.add_argument("--weights", type=Path)
    options = parser.parse_args()
    folder = options.work / "mine"
    write_folder(folder)
    hub = options.work / "hub"
    if options.weights is not None:
        (hub / "checkpoints").mkdir(parents=True, exist_ok=True)
        # The file may lack the classifier, which torchvision's own loading wants.
        network = Resnet(FeaturesConfig(weights=str(options.weights))).whole_network()
        torch.save(network.state_dict(), hub / "checkpoints" / PUBLISHED)
    environment = os.environ | {"TORCH_HOME": str(hub.parent), "COLUMNS": "80"}
    recipe = ["--recipe", options.recipe] if options.recipe else []
    commands = {
        "lint": ["lint", "mine/segments.csv"],
        "init": ["init", "auto", "mine", *recipe],
        "check": ["check", "csl.yaml"],
        "dry run": ["run", "csl.yaml", "--dry-run"],
        "run": ["run", "csl.yaml"],
        "query": ["query", "runs/mine", "top"],
    }
    figures = {}
    for name, command in commands.items():
        print(f"$ csl {' '.join(command)}", flush=True)
        before, begun = os.times(), time.perf_counter()
        done = subprocess.run([CSL, *command], cwd=options.work, env=environment, check=False)
        after = os.times()
        used = after.children_user + after.children_system
        figures[name] = {
            "seconds": round(time.perf_counter() - begun, 1),
            "CPU seconds of the command itself": round(
                used - before.children_user - before.children_system, 1
            ),
            "exit code": done.returncode,
        }
    print_figures(figures, as_json=options.json)


if __name__ == "__main__":
    main()
