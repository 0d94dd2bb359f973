"""How fast checkpoints are evaluated, beside a plain loop and the bare matrix multiplication.

All three have the whole machine: scoring one worker a core, the others torch's threads. The loop
reads features from the same store, and, for comparison, from .npy files.

.venv/bin/python benchmarks/predict.py [--repeats 3] [--case vit_b_512 --case tiny] [--json]
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from figures import add_repeats, parser_of, print_figures, seconds_of
from rich.console import Console
from torch import Tensor
from torch.nn.functional import cross_entropy

from csl_dist.cluster.session import connect
from csl_dist.cluster.stage import Stage
from csl_dist.config import parse_config
from csl_dist.cost.flops import forward_flops
from csl_dist.predict.plan import plan_scorers
from csl_dist.predict.stage import predict, prediction_pool, publish, row_prediction
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import open_array
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.training.models import Place, Scorer, build_scorer
from csl_dist.types import Split

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import write_checkpoints, write_random_dataset

GEMM_SIZE, GEMM_SECONDS = 1024, 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """A model, and what it is run over."""

    model: str
    arguments: dict[str, Any]
    _: KW_ONLY
    num_frames: int
    num_videos: int
    num_checkpoints: int


VIT_B, SMALL, TINY = ({"preset": name} for name in ("vit_b", "small", "tiny"))
CASES = {
    "vit_b_512": Case("transformer", VIT_B, num_frames=512, num_videos=24, num_checkpoints=2),
    "vit_b_2048": Case("transformer", VIT_B, num_frames=2048, num_videos=6, num_checkpoints=2),
    "small": Case("transformer", SMALL, num_frames=300, num_videos=64, num_checkpoints=8),
    "tiny": Case("transformer", TINY, num_frames=200, num_videos=128, num_checkpoints=20),
    "framewise": Case("framewise", {}, num_frames=400, num_videos=160, num_checkpoints=40),
}


def bench_predict(repeats: int, cases: Sequence[str] = tuple(CASES)) -> dict[str, Any]:
    """Medians over repeats, in each of which everything is measured one after the other."""
    figures: dict[str, Any] = {}
    connect()
    for name in cases:
        with tempfile.TemporaryDirectory() as folder:
            bench = _CaseBench(CASES[name], Path(folder))
            rounds = [bench.measure() for _ in range(repeats)]
            medians = {key: median(r[key] for r in rounds) for key in rounds[0]}
            if name == "vit_b_512":
                figures["rerun_share"] = round(bench.rerun_seconds() / bench.last_seconds, 4)
                figures["fast_over_exact"] = round(bench.fast_over_exact(repeats), 2)
            if name == "small":
                ratios = [bench.seconds(1) / bench.seconds(2) for _ in range(repeats)]
                figures["two_over_one"] = round(median(ratios), 2)
            figures[name] = {key: round(value, 2) for key, value in medians.items()}
    return figures


class _CaseBench:
    """One case on disk, predicted again and again."""

    def __init__(self, case: Case, folder: Path):
        self._case = case
        self._folder = folder
        sizes = {"num_videos": case.num_videos, "num_frames": case.num_frames}
        write_random_dataset(folder / "data", **sizes, split="audit")
        self._inputs = _open(case, folder)
        write_checkpoints(self._inputs, "model", case.num_checkpoints)
        self._annotations = self._inputs.labels.held_out()
        self._stage = Stage(inputs=self._inputs, console=Console(stderr=True, quiet=True))
        self.last_seconds = 0.0

    def measure(self) -> dict[str, float]:
        """Share of the multiplication rate, and how many times the loop's speed."""
        num_cores = os.cpu_count() or 1
        gemm_before = gemm_rate(num_cores)
        seconds = self.last_seconds = self.seconds(num_cores)
        gemm = (gemm_before + gemm_rate(num_cores)) / 2
        loop = self._loop_seconds(num_cores, self._load_stored)
        npy_loop = self._loop_seconds(num_cores, self._load_npy)
        lengths = [self._case.num_frames] * self._case.num_videos
        flops = (
            forward_flops(self._inputs.model_spec("model"), lengths) * self._case.num_checkpoints
        )
        num_frames = sum(lengths) * self._case.num_checkpoints
        return {
            "gemm_share": flops / seconds / gemm,
            "vs_loop": loop / seconds,
            "vs_npy_loop": npy_loop / seconds,
            "frames_per_second": num_frames / seconds,
        }

    def seconds(self, num_workers: int) -> float:
        """What it takes from the plan to published trajectories, once workers have started.

        All that an audit writes is deleted first.
        """
        for part in ("records", "rows.zarr", "trajectories.zarr"):
            self._inputs.run.paths.scorer("model").delete_folder(part)
        with prediction_pool(self._stage) as pool:
            pool.num_actors = num_workers
            pool.start(num_workers)
            pool.wait_until_started()
            begun = time.perf_counter()
            plans = plan_scorers(self._inputs)
            with row_prediction(self._stage, plans) as rows:
                rows.predict(plans, pool)
            publish(self._stage, plans, pool)
            return time.perf_counter() - begun

    def fast_over_exact(self, repeats: int) -> float:
        """How many times the speed `predict.precision: fast` has, turn about."""
        stage, num_cores = self._stage, os.cpu_count() or 1
        fast = replace(stage, inputs=_open(self._case, self._folder, precision="fast"))
        ratios = []
        for _ in range(repeats):
            exact_seconds = self.seconds(num_cores)
            self._stage, self._inputs = fast, fast.inputs
            ratios.append(exact_seconds / self.seconds(num_cores))
            self._stage, self._inputs = stage, stage.inputs
        return median(ratios)

    def rerun_seconds(self) -> float:
        """What an audit takes to find that all is predicted."""
        return seconds_of(lambda: predict(self._stage))

    def _load_stored(self, video: str) -> npt.NDArray[np.float32]:
        array = open_array(Storage(str(self._folder / "data")), f"{video}.zarr")
        return array[:].astype(np.float32)

    def _load_npy(self, video: str) -> npt.NDArray[np.float32]:
        features_TD: npt.NDArray[np.float32] = np.load(self._folder / "data" / f"{video}.npy")
        return features_TD

    def _loop_seconds(
        self, num_threads: int, load: Callable[[str], npt.NDArray[np.float32]]
    ) -> float:
        """What one would write in a page: checkpoint by checkpoint, video by video."""
        torch.set_num_threads(num_threads)
        model = build_scorer(self._inputs.model_spec("model")).eval()
        paths = sorted((self._folder / "run").rglob("model.safetensors"))
        labels = {a.video: torch.from_numpy(a.labels_T) for a in self._annotations}
        begun = time.perf_counter()
        for epoch, path in enumerate(paths):
            model.load_state_dict(safetensors.torch.load_file(path))
            for annotation in self._annotations:
                features_TD = torch.from_numpy(load(annotation.video))
                losses_T = _video_losses(model, features_TD, labels[annotation.video])
                np.save(self._folder / f"{epoch}-{annotation.video}.npy", losses_T.numpy())
        return time.perf_counter() - begun


@torch.inference_mode()
def _video_losses(model: Scorer, features_TD: Tensor, labels_T: Tensor) -> Tensor:
    num_frames = len(features_TD)
    place = Place(torch.arange(num_frames)[None].float(), torch.tensor([float(num_frames)]))
    padding_BT = torch.zeros(1, num_frames, dtype=torch.bool)
    logits_TC = model(features_TD[None], padding_BT, place)[0]
    return cross_entropy(logits_TC, labels_T, reduction="none")


def _open(case: Case, folder: Path, *, precision: str = "exact") -> Inputs:
    data = {
        "root": str(folder / "run"),
        "dataset": {"path": str(folder / "data")},
        "scorers": {"model": {"model": case.model, "arguments": case.arguments}},
        "train": {"epochs": case.num_checkpoints},
        "audit": {"swapped_copies": 0},
        "predict": {"precision": precision},
    }
    inputs = open_inputs(parse_config(data, where="the benchmark"))
    assert len(inputs.run.dataset.in_split(Split.AUDIT)) == case.num_videos
    return inputs


def gemm_rate(num_threads: int) -> float:
    """Floating-point operations per second of a float32 matrix product."""
    torch.set_num_threads(num_threads)
    a, b = torch.randn(2, GEMM_SIZE, GEMM_SIZE)
    out = torch.mm(a, b)
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < GEMM_SECONDS:
        torch.mm(a, b, out=out)
        count += 1
    return 2 * GEMM_SIZE**3 * count / (time.perf_counter() - begun)


def main() -> None:
    parser = parser_of(__doc__)
    add_repeats(parser, default=3)
    parser.add_argument(
        "--case", action="append", choices=list(CASES), help="only these; may be given repeatedly"
    )
    arguments = parser.parse_args()
    figures = bench_predict(arguments.repeats, arguments.case or tuple(CASES))
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
