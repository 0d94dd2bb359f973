"""Whole trajectories as HDF5, for MATLAB and others: a group per video, written in blocks."""

from collections.abc import Iterator

import h5py
import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.score.formulas import trajectory_blocks
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.url import key_part
from csl_dist.types import Split

CHUNK_FRAMES = 128


def write_hdf5(audit: Audit, folder: OutputFolder, name: str) -> str:
    """For each video: `<scorer>/log_probability` (E, T, C), its epochs, and labels and seconds."""
    out, videos = folder.file(name), _audited(audit)
    with h5py.File(out, "w") as file:
        file.attrs["classes"] = list(audit.classes)
        for video in videos:
            group = file.create_group(key_part(video))
            annotation = audit.annotation(video)
            group.attrs["video"] = video
            group.create_dataset("label", data=annotation.labels_T)
            group.create_dataset("seconds", data=annotation.times_T)
            for scorer in audit.scorers:
                _write_trajectory(audit, group.create_group(key_part(scorer)), video, scorer)
    return f"trajectories of {len(videos)} videos in {out}"


def _write_trajectory(audit: Audit, group: h5py.Group, video: str, scorer: str) -> None:
    trajectory = audit.log_probabilities(video, scorer=scorer)
    num_checkpoints, num_frames, num_classes = trajectory.shape
    array = group.create_dataset(
        "log_probability",
        shape=trajectory.shape,
        dtype=np.float16 if audit.config.predict.dtype == "float16" else np.float32,
        chunks=(num_checkpoints, min(num_frames, CHUNK_FRAMES), num_classes),
    )
    for frames, logp_ETC in trajectory_blocks(trajectory):
        array[:, frames] = logp_ETC
    group.create_dataset("epoch", data=trajectory.epochs)
    for name in ("csl", "smoothed"):
        group.create_dataset(name, data=audit.score(video, name, scorer=scorer))


def _audited(audit: Audit) -> list[str]:
    return [video.id for video in audit.held_out_videos() if video.split is Split.AUDIT]


def trajectory_bytes(audit: Audit) -> Iterator[int]:
    """Bytes of each video's log-probabilities under all scorers, in half precision."""
    for video in _audited(audit):
        shapes = (audit.log_probabilities(video, scorer=scorer).shape for scorer in audit.scorers)
        yield sum(2 * int(np.prod(shape)) for shape in shapes)


HDF5 = Format(name="hdf5", suffix=".h5", write=write_hdf5, video_bytes=trajectory_bytes)
