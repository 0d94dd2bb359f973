"""AuditStore: the audits of a run, each written once.

An audit is a folder of `audits/`. `audit.json` is put last: a folder without it is an audit that
was never finished, and is not shown. A finished audit is never written to again; metrics, which are
measured of it afterwards, are added. A number is used once, also when its audit is removed.
"""

import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from csl_dist.errors import DataError, NotReadyError, StorageError
from csl_dist.flag.calibration import AnyCalibration, calibration_from
from csl_dist.flag.decide import Decision
from csl_dist.flag.edits.conventions import Convention
from csl_dist.flag.edits.labelled import LabelledVideo, segments_table, videos_of_table
from csl_dist.flag.record import AuditRecord
from csl_dist.flag.rules import with_all_columns
from csl_dist.score.store import ScoreStore
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import put_videos, read_videos
from csl_dist.storage.tables import put_table, read_table
from csl_dist.storage.url import Storage, at_once, key_part
from csl_dist.storage.zarr import ChunkReader, create_array
from csl_dist.types import FloatArray, Video


class AuditStore:
    """All audits of one run root."""

    def __init__(self, paths: RunPaths):
        self._paths = paths

    def __repr__(self) -> str:
        return f"AuditStore({self._paths.audits.url!r})"

    def numbers(self) -> list[int]:
        """Finished audits, the first first; a single listing."""
        return self._with(RunPaths.AUDIT)

    def _with(self, *files: str) -> list[int]:
        keys = (key.split("/") for key in self._paths.audits.list_keys())
        return sorted({int(number) for number, *rest in keys if rest and rest[-1] in files})

    def newest(self) -> int | None:
        return max(self.numbers(), default=None)

    def newest_of_dataset(self) -> tuple[int, AuditRecord | None]:
        """The newest audit of the dataset's own labels, not of corrected ones; 0 for none."""
        for number in reversed(self.numbers()):
            record = self.record(number)
            if record.corrects is None:
                return number, record
        return 0, None

    def next_number(self) -> int:
        """The number of an audit to come: above all that were ever finished, removed ones too."""
        return max(self._with(RunPaths.AUDIT, RunPaths.REMOVED), default=0) + 1

    def record(self, number: int) -> AuditRecord:
        folder = self._folder(number)
        content = folder.read_json(RunPaths.AUDIT)
        try:
            return AuditRecord.from_json(content, where=f"{folder.url}/{RunPaths.AUDIT}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StorageError(
                f"{folder.url}/{RunPaths.AUDIT} is damaged ({error}); remove it with "
                f"`csl audits rm {self._paths.root.url} {number}` and run `csl audit`"
            ) from error

    def records(self) -> dict[int, AuditRecord]:
        numbers = self.numbers()
        return dict(zip(numbers, at_once(self.record, numbers), strict=True))

    def flags(self, number: int) -> pd.DataFrame:
        """The flags of an audit, worst first."""
        return with_all_columns(read_table(self._folder(number), RunPaths.FLAGS))

    def below(self, number: int) -> pd.DataFrame:
        """What lies below the line, next to be looked at; empty by rules that know no such."""
        folder = self._folder(number)
        found = folder.exists(RunPaths.BELOW)
        return with_all_columns(read_table(folder, RunPaths.BELOW) if found else pd.DataFrame())

    def frame_scores(self, number: int, video: str) -> FloatArray:
        """Scores (2, T) that the rule `edits` gives frames, as in `measures.FRAME_SCORES`."""
        return ChunkReader(self._folder(number), frames_key(video)).read(0, 0)

    def trained(self, number: int) -> list[LabelledVideo]:
        """Labels of the videos that were trained on, where the rule `edits` knew them."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.TRAINED):
            return []
        return videos_of_table(read_table(folder, RunPaths.TRAINED))

    def videos(self, number: int) -> list[Video]:
        return read_videos(self._folder(number))

    def calibration(self, number: int) -> AnyCalibration:
        return calibration_from(self._folder(number).read_json(RunPaths.CALIBRATION))

    def outliers(self, number: int) -> list[str]:
        """Videos that are far off as a whole."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.OUTLIERS):
            return []
        content = io.BytesIO(folder.read(RunPaths.OUTLIERS))
        table = pd.read_csv(content, dtype={"video": str})
        return table.video[table.outlier].tolist()

    def mixed_up(self, number: int) -> dict[str, str]:
        """Videos that seem to have each other's labels, each with the other."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.MIXED_UP):
            return {}
        videos: dict[str, str] = folder.read_json(RunPaths.MIXED_UP)
        return videos

    def conventions(self, number: int) -> list[Convention]:
        """Disagreements that are the same in most videos, most places first."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.CONVENTIONS):
            return []
        return [Convention(**told) for told in folder.read_json(RunPaths.CONVENTIONS)]

    def corrections(self, number: int) -> pd.DataFrame:
        """Spans whose label an audit corrected; empty where it did not."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.CORRECTIONS):
            return pd.DataFrame()
        return read_table(folder, RunPaths.CORRECTIONS)

    def metrics(self, number: int) -> dict[str, Any] | None:
        folder = self._folder(number)
        if not folder.exists(RunPaths.METRICS):
            return None
        metrics: dict[str, Any] = folder.read_json(RunPaths.METRICS)
        return metrics

    def put_metrics(self, number: int, metrics: dict[str, Any]) -> None:
        self._folder(number).put_json(RunPaths.METRICS, metrics)

    def publish(
        self,
        record: AuditRecord,
        *,
        videos: Sequence[Video],
        decision: Decision,
        trained: Sequence[LabelledVideo] = (),
        outliers: pd.DataFrame | None = None,
        corrections: pd.DataFrame | None = None,
    ) -> int:
        """Writes an audit whole, its record last; returns its number."""
        number = self.next_number()
        folder = self._paths.audit(number)
        folder.delete_folder()  # what an interrupted command left
        put_videos(folder, videos)
        put_table(folder, RunPaths.FLAGS, decision.flags)
        folder.put(RunPaths.FLAGS_CSV, decision.flags.to_csv(index=False).encode())
        folder.put_json(RunPaths.CALIBRATION, decision.calibration.as_json())
        if len(decision.below):
            put_table(folder, RunPaths.BELOW, decision.below)
        if trained:
            put_table(folder, RunPaths.TRAINED, segments_table(trained))
        at_once(lambda video: put_frames(folder, video, decision.frames[video]), decision.frames)
        if decision.conventions:
            told = [asdict(convention) for convention in decision.conventions]
            folder.put_json(RunPaths.CONVENTIONS, told)
        if decision.mixed_up:
            folder.put_json(RunPaths.MIXED_UP, decision.mixed_up)
        if outliers is not None:
            folder.put(RunPaths.OUTLIERS, outliers.to_csv(index=False).encode())
        if corrections is not None:
            put_table(folder, RunPaths.CORRECTIONS, corrections)
        folder.put_json(RunPaths.AUDIT, record.as_json())
        return number

    def remove(self, number: int) -> None:
        """Deletes an audit, and scores that no other audit has; its number stays taken."""
        records = self.records()
        if number not in records:
            known = ", ".join(map(str, records)) or "none"
            raise DataError(f"{self._paths.root.url} has no audit {number}; it has {known}")
        folder = self._paths.audit(number)
        folder.put_json(RunPaths.REMOVED, {"made_from": records[number].made_from})
        folder.delete(RunPaths.AUDIT)
        for key in folder.list_keys():
            if key != RunPaths.REMOVED:
                folder.delete(key)
        kept = {
            ScoreStore.unit(video, scorer, made)
            for other, record in records.items()
            if other != number
            for scorer, videos in record.scores.items()
            for video, made in videos.items()
        }
        store = ScoreStore(self._paths.scores)
        store.remove(store.done() - kept)

    def _folder(self, number: int) -> Storage:
        folder = self._paths.audit(number)
        if not folder.exists(RunPaths.AUDIT):
            raise NotReadyError(
                f"{self._paths.root.url} has no audit {number}; `csl audits` lists them"
            )
        return folder


def frames_key(video: str) -> str:
    return f"{RunPaths.FRAMES}/{key_part(video)}"


def put_frames(folder: Storage, video: str, scores: FloatArray) -> None:
    """Writes scores (2, T) of a video's frames into an audit."""
    array = create_array(
        folder, frames_key(video), shape=scores.shape, chunks=scores.shape, dtype="float32"
    )
    array[:] = scores
