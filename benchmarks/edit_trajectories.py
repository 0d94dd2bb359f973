"""Held-out log-probabilities of three model families on five real datasets, for findings.py.

.venv/bin/python benchmarks/edit_trajectories.py --data ../shared/data --out /tmp/findings/traj

One process, no Ray. Folds are by person; models are unweighted, one video a batch, Cholec80 two.
Labels of training videos are those of the dataset: errors are planted later, in what is held out.
A swap moves frames, so that models must see them again: every video is also predicted with two
neighbouring segments swapped, once for each planting seed.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from real_data import DATASETS, READERS, fps
from torch import Tensor
from torch.nn.functional import cross_entropy

from csl_dist.training.models import ModelSpec, Place, Scorer, build_scorer

FAMILIES: dict[str, dict[str, Any]] = {
    "framewise": {},
    "mstcn": {},
    "transformer": {"preset": "tiny"},
}
EPOCHS = 16
LEARNING_RATE = 1e-3
PLANTING_SEEDS = (0, 1, 2)
EVERY = {"knot_tying": 6, "needle_passing": 6, "hapt": 2}
"""One frame in so many is used: 5 a second, of HAPT 2.5."""
UNLABELLED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedVideo:
    """Features (T, D), labels (T,) with -1 where there is none, and who is seen."""

    id: str
    features_TD: Tensor
    labels_T: npt.NDArray[np.int64]
    group: str


def load_dataset(name: str, data: Path) -> tuple[list[LoadedVideo], list[str]]:
    """Videos with standardised features, and the class names."""
    videos = list(READERS[name](name, data))
    every = EVERY.get(name, 1)
    classes = sorted({label for video in videos for label in video.names_T} - {"-"})
    index = {label: c for c, label in enumerate(classes)} | {"-": UNLABELLED}
    frames = np.concatenate([v.features_TD for v in videos]).astype(np.float64)
    mean_D, deviation_D = frames.mean(axis=0), frames.std(axis=0) + 1e-6
    loaded = [
        LoadedVideo(
            id=v.id,
            features_TD=torch.from_numpy(
                ((v.features_TD - mean_D) / deviation_D)[::every].astype(np.float32)
            ),
            labels_T=np.array([index[label] for label in v.names_T[::every]]),
            group=v.group or v.id,
        )
        for v in videos
    ]
    return loaded, classes


def fold_of_groups(groups: list[str], num_folds: int) -> dict[str, int]:
    """Every person in one fold, in turn."""
    return {group: i % num_folds for i, group in enumerate(sorted(set(groups)))}


def swapped_order(video: LoadedVideo, seed: int) -> npt.NDArray[np.int64] | None:
    """Frame numbers (T,) after two random neighbouring labelled segments have changed places; None
    where no two are neighbours."""
    labels_T = video.labels_T
    cuts = [0, *(np.flatnonzero(np.diff(labels_T)) + 1), len(labels_T)]
    segments = [(a, b) for a, b in pairwise(cuts) if labels_T[a] != UNLABELLED]
    pairs = [(a, b) for a, b in pairwise(segments) if a[1] == b[0]]
    if not pairs:
        return None
    rng = np.random.default_rng([seed, *video.id.encode()])
    first, second = pairs[int(rng.integers(len(pairs)))]
    order_T = np.arange(len(labels_T))
    order_T[first[0] : second[1]] = np.r_[second[0] : second[1], first[0] : first[1]]
    return order_T


def predict(model: Scorer, features_TD: Tensor) -> npt.NDArray[np.float16]:
    """Log-probabilities (T, C)."""
    num_frames = len(features_TD)
    place = Place(torch.arange(num_frames)[None], torch.tensor([num_frames]))
    with torch.inference_mode():
        logits = model(features_TD[None], torch.zeros(1, num_frames, dtype=torch.bool), place)[0]
        return logits.log_softmax(-1).numpy().astype(np.float16)


def trained_models(
    videos: list[LoadedVideo], spec: ModelSpec, *, batch: int, seed: int, epochs: int = EPOCHS
) -> Iterator[Scorer]:
    """The model after each epoch, in evaluation mode."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = build_scorer(spec)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    for _ in range(epochs):
        model.train()
        order = rng.permutation(len(videos))
        for i in range(0, len(order), batch):
            loss = batch_loss(model, [videos[k] for k in order[i : i + batch]])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        yield model.eval()


def batch_loss(model: Scorer, videos: list[LoadedVideo]) -> Tensor:
    """Cross-entropy of the labelled frames, the mean over stages where a model has several."""
    lengths = [len(v.labels_T) for v in videos]
    longest = max(lengths)
    x_BTD = torch.zeros(len(videos), longest, videos[0].features_TD.shape[1])
    y_BT = torch.full((len(videos), longest), UNLABELLED)
    for i, video in enumerate(videos):
        x_BTD[i, : lengths[i]] = video.features_TD
        y_BT[i, : lengths[i]] = torch.from_numpy(video.labels_T)
    length_B = torch.tensor(lengths)
    index_BT = torch.arange(longest).expand(len(videos), -1)
    logits = model(x_BTD, index_BT >= length_B[:, None], Place(index_BT, length_B))
    stages = logits.reshape(-1, y_BT.numel(), logits.shape[-1])
    losses = [cross_entropy(s, y_BT.flatten(), ignore_index=UNLABELLED) for s in stages]
    return torch.stack(losses).mean()


def write_trajectories(
    name: str, data: Path, out: Path, *, seed: int, epochs: int = EPOCHS
) -> None:
    """Trains every family on every fold, and writes one npz."""
    videos, classes = load_dataset(name, data)
    num_folds = 2 if name == "cholec80" else 3
    folds = fold_of_groups([v.group for v in videos], num_folds)
    fold_V = [folds[v.group] for v in videos]
    drawn = {(v.id, k): swapped_order(v, k) for v in videos for k in PLANTING_SEEDS}
    orders = {key: order_T for key, order_T in drawn.items() if order_T is not None}
    arrays: dict[str, Any] = {f"order{k}__{v}": order for (v, k), order in orders.items()}
    for family, arguments in FAMILIES.items():
        begun = time.perf_counter()
        spec = ModelSpec(
            name=family,
            arguments=arguments,
            num_features=videos[0].features_TD.shape[1],
            num_classes=len(classes),
        )
        kept: dict[str, list[npt.NDArray[np.float16]]] = {}
        for fold in range(num_folds):
            train = [v for v, f in zip(videos, fold_V, strict=True) if f != fold]
            held = [v for v, f in zip(videos, fold_V, strict=True) if f == fold]
            batch = 2 if name == "cholec80" else 1
            own_seed = seed * 100 + fold
            for model in trained_models(train, spec, batch=batch, seed=own_seed, epochs=epochs):
                for v in held:
                    kept.setdefault(f"logp__{family}__{v.id}", []).append(
                        predict(model, v.features_TD)
                    )
                    for k in [k for k in PLANTING_SEEDS if (v.id, k) in orders]:
                        moved_TD = v.features_TD[orders[v.id, k]]
                        kept.setdefault(f"swap{k}__{family}__{v.id}", []).append(
                            predict(model, moved_TD)
                        )
        arrays |= {key: np.stack(values) for key, values in kept.items()}
        right = [
            (arrays[f"logp__{family}__{v.id}"][-1].argmax(-1) == v.labels_T)[v.labels_T >= 0]
            for v in videos
        ]
        accuracy = np.concatenate(right).mean()
        print(f"{name} {family}: accuracy {accuracy:.3f}, {time.perf_counter() - begun:.0f} s")
    arrays |= {f"labels__{v.id}": v.labels_T for v in videos}
    arrays |= {f"features__{v.id}": v.features_TD.numpy() for v in videos}
    rate = fps(name) / EVERY.get(name, 1)
    (out / name).mkdir(parents=True, exist_ok=True)
    np.savez(
        out / name / f"seed{seed}.npz",
        ids=[v.id for v in videos],
        groups=[v.group for v in videos],
        folds=fold_V,
        fps=rate,
        classes=classes,
        families=list(FAMILIES),
        **arrays,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=READERS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.datasets:
        write_trajectories(
            name, arguments.data, arguments.out, seed=arguments.seed, epochs=arguments.epochs
        )


if __name__ == "__main__":
    main()
