"""A finished run, made without Ray or training: its checkpoints' opinions are written by hand.

Four videos of 30 s at 20 fps, sampled at 10: one trains, one validates, two are audited. The
models know the truth (a, then b, then c) but for noise. In `v2`, frames 120 to 159 are labelled c,
and are b.
"""

from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from csl_dist.config import AuditConfig, FlagConfig, ManifestConfig, RunConfig, ScorerConfig
from csl_dist.flag.publish import publish_verdict
from csl_dist.flag.stage import write_flags
from csl_dist.predict.trajectories import Group
from csl_dist.run import Run, open_run, write_run_file
from csl_dist.score.formulas import trajectory_scores
from csl_dist.storage.ledger import Unit
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.types import Annotation, Split

CLASSES = ("a", "b", "c")
NUM_FRAMES = 300
NUM_EPOCHS = 6
FPS = 10
SOURCE_FPS = 20
TRUE_LABELS = np.repeat([0, 1, 2], 100)
WRONG = slice(120, 160)
CLASS_WEIGHTS = np.array([0.5, 1.0, 2.0])
PAPERS_FLAGS = FlagConfig(scorer="transformer", score="csl_smoothed", min_frames=15)
SPLITS = {"v0": "train", "v1": "val", "v2": "audit", "v3": "audit"}


def labels_of(video: str) -> npt.NDArray[np.int64]:
    labels = TRUE_LABELS.copy()
    if video == "v2":
        labels[WRONG] = 2
    return labels


def label_text(labels: npt.NDArray[np.int64]) -> str:
    return "\n".join(CLASSES[label] for label in labels) + "\n"


def write_dataset(folder: Path) -> None:
    """Real videos of a few pixels, whose brightness tells the frame."""
    rows = []
    for video, split in SPLITS.items():
        write_video(folder / f"{video}.mp4")
        (folder / f"{video}.txt").write_text(label_text(labels_of(video)))
        rows.append(f"{video},{video}.mp4,{video}.txt,{split},{FPS}")
    (folder / "classes.txt").write_text("\n".join(CLASSES) + "\n")
    (folder / "manifest.csv").write_text("\n".join(["id,source,labels,split,fps", *rows, ""]))
    wrong = f"v2,mislabel,{WRONG.start},{WRONG.stop},b"
    (folder / "errors.csv").write_text(f"video,kind,start,stop,true_label\n{wrong}\n")


def write_video(path: Path) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=SOURCE_FPS, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        num_frames = NUM_FRAMES * SOURCE_FPS // FPS
        for t in range(num_frames):
            pixels = np.full((32, 32, 3), t * 255 // num_frames, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


def config_of(folder: Path, flag: FlagConfig) -> RunConfig:
    return RunConfig(
        root=str(folder / "run"),
        dataset=ManifestConfig(path=str(folder), truth=str(folder / "errors.csv"), fps=FPS),
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


def annotation_of(video: str) -> Annotation:
    return Annotation(
        video=video,
        labels_T=labels_of(video),
        times_T=np.arange(NUM_FRAMES) / FPS,
        source_fps=float(SOURCE_FPS),
        duration=NUM_FRAMES / FPS,
    )


def write_checkpoints(run: Run, scorer: str) -> None:
    """What checkpoints say of themselves; they hold no weights."""
    run.layout.fold(scorer, 0).put_json(run.layout.TRAINING, {"training": "made"})
    store = CheckpointStore(run.layout.checkpoints(scorer, 0, "made"))
    for epoch in range(1, NUM_EPOCHS + 1):
        info = CheckpointInfo(
            scorer=scorer,
            fold=0,
            epoch=epoch,
            model=run.model_spec(scorer),
            classes=CLASSES,
            class_weights=tuple(CLASS_WEIGHTS.tolist()),
            train_ids=("v0",),
            encoder=run.features.encoder,
            training="made",
            metrics={"train_loss": 1 / epoch},
        )
        store.save(info, {}, {})


def write_trajectory(run: Run, scorer: str, video: str) -> None:
    group = Group(fold=0, videos=(video,), lengths=(NUM_FRAMES,), fingerprint=video)
    units = {
        epoch: Unit(f"{group.key}/epoch-{epoch:04d}", f"made{epoch}")
        for epoch in range(1, NUM_EPOCHS + 1)
    }
    store = run.trajectories(scorer)
    store.create_rows(group, units, num_classes=len(CLASSES), dtype="float16")
    for epoch, unit in units.items():
        store.write_row(group, epoch, unit, log_probabilities(video, scorer)[epoch - 1])
    store.compact(group, units)


def write_scores(run: Run, scorer: str, video: str) -> None:
    annotation = annotation_of(video)
    trajectory = run.trajectories(scorer).trajectory(video)
    by_name = trajectory_scores(trajectory, annotation.labels_T, CLASS_WEIGHTS, run.config.reduce)
    run.scores.write_annotation(annotation, scorer, CLASS_WEIGHTS)
    run.scores.write(video, scorer, run.scores.unit(video, scorer, "made"), by_name)


class MadeRun(Run):
    """A run whose labels need no features."""

    def split_annotations(self, split: Split) -> list[Annotation]:
        return [annotation_of(video) for video, own in SPLITS.items() if own == split]

    def known_errors(self):  # type: ignore[no-untyped-def]
        from csl_dist.data.layouts import read_errors

        return read_errors(str(self.config.dataset.truth))


def open_made_run(folder: Path, flag: FlagConfig) -> Run:
    run = open_run(config_of(folder, flag))
    return MadeRun(run.config, run.layout, run.dataset, run.features, run.sources, run.planted)


def make_run(folder: Path, flag: FlagConfig = PAPERS_FLAGS) -> str:
    """Writes the dataset and the finished run; returns the run's root."""
    write_dataset(folder)
    run = open_made_run(folder, flag)
    write_run_file(run)
    for scorer in run.config.scorers:
        write_checkpoints(run, scorer)
        for video, split in SPLITS.items():
            if split != "train":
                write_trajectory(run, scorer, video)
                write_scores(run, scorer, video)
    write_flags(run)
    publish_verdict(run)
    return run.config.root
