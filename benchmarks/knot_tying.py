"""JIGSAWS knot tying from its videos: writes a dataset with planted errors, for `csl run`.

.venv/bin/python benchmarks/knot_tying.py --data ../shared/data --work DIR
.venv/bin/csl run DIR/csl.yaml

36 trials of eight surgeons, five frames a second, ImageNet weights, four folds by surgeon.
"""

import argparse
from pathlib import Path

import yaml
from real_data import config_of, fps, gestures

NAME = "knot_tying"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()
    data, folder = arguments.data.resolve(), arguments.work.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["id,source,labels,split,fps,group"]
    for video in gestures(NAME, data):
        (folder / f"{video.id}.txt").write_text("\n".join(video.names_T) + "\n")
        source = data / "jigsaws" / NAME / "video" / f"{video.id}.avi"
        rows.append(f"{video.id},{source},{video.id}.txt,audit,{fps(NAME):g},{video.group}")
    (folder / "manifest.csv").write_text("\n".join([*rows, ""]))
    config = config_of(NAME, folder)
    # A video is up to 20 frames longer than the labels that go with the kinematics.
    config["dataset"]["length_mismatch"] = "trim"
    [weights] = (data / "weights").glob("resnet18*.pth")
    # The file's BatchNorm statistics are those of inputs that are not normalised.
    config["features"] = {"weights": str(weights), "normalize": False}
    (folder / "csl.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


if __name__ == "__main__":
    main()
