"""Frames that one CPU core decodes and fits to 224 x 224 in a second, at Cholec80's size.

What `csl plan` assumes.

.venv/bin/python benchmarks/decode.py [--width 854] [--height 480] [--frames 1000] [--json]
"""

import tempfile
import time
from pathlib import Path

import torch
from figures import parser_of, positive, print_figures

from csl_dist.cost.measure import write_video
from csl_dist.data.media.pixels import whole_frames
from csl_dist.data.media.video import VideoFile
from csl_dist.features.encoders import fit_frame


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--width", type=positive, default=854)
    parser.add_argument("--height", type=positive, default=480)
    parser.add_argument("--frames", type=positive, default=1000)
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
    figures = {
        "file_mb": round(megabytes, 1),
        "frames": count,
        "frames_per_core_second": round(count / seconds),
    }
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
