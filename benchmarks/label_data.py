"""Label sequences of the real datasets that `benchmarks/lint.py` measures on.

Nothing of the data is part of the project; the folder is given on the command line.
"""

import csv
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from csl_dist.lint.sequences import LabelSequence, Step, steps_from_frames


def knot_tying(data: Path) -> Iterator[LabelSequence]:
    return _gestures(data / "jigsaws/knot_tying")


def needle_passing(data: Path) -> Iterator[LabelSequence]:
    return _gestures(data / "jigsaws/needle_passing")


def _gestures(root: Path) -> Iterator[LabelSequence]:
    """JIGSAWS: 1-based, inclusive frames at 30 Hz; touching lines of a gesture are one segment."""
    for path in sorted((root / "gestures").glob("*.txt")):
        length = np.load(root / "kinematics" / f"{path.stem}.npy", mmap_mode="r").shape[0]
        names = ["-"] * length
        for line in path.read_text().splitlines():
            start, stop, gesture = line.split()
            names[int(start) - 1 : int(stop)] = [gesture] * (int(stop) - int(start) + 1)
        yield LabelSequence(
            video=path.stem,
            steps=steps_from_frames(names[:length], fps=30, unlabelled={"-"}),
            file=str(path),
            seconds=length / 30,
            group=path.stem.split("_")[2],
            frame_seconds=1 / 30,
        )


def salads(data: Path) -> Iterator[LabelSequence]:
    """50Salads, mid-level classes at about 1 fps; two videos a person."""
    return _class_scores(data / "50salads/spatialcnn_svm_scores.npz", prefix="mid__", fps=1)


def gtea(data: Path) -> Iterator[LabelSequence]:
    """GTEA at about 5 fps: seven dishes by each of three or four people."""
    path = data / "gtea/gtea_spatialcnn_svm_scores.npz"
    return _class_scores(path, prefix="", fps=5)


def _class_scores(path: Path, *, prefix: str, fps: float) -> Iterator[LabelSequence]:
    arrays = np.load(path)
    for key in sorted(arrays):
        if not (key.startswith(prefix) and key.endswith("__labels")):
            continue
        video = key.removeprefix(prefix).removesuffix("__labels")
        labels = arrays[key]
        yield LabelSequence(
            video=video,
            steps=steps_from_frames([f"class {label}" for label in labels], fps=fps),
            file=f"{path}:{key}",
            seconds=len(labels) / fps,
            group=video[:2],
            frame_seconds=1 / fps,
        )


def native_salads(data: Path) -> Iterator[LabelSequence]:
    """The few MS-TCN ground-truth files of 50Salads, 30 fps."""
    root = data / "50salads/mstcn_groundTruth_sample/visualization"
    for path in sorted([*root.glob("rgb-*.txt"), *(root / "groundtruth").glob("*.txt")]):
        yield _frame_file(path, fps=30, group=path.stem.split("-")[1], procedure=None)


def breakfast(data: Path) -> Iterator[LabelSequence]:
    """Breakfast at 15 fps: ten dishes; the same performance is filmed by several cameras."""
    for path in sorted((data / "breakfast/groundTruth").glob("*.txt")):
        person, *_, dish = path.stem.split("_")
        yield _frame_file(path, fps=15, group=person, procedure=dish)


def _frame_file(path: Path, *, fps: float, group: str, procedure: str | None) -> LabelSequence:
    names = path.read_text().split()
    return LabelSequence(
        video=path.stem,
        steps=steps_from_frames(names, fps=fps),
        file=str(path),
        seconds=len(names) / fps,
        group=group,
        procedure=procedure,
        frame_seconds=1 / fps,
    )


def cholec80(data: Path) -> Iterator[LabelSequence]:
    """Phases at 1 fps; every video is another patient, surgeons are not told."""
    path = data / "cholec80/cholec80_phase_tool_1fps.npz"
    arrays = np.load(path)
    phases = [str(name) for name in arrays["phase_names"]]
    for number in range(1, 81):
        labels = arrays[f"phase_{number:02d}"]
        yield LabelSequence(
            video=f"video{number:02d}",
            steps=steps_from_frames([phases[label] for label in labels], fps=1),
            file=f"{path}:phase_{number:02d}",
            seconds=float(len(labels)),
            frame_seconds=1.0,
        )


def captaincook(data: Path) -> Iterator[LabelSequence]:
    """CaptainCook4D: steps in seconds, steps left out have negative times; a person is a group."""
    for sequence, _ in captaincook_with_errors(data):
        yield sequence


def captaincook_with_errors(data: Path) -> Iterator[tuple[LabelSequence, dict[Step, set[str]]]]:
    """Each recording with the tags that people gave to its steps; none for a normal recording."""
    root = data / "captaincook4d"
    with (root / "video_information.csv").open() as file:
        about = {row["recording_id"]: row for row in csv.DictReader(file)}
    path = root / "error_annotations.json"
    for recording in json.loads(path.read_text()):
        tags: dict[Step, set[str]] = {}
        for step in recording["step_annotations"]:
            if step["start_time"] >= 0:
                key = Step(
                    label=step["description"],
                    start_seconds=step["start_time"],
                    stop_seconds=step["end_time"],
                )
                tags[key] = {error["tag"] for error in step.get("errors", ())}
        video = recording["recording_id"]
        yield (
            LabelSequence(
                video=video,
                steps=tuple(tags),
                file=str(path),
                seconds=float(about[video]["duration(sec)"]) if video in about else None,
                group=about[video]["person_id"] if video in about else None,
                procedure=f"recipe {recording['activity_id']}",
            ),
            tags if recording["is_error"] else {},
        )


def poem(data: Path) -> Iterator[LabelSequence]:
    """POEM: 14 operations, each by three annotators."""
    for path in sorted((data / "poem").glob("*.anvil")):
        video, annotator = path.stem.rsplit("_", 1)
        steps = [
            Step(
                label=element.findtext("attribute", ""),
                start_seconds=float(element.attrib["start"]),
                stop_seconds=float(element.attrib["end"]),
            )
            for element in ElementTree.parse(path).getroot().iter("el")
        ]
        yield LabelSequence(
            video=video, steps=tuple(steps), file=str(path), annotator=annotator, procedure="poem"
        )


READERS: dict[str, Callable[[Path], Iterator[LabelSequence]]] = {
    "knot_tying": knot_tying,
    "needle_passing": needle_passing,
    "50salads": salads,
    "50salads_native": native_salads,
    "gtea": gtea,
    "cholec80": cholec80,
    "breakfast": breakfast,
    "captaincook4d": captaincook,
    "poem": poem,
}
