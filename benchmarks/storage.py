"""Storage that `csl plan` foresees beside what a run took: the paper's Cholec80, scaled down.

.venv/bin/python benchmarks/storage.py --data ../shared/data --work DIR [--videos 10] [--seconds 6]
.venv/bin/python benchmarks/storage.py --config CONFIG

Clips of real surgical video (JIGSAWS) in the layout of Cholec80 go through configs/cholec80.yaml:
the adapted encoder, ViT-B, every checkpoint, scores. Only the number and length of videos, the
epochs and the encoder's weights differ; every stage's bytes are compared.
"""

import json
import sys
from fractions import Fraction
from itertools import cycle
from pathlib import Path

import av
from figures import parser_of, positive, print_figures
from rich.console import Console

from csl_dist import pipeline
from csl_dist.config import RunConfig, load_config
from csl_dist.data.layouts.cholec80 import PHASES

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from stage_bytes import planned_bytes, stored_bytes

CONFIG = Path(__file__).parents[1] / "configs" / "cholec80.yaml"
FPS = 25


def write_clips(data: Path, folder: Path, count: int, seconds: int) -> None:
    """Clips with made phases; another part of another trial each."""
    videos = sorted((data / "jigsaws/knot_tying/video").glob("*.avi"))
    for name in ("videos", "phase_annotations"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number, source in zip(range(1, count + 1), cycle(videos), strict=False):
        path = folder / f"videos/video{number:02d}.mp4"
        num_frames = write_clip(source, path, seconds, skip=number // len(videos) * seconds * FPS)
        rows = [f"{i}\t{PHASES[i * 7 // num_frames]}" for i in range(num_frames)]
        labels = folder / f"phase_annotations/video{number:02d}-phase.txt"
        labels.write_text("\n".join(["Frame\tPhase", *rows, ""]))


def write_clip(source: Path, path: Path, seconds: int, *, skip: int) -> int:
    """Copies some seconds of a video at 25 fps; the number of its frames."""
    with av.open(str(source)) as reading, av.open(str(path), "w") as writing:
        stream = writing.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        count = 0
        for number, frame in enumerate(reading.decode(video=0)):
            if number < skip:
                continue
            if count == seconds * FPS:
                break
            picture = frame.reformat(320, 240, "yuv420p")
            picture.pts, picture.time_base = count, Fraction(1, FPS)
            writing.mux(stream.encode(picture))
            count += 1
        writing.mux(stream.encode())
    return count


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--config", type=Path, help="of a run that is done; nothing is run")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--videos", type=positive, default=10)
    parser.add_argument("--seconds", type=positive, default=6)
    parser.add_argument("--epochs", type=positive, default=3)
    arguments = parser.parse_args()
    if arguments.config is not None:
        print_figures(compared(load_config(arguments.config)), as_json=arguments.json)
        return
    data, work = arguments.data.resolve(), arguments.work.resolve()
    names = [f"video{number:02d}" for number in range(1, arguments.videos + 1)]
    if not (work / f"cholec80/videos/{names[-1]}.mp4").exists():
        write_clips(data, work / "cholec80", arguments.videos, arguments.seconds)
    num_train, num_val = len(names) * 5 // 8, max(1, len(names) // 8)
    splits = {
        "train": names[:num_train],
        "val": names[num_train : num_train + num_val],
        "audit": names[num_train + num_val :],
    }
    [weights] = (data / "weights").glob("resnet18*.pth")
    options = [
        f"root={work}/run",
        f"dataset.path={work}/cholec80",
        f"dataset.splits={json.dumps(splits)}",
        f"features.weights={weights}",
        "features.normalize=false",  # as the weights' BatchNorm wants it
        "corrupt.lengths=[3, 6]",
        f"features.adapt.epochs={arguments.epochs}",
        f"train.epochs={arguments.epochs}",
    ]
    config = load_config(CONFIG, options)
    console = Console(stderr=True)
    with pipeline.open_stage(config, "csl bench storage", console=console) as stage:
        pipeline.run(stage)
    print_figures(compared(config), as_json=arguments.json)


def compared(config: RunConfig) -> dict[str, dict[str, float]]:
    """Planned and measured megabytes of every stage of a run that is done."""
    planned, measured = planned_bytes(config), stored_bytes(config)
    return {
        stage: {
            "planned_mb": round(planned[stage] / 1e6, 3),
            "measured_mb": round(measured[stage] / 1e6, 3),
            "ratio": round(planned[stage] / measured[stage], 3),
        }
        for stage in planned
    }


if __name__ == "__main__":
    main()
