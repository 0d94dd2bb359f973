"""Frames that one CPU core decodes and fits to 224 x 224 in a second, at Cholec80's size.

What `csl plan` assumes.

python benchmarks/decode.py [--width 854] [--height 480] [--frames 1000]
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

from csl_dist.cost.measure import write_video
from csl_dist.data.media.video import VideoFile, whole_frames
from csl_dist.features.encoders import fit_frame


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=854)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--frames", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video.mp4"
        write_video(path, arguments.width, arguments.height, arguments.frames)
        megabytes = path.stat().st_size / 1e6
        torch.set_num_threads(1)
        video = VideoFile(str(path))
        times_T = video.times()
        begun = time.process_time()
        count = sum(len(fit_frame(frame, 224)) > 0 for frame in whole_frames(video.decode(times_T)))
        seconds = time.process_time() - begun
    size = f"{arguments.width} x {arguments.height}, {megabytes:.1f} MB"
    print(f"{size}: {count} frames, {count / seconds:.0f} in a second of one core")


if __name__ == "__main__":
    main()
