"""JIGSAWS knot tying from its videos: writes a dataset with planted errors, for `csl run`.

.venv/bin/python benchmarks/knot_tying.py --data ../shared/data --work DIR
.venv/bin/csl run DIR/csl.yaml

36 trials of eight surgeons, five frames a second, ImageNet weights, four folds by surgeon.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml
from real_data import config_of, fps, gestures

from csl_dist.data.media.video import VideoFile

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import MadeVideo, write_manifest

NAME = "knot_tying"


def videos_with_pixels(data: Path) -> Iterator[MadeVideo]:
    for video in gestures(NAME, data):
        source = str(data / "jigsaws" / NAME / "video" / f"{video.id}.avi")
        # Kinematics end some frames before the video, or in one trial 15 s after it.
        num_frames = len(VideoFile(source).times())
        names_T = [*video.names_T, *["-"] * num_frames][:num_frames]
        yield replace(video, names_T=names_T, features_TD=None, source=source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()
    data, folder = arguments.data.resolve(), arguments.work.resolve()
    write_manifest(folder, videos_with_pixels(data), fps=fps(NAME))
    config = config_of(NAME, folder)
    [weights] = (data / "weights").glob("resnet18*.pth")
    # The file's BatchNorm statistics are those of inputs that are not normalised.
    config["features"] = {"weights": str(weights), "normalize": False}
    (folder / "csl.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


if __name__ == "__main__":
    main()
