"""Several checkpoints of a small model in one go, beside one after the other.

.venv/bin/python benchmarks/stacking.py [--threads 1] [--repeats 5] [--json]

Prints frames x checkpoints per second of CPU: videos one at a time, videos in batches, batches with
packed weights as prediction has them, of these the products of linear layers alone (as if all else
cost nothing), and batches with the weights of 2, 4 and 8 checkpoints stacked (torch.func.vmap).
"""

import copy
import time
from collections.abc import Callable
from statistics import median

import torch
from figures import add_repeats, parser_of, positive, print_figures
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from csl_dist.predict.arithmetic import lighten
from csl_dist.predict.forward import CPU_BATCH_FRAMES
from csl_dist.training.models import ModelSpec, Place, Scorer, build_scorer

WIDTH, NUM_CLASSES, NUM_CHECKPOINTS = 512, 7, 8
CASES = {"tiny": ("transformer", {"preset": "tiny"}, 200), "framewise": ("framewise", {}, 400)}
SECONDS = 0.5

Batch = tuple[Tensor, Tensor, Place]


def made_batch(num_videos: int, num_frames: int) -> Batch:
    x_BTD = torch.randn(num_videos, num_frames, WIDTH)
    padding_BT = torch.zeros(num_videos, num_frames, dtype=torch.bool)
    index_BT = torch.arange(num_frames).float().expand(num_videos, -1)
    return x_BTD, padding_BT, Place(index_BT, torch.full((num_videos,), float(num_frames)))


def one_by_one(scorers: list[Scorer], batch: Batch) -> Callable[[], object]:
    return lambda: [scorer(*batch) for scorer in scorers]


def products_alone(scorers: list[Scorer], num_frames: int) -> Callable[[], object]:
    """What the linear layers multiply, each with an input of its own."""
    layers = [m for s in scorers for m in s.modules() if isinstance(m, torch.nn.Linear)]
    inputs = {layer.in_features: torch.randn(num_frames, layer.in_features) for layer in layers}
    return lambda: [layer(inputs[layer.in_features]) for layer in layers]


def stacked(scorers: list[Scorer], batch: Batch, count: int) -> Callable[[], object]:
    """Evaluates `count` checkpoints at a time; all batches here are without padding."""
    base = copy.deepcopy(scorers[0]).to("meta")
    stacks = [
        stack_module_state(scorers[first : first + count])
        for first in range(0, len(scorers), count)
    ]
    features_BTD, padding_BT, place = batch

    def forward(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        logits_BTC: Tensor = functional_call(
            base, (parameters, buffers), (features_BTD, padding_BT, place)
        )
        return logits_BTC

    mapped = vmap(forward)
    return lambda: [mapped(*stack) for stack in stacks]


def rate(run: Callable[[], object], num_frames: int) -> float:
    count, begun = 0, time.process_time()
    while time.process_time() - begun < SECONDS:
        run()
        count += 1
    return num_frames * count / (time.process_time() - begun)


@torch.inference_mode()
def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=positive, default=1)
    add_repeats(parser, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    figures = {}
    for name, (model, model_arguments, num_frames) in CASES.items():
        spec = ModelSpec(
            name=model, arguments=model_arguments, num_features=WIDTH, num_classes=NUM_CLASSES
        )
        scorers = [build_scorer(spec).eval() for _ in range(NUM_CHECKPOINTS)]
        num_videos = max(1, CPU_BATCH_FRAMES // num_frames)
        single, batch = made_batch(1, num_frames), made_batch(num_videos, num_frames)
        batch_frames = num_frames * num_videos
        packed = copy.deepcopy(scorers)
        for scorer in packed:
            lighten(scorer)
        ways = {
            "one video": (one_by_one(scorers, single), num_frames),
            "batch": (one_by_one(scorers, batch), batch_frames),
            "packed": (one_by_one(packed, batch), batch_frames),
            "products alone": (products_alone(packed, batch_frames), batch_frames),
        }
        for count in (2, 4, 8):
            run = stacked(scorers, batch, count)
            ways[f"stacked {count}"] = (run, batch_frames)
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(arguments.repeats):
            for way, (run, frames) in ways.items():
                rates[way].append(rate(run, frames * NUM_CHECKPOINTS))
        figures[name] = {way: round(median(values)) for way, values in rates.items()}
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
