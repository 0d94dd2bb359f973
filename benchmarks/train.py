"""How fast a training worker is, beside a plain loop with the same model and batches.

.venv/bin/python benchmarks/train.py [--repeats 3] [--json]
.venv/bin/python benchmarks/train.py --feed [--repeats 3] [--json]

With --feed: the same epochs on features that are sixteen times what a reader keeps, as workers read
them, beside features that are all in memory; and beside a reader without thread and node's files.
"""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from figures import add_repeats, parser_of, print_figures
from rich.console import Console
from torch.nn.functional import cross_entropy

from csl_dist.cluster.session import connect
from csl_dist.cluster.stage import Stage
from csl_dist.config import RunConfig, parse_config
from csl_dist.features.node_cache import forget_node_folder, kept_on_node, node_folder
from csl_dist.features.source import FeatureReader
from csl_dist.training.batches import padded_batch
from csl_dist.training.inputs import open_inputs
from csl_dist.training.models import build_scorer
from csl_dist.training.stage import Training, fit_trainings, training_of
from csl_dist.training.train import class_counts, class_weights, epoch_batches, train_epochs

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import NUM_CLASSES, write_random_dataset

NUM_VIDEOS, NUM_FRAMES = 15, 256
EPOCHS = 4
BATCH_FRAMES = 1024


def bench_train(repeats: int) -> dict[str, float]:
    """Frames per second of a worker over those of the loop, both with one thread, once started.

    Both save a checkpoint of every epoch, with the optimiser's state.
    """
    ratios, rates = [], []
    with tempfile.TemporaryDirectory() as folder:
        sizes = {"num_videos": NUM_VIDEOS, "num_frames": NUM_FRAMES}
        write_random_dataset(Path(folder), **sizes, split="train")
        connect()
        for repeat in range(repeats):
            inputs = open_inputs(run_config(Path(folder), repeat))
            training = training_of(inputs, "transformer", inputs.run.dataset.folds[0])
            loop = loop_rate(training, Path(folder))
            stage = Stage(inputs=inputs, console=Console(stderr=True))
            fit_trainings(stage, [training], title="train: epochs")
            rates.append(worker_rate(inputs.run.config, training))
            ratios.append(rates[-1] / loop)
    return {
        "vs_loop": round(median(ratios), 3),
        "frames_per_second": round(median(rates), 1),
    }


def run_config(
    folder: Path, repeat: int, *, preset: str = "small", batch_frames: int = BATCH_FRAMES
) -> RunConfig:
    data = {
        "root": str(folder / f"run-{repeat}"),
        "dataset": {"path": str(folder / "manifest.csv")},
        "scorers": {"transformer": {"arguments": {"preset": preset}}},
        "train": {"epochs": EPOCHS, "batch_frames": batch_frames},
    }
    return parse_config(data, where="the benchmark")


def worker_rate(config: RunConfig, training: Training) -> float:
    """Frames per second from the first checkpoint's publication to the last one's."""
    metas = Path(config.root).glob("transformer/fold-0/checkpoints/*/epoch-*/meta.json")
    published = sorted(meta.stat().st_mtime for meta in metas)
    return _epoch_frames(training) * (EPOCHS - 1) / (published[-1] - published[0])


def loop_rate(training: Training, folder: Path) -> float:
    """Frames per second of what one would write in a page, from the second epoch on."""
    torch.set_num_threads(1)
    task = training.task
    reader = FeatureReader(training.features)
    labels = {a.video: torch.from_numpy(a.labels_T) for a in task.annotations}
    weights_C = torch.from_numpy(class_weights(class_counts(task.annotations, NUM_CLASSES))).float()
    model = build_scorer(task.model).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.config.learning_rate)
    begun = time.perf_counter()
    for epoch in range(1, EPOCHS + 1):
        if epoch == 2:
            begun = time.perf_counter()
        for windows in epoch_batches(task, epoch):
            batch = padded_batch(windows, reader.read, torch.device("cpu"))
            targets = torch.stack([labels[window.video] for window in windows])
            loss = cross_entropy(model(*batch).flatten(0, 1), targets.flatten(), weight=weights_C)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), task.config.clip_norm)
            optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, folder / f"epoch-{epoch}.pt")
    return _epoch_frames(training) * (EPOCHS - 1) / (time.perf_counter() - begun)


def bench_feed(repeats: int) -> dict[str, float]:
    """Frames per second of epochs on features larger than the cache, over those in memory."""
    torch.set_num_threads(1)
    rates: dict[str, list[float]] = {"memory": [], "worker": [], "plain": []}
    cpu_seconds: dict[str, list[float]] = {name: [] for name in rates}
    with tempfile.TemporaryDirectory() as folder:
        write_random_dataset(Path(folder), num_videos=32, num_frames=500, split="train")
        inputs = open_inputs(run_config(Path(folder), 0, preset="tiny", batch_frames=2000))
        training = training_of(inputs, "transformer", inputs.run.dataset.folds[0])
        task = replace(training.task, config=replace(training.task.config, epochs=2))
        whole = {a.video: training.features.read(a.video) for a in task.annotations}
        cache_bytes = sum(values.nbytes for values in whole.values()) // 16
        node = node_folder(folder)
        readers = {
            "memory": lambda w: whole[w.video][w.span.start : w.span.stop],
            "worker": FeatureReader(kept_on_node(training.features, node), cache_bytes).read,
            "plain": FeatureReader(training.features, cache_bytes).read,
        }
        for repeat in range(repeats):
            # Every other time in reverse: what the machine does besides changes slowly.
            order = list(readers.items())[:: 1 if repeat % 2 == 0 else -1]
            for name, read in order:
                begun = time.process_time()
                *_, last = train_epochs(task, read)
                cpu_seconds[name].append(time.process_time() - begun)
                rates[name].append(last.info.metrics["frames_per_second"])
        forget_node_folder(folder)

    def vs_memory(name: str) -> float:
        """The median of ratios of runs that came one after another."""
        pairs = zip(rates[name], rates["memory"], strict=True)
        return round(median(own / memory for own, memory in pairs), 3)

    return {
        "vs_memory": vs_memory("worker"),
        "plain_vs_memory": vs_memory("plain"),
        # On a machine with other work, seconds of the CPU say more than those on the wall.
        "vs_memory_cpu": round(median(cpu_seconds["memory"]) / median(cpu_seconds["worker"]), 3),
        "frames_per_second": round(median(rates["worker"]), 1),
    }


def _epoch_frames(training: Training) -> int:
    return sum(annotation.num_frames for annotation in training.task.annotations)


def main() -> None:
    parser = parser_of(__doc__)
    add_repeats(parser, default=3)
    parser.add_argument("--feed", action="store_true", help="features larger than the cache")
    arguments = parser.parse_args()
    bench = bench_feed if arguments.feed else bench_train
    print_figures(bench(arguments.repeats), as_json=arguments.json)


if __name__ == "__main__":
    main()
