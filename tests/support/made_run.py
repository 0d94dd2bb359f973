"""A finished run, made without Ray or training: its checkpoints' opinions are written by hand.

Four videos of 30 s at 20 fps, sampled at 10: one trains, one validates, two are audited. The
models know the truth (a, then b, then c) but for noise. In `v2`, frames 120 to 159 are labelled c,
and are b.
"""

from pathlib import Path

import builder
import numpy as np
import numpy.typing as npt

from csl_dist.config import AuditConfig, FlagConfig, ManifestConfig, RunConfig, ScorerConfig
from csl_dist.pipeline import put_run
from csl_dist.training.inputs import Inputs, open_inputs

CLASSES = ("a", "b", "c")
NUM_FRAMES = 300
NUM_EPOCHS = 6
FPS = 10
SOURCE_FPS = 20
TRUE_LABELS = np.repeat([0, 1, 2], 100)
WRONG = slice(120, 160)
CLASS_WEIGHTS = np.array([0.5, 1.0, 2.0])
PAPERS_FLAGS = FlagConfig(
    rule="validation", scorer="transformer", score="csl_smoothed", min_frames=15
)
SPLITS = {"v0": "train", "v1": "val", "v2": "audit", "v3": "audit"}
HELD_OUT = ("v1", "v2", "v3")


def labels_of(video: str) -> npt.NDArray[np.int64]:
    labels = TRUE_LABELS.copy()
    if video == "v2":
        labels[WRONG] = 2
    return labels


def label_text(labels: npt.NDArray[np.int64]) -> str:
    return builder.label_text([CLASSES[label] for label in labels])


def write_dataset(folder: Path) -> None:
    """Real videos of a few pixels, whose brightness tells the frame."""
    num_pictures = NUM_FRAMES * SOURCE_FPS // FPS
    videos = []
    for video, split in SPLITS.items():
        brightness = [t * 255 // num_pictures for t in range(num_pictures)]
        pictures = builder.grey_pictures(brightness)
        builder.write_video(folder / f"{video}.mp4", pictures, fps=SOURCE_FPS)
        names_T = [CLASSES[label] for label in labels_of(video)]
        videos.append(
            builder.MadeVideo(id=video, split=split, names_T=names_T, source=f"{video}.mp4")
        )
    builder.write_manifest(folder, videos, fps=FPS, classes=CLASSES)
    wrong = f"v2,mislabel,{WRONG.start},{WRONG.stop},b"
    (folder / "errors.csv").write_text(f"video,kind,start,stop,true_label\n{wrong}\n")


def config_of(folder: Path, flag: FlagConfig = PAPERS_FLAGS) -> RunConfig:
    return RunConfig(
        root=str(folder / "run"),
        dataset=ManifestConfig(path=str(folder), truth=str(folder / "errors.csv"), fps=float(FPS)),
        scorers={
            "transformer": ScorerConfig(arguments={"preset": "tiny"}),
            "framewise": ScorerConfig(),
        },
        flag=flag,
        audit=AuditConfig(swapped_copies=0),
    )


def log_probabilities(video: str, scorer: str) -> npt.NDArray[np.float16]:
    """(E, T, C): what checkpoints that get better say of a video."""
    rng = np.random.default_rng([*video.encode(), *scorer.encode()])
    logits = rng.normal(0, 0.3, size=(NUM_EPOCHS, NUM_FRAMES, len(CLASSES)))
    sure = np.linspace(1, 4, NUM_EPOCHS)[:, None]
    logits[:, np.arange(NUM_FRAMES), TRUE_LABELS] += sure
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return logits.astype(np.float16)


def start_run(folder: Path, flag: FlagConfig = PAPERS_FLAGS) -> Inputs:
    """Writes the dataset, and a run that has its features and checkpoints, without weights."""
    write_dataset(folder)
    inputs = open_inputs(config_of(folder, flag))
    put_run(inputs)
    builder.write_features(inputs)
    for scorer in inputs.run.config.scorers:
        builder.write_checkpoints(
            inputs, scorer, NUM_EPOCHS, class_weights=CLASS_WEIGHTS.tolist(), with_weights=False
        )
    return inputs


def write_trajectory(inputs: Inputs, scorer: str, video: str) -> None:
    logp_ETC = log_probabilities(video, scorer)
    builder.write_trajectories(
        inputs,
        scorer,
        {video: NUM_FRAMES},
        lambda epoch: logp_ETC[epoch - 1],
        num_epochs=NUM_EPOCHS,
    )


def make_run(folder: Path, flag: FlagConfig = PAPERS_FLAGS) -> str:
    """Writes the dataset and the finished run; returns the run's root."""
    inputs = start_run(folder, flag)
    for scorer in inputs.run.config.scorers:
        for video in HELD_OUT:
            write_trajectory(inputs, scorer, video)
    builder.finish_run(inputs)
    return inputs.run.config.root
