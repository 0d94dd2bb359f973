"""Whole trajectories as HDF5, for MATLAB and others: a group per video, written in blocks."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.errors import DataError
from csl_dist.export.format import Format
from csl_dist.measures import PAPERS_SCORE
from csl_dist.score.formulas import trajectory_blocks
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.url import key_part
from csl_dist.types import Split
from csl_dist.words import counted

if TYPE_CHECKING:
    import h5py

CHUNK_FRAMES = 128


def write_hdf5(audit: Audit, folder: OutputFolder, name: str) -> str:
    """For each video: `<scorer>/log_probability` (E, T, C), its epochs, and labels and seconds."""
    import h5py  # noqa: F401  told before a file is opened; only this format needs it

    out, videos = folder.file(name), _audited(audit)
    if out.exists() and not out.is_file():
        raise DataError(f"{out} is no plain file, which HDF5 needs; name another one")
    with _KeptErrors(out, "w+") as disk:
        _write(audit, disk, videos)
    if disk.error is not None:
        out.unlink()
        raise disk.error
    return f"trajectories of {counted(len(videos), 'video')} in {out}"


class _KeptErrors(io.FileIO):
    """A file that keeps its first error to itself.

    HDF5 crashes the process when it closes a file that it could not write to, as on a full disk.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while left and self.error is None:
                left = left[super().write(left) :]
        except OSError as error:
            self.error = error
        return size

    def readinto(self, buffer: Any) -> int:
        """What could not be written is read as zeros."""
        whole = memoryview(buffer).cast("B")
        count = super().readinto(whole) or 0
        whole[count:] = bytes(len(whole) - count)
        return len(whole)


def _write(audit: Audit, disk: _KeptErrors, videos: list[str]) -> None:
    import h5py

    with h5py.File(disk, "w") as file:
        file.attrs["classes"] = list(audit.classes)
        for video in videos:
            if disk.error is not None:
                return
            group = file.create_group(key_part(video))
            annotation = audit.annotation(video)
            group.attrs["video"] = video
            group.attrs["source"] = audit.videos_by_id[video].source
            group.attrs["source_start"] = audit.videos_by_id[video].start_seconds
            group.create_dataset("label", data=annotation.labels_T)
            group.create_dataset("seconds", data=annotation.times_T)
            for scorer in audit.scorers:
                _write_trajectory(audit, group.create_group(key_part(scorer)), video, scorer)


def _write_trajectory(audit: Audit, group: "h5py.Group", video: str, scorer: str) -> None:
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
    for name, score in (("csl", "csl"), ("smoothed", PAPERS_SCORE)):
        group.create_dataset(name, data=audit.score(video, score, scorer=scorer))


def _audited(audit: Audit) -> list[str]:
    return [video.id for video in audit.held_out_videos() if video.split is Split.AUDIT]


def trajectory_bytes(audit: Audit) -> Iterator[int]:
    """Bytes of each video's log-probabilities under all scorers, in half precision."""
    for video in _audited(audit):
        shapes = (audit.log_probabilities(video, scorer=scorer).shape for scorer in audit.scorers)
        yield sum(2 * int(np.prod(shape)) for shape in shapes)


HDF5 = Format(name="hdf5", suffix=".h5", write=write_hdf5, video_bytes=trajectory_bytes)
