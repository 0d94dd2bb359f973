"""The embedded dataset: real mp4 files of handwritten digits in the `manifest` layout.

A video walks through seven phases, each shown by one digit class; some phases may be left out, one
may come back. About half the frames, in bursts, show digits that occur in every phase, so that a
frame by itself often does not tell its phase, as in real procedures. Audit and validation videos
use digit images that training never shows. The same seed gives the same labels and pixels.
"""

import csv
from dataclasses import dataclass, field
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

from csl_dist.data.placing import Amount
from csl_dist.data.planted import Corruption, disorder, mislabel
from csl_dist.types import ErrorKind, IntArray, PlantedError, Split

PHASES = ("setup", "access", "explore", "isolate", "remove", "rinse", "close")
OPTIONAL_PHASES = (2, 5)
"""Indices of phases that a video may leave out."""
RETURNING_PHASE = 3
"""Index of the phase that may come once more after the next one."""
SHARED_DIGITS = (7, 8, 9)
"""Digits that look alike in every phase."""

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSpec:
    """Size and difficulty of the embedded dataset."""

    num_videos: dict[Split, int] = field(
        default_factory=lambda: {Split.TRAIN: 40, Split.VAL: 10, Split.AUDIT: 20}
    )
    """Half of the audit videos get mislabelled spans, the other half swapped phases."""
    phase_frames: tuple[int, int] = (12, 40)
    """Inclusive bounds of a phase's length."""
    mislabelled: Amount = field(default_factory=lambda: Amount(rate=0.15, lengths=(15, 40)))
    """Of an audit video's frames."""
    shared_share: float = 0.5
    """Share of frames that look alike in every phase."""
    size: int = 64
    """Side of a frame in pixels."""
    fps: int = 10
    seed: int = 7


def write_demo(folder: Path, spec: DemoSpec = DemoSpec()) -> None:  # noqa: B008
    """Writes videos, labels, `classes.txt`, `errors.csv`, and `manifest.csv` last."""
    if (folder / "manifest.csv").exists():
        return
    for name in ("videos", "labels"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    pools = _digit_pools(spec.seed)
    rows: list[dict[str, object]] = []
    errors: list[PlantedError] = []
    for split, count in spec.num_videos.items():
        for index in range(count):
            video_id = f"{split}{index + 1:02d}"
            # Seeded per video, so that a video does not depend on how many came before it.
            rng = np.random.default_rng([spec.seed, list(Split).index(split), index])
            frames, labels_T, planted = _make_video(video_id, pools[split], rng, spec, index)
            errors += planted
            _write_video(folder / "videos" / f"{video_id}.mp4", frames, fps=spec.fps)
            names = [PHASES[label] for label in labels_T]
            (folder / "labels" / f"{video_id}.txt").write_text("\n".join(names) + "\n")
            rows.append(
                {
                    "id": video_id,
                    "source": f"videos/{video_id}.mp4",
                    "labels": f"labels/{video_id}.txt",
                    "split": split,
                    "fps": spec.fps,
                }
            )
    (folder / "classes.txt").write_text("\n".join(PHASES) + "\n")
    _write_errors(folder / "errors.csv", errors)
    with (folder / "manifest.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _make_video(
    video_id: str,
    pool: dict[int, Pixels],
    rng: np.random.Generator,
    spec: DemoSpec,
    index: int,
) -> tuple[list[Pixels], IntArray, list[PlantedError]]:
    """Frames, labels as annotated, and what is wrong with them."""
    true_T = _script(rng, spec)
    frames = _draw(true_T, pool, rng, spec)
    if not video_id.startswith(Split.AUDIT):
        return frames, true_T, []
    corruption: Corruption
    if index < spec.num_videos[Split.AUDIT] // 2:
        corruption = mislabel(true_T, rng, num_classes=len(PHASES), amount=spec.mislabelled)
    else:
        corruption = disorder(true_T, rng)
    errors = [
        PlantedError(
            video=video_id,
            kind=corruption.kind,
            span=span,
            true_label=(
                PHASES[true_T[span.start]] if corruption.kind is ErrorKind.MISLABEL else None
            ),
        )
        for span in corruption.spans
    ]
    return [frames[t] for t in corruption.order_T], corruption.labels_T, errors


def _script(rng: np.random.Generator, spec: DemoSpec) -> IntArray:
    """The true phase of every frame."""
    phases = [p for p in range(len(PHASES)) if p not in OPTIONAL_PHASES or rng.random() < 0.8]
    if rng.random() < 0.3:
        place = phases.index(RETURNING_PHASE) + 2
        phases.insert(place, RETURNING_PHASE)
    low, high = spec.phase_frames
    lengths = rng.integers(low, high + 1, size=len(phases))
    return np.repeat(phases, lengths)


def _draw(
    phases_T: IntArray, pool: dict[int, Pixels], rng: np.random.Generator, spec: DemoSpec
) -> list[Pixels]:
    """One RGB frame per entry: a digit that drifts, under changing light, with noise."""
    shared_T = _bursts(len(phases_T), rng, share=spec.shared_share)
    tint = rng.uniform(0.85, 1.0, size=3)
    light_T = 0.8 + 0.2 * np.sin(np.arange(len(phases_T)) / rng.uniform(15, 40))
    drift = rng.normal(0, 0.3, size=(len(phases_T), 2)).cumsum(axis=0)
    frames = []
    shot_left, digit = 0, None
    for t, phase in enumerate(phases_T):
        cut = t > 0 and (phase != phases_T[t - 1] or shared_T[t] != shared_T[t - 1])
        if digit is None or shot_left == 0 or cut:
            name = int(rng.choice(SHARED_DIGITS)) if shared_T[t] else int(phase)
            digit = pool[name][rng.integers(len(pool[name]))]
            shot_left = int(rng.integers(2, 6))
        shot_left -= 1
        frames.append(_frame(digit, drift[t], light_T[t] * tint, rng, size=spec.size))
    return frames


def _bursts(length: int, rng: np.random.Generator, *, share: float) -> npt.NDArray[np.bool_]:
    """Alternating bursts of 4 to 12 frames; in the mean, `share` of the frames are True."""
    mask: list[bool] = []
    state = bool(rng.random() < share)
    while len(mask) < length:
        mean = 2 * (share if state else 1 - share)
        mask += [state] * max(1, round(mean * int(rng.integers(4, 13))))
        state = not state
    return np.array(mask[:length])


def _frame(
    digit: Pixels,
    drift: npt.NDArray[np.float64],
    light: npt.NDArray[np.float64],
    rng: np.random.Generator,
    *,
    size: int,
) -> Pixels:
    """A `size` x `size` RGB picture of an 8 x 8 digit, enlarged to 3/4 of the side."""
    side = size * 3 // 4
    picture = np.full((size, size), 24.0)
    room = size - side
    top, left = (int(np.clip(room / 2 + d, 0, room)) for d in drift)
    picture[top : top + side, left : left + side] = _enlarge(digit, side)
    rgb = picture[..., None] * light + rng.normal(0, 6, size=(size, size, 3))
    return np.clip(rgb, 0, 255).astype(np.uint8)


def _enlarge(digit: Pixels, side: int) -> npt.NDArray[np.float64]:
    """Bilinear enlargement of a digit whose values run from 0 to 16."""
    at = np.linspace(0, 7, side)
    low = np.minimum(at.astype(int), 6)
    part = at - low
    values = digit.astype(float) * (231 / 16) + 24
    rows = values[low] * (1 - part)[:, None] + values[low + 1] * part[:, None]
    enlarged: npt.NDArray[np.float64] = rows[:, low] * (1 - part) + rows[:, low + 1] * part
    return enlarged


def _digit_pools(seed: int) -> dict[Split, dict[int, Pixels]]:
    """Digit images by class, disjoint between training, validation and audit."""
    from sklearn.datasets import load_digits  # scikit-learn takes a second to import

    digits = load_digits()
    rng = np.random.default_rng(seed)
    part = rng.choice(3, size=len(digits.target), p=[0.5, 0.2, 0.3])
    return {
        split: {
            name: digits.images[(part == i) & (digits.target == name)].astype(np.uint8)
            for name in range(10)
        }
        for i, split in enumerate(Split)
    }


def _write_video(path: Path, frames: list[Pixels], *, fps: int) -> None:
    """Encodes H.264 that browsers play; one thread, so that the bytes do not vary."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=fps, options={"crf": "18", "preset": "ultrafast", "threads": "1"}
        )
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for pixels in frames:
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _write_errors(path: Path, errors: list[PlantedError]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["video", "kind", "start", "stop", "true_label"])
        for e in errors:
            writer.writerow([e.video, e.kind, e.span.start, e.span.stop, e.true_label or ""])
