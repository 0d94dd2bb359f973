"""AuditStore: the audits of a run, each written once.

An audit is a folder of `audits/`. `audit.json` is put last: a folder without it is an audit that
was never finished, and is not shown. A finished audit is never written to again; metrics, which are
measured of it afterwards, are added. A number is used once, also when its audit is removed.
"""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from csl_dist.audit.frames import FrameScores, put_frames
from csl_dist.audit.seen import SeenLabels, seen_table
from csl_dist.errors import CslError, DamagedError, DataError, NotReadyError, damaged
from csl_dist.flag.calibration import AnyCalibration, calibration_from
from csl_dist.flag.decide import Decision
from csl_dist.flag.edits.conventions import Convention
from csl_dist.flag.edits.files import Exchange, exchanges
from csl_dist.flag.edits.labelled import LabelledVideo, segments_table, videos_of_table
from csl_dist.flag.record import FILES, AuditRecord
from csl_dist.flag.rules import with_all_columns
from csl_dist.predict.catalog import Locations, catalog_table, locations_in
from csl_dist.predict.published import Location
from csl_dist.score.store import ScoreStore
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.requests import at_once
from csl_dist.storage.run_file import put_videos, read_videos
from csl_dist.storage.spreadsheet import from_text
from csl_dist.storage.tables import csv_bytes, digest_of, put_table, read_table
from csl_dist.storage.url import Storage
from csl_dist.types import Annotation, Video


class AuditStore:
    """All audits of one run root."""

    def __init__(self, paths: RunPaths):
        self._paths = paths
        self._files: dict[int, dict[str, str]] = {}
        """Digests of the files of audits whose record was read; they never change."""

    def __repr__(self) -> str:
        return f"AuditStore({self._paths.audits.url!r})"

    def numbers(self) -> list[int]:
        """Finished audits, the first first; a single listing."""
        return self._with(RunPaths.AUDIT)

    def _with(self, *files: str) -> list[int]:
        keys = (key.split("/") for key in self._paths.audits.list_keys())
        found = {number for number, *rest in keys if rest and rest[-1] in files}
        return sorted(int(number) for number in found if re.fullmatch("[0-9]+", number))

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
        where = f"{folder.url}/{RunPaths.AUDIT}"

        def built(content: dict[str, Any]) -> AuditRecord:
            self._files[number] = dict(content.get(FILES, {}))
            return AuditRecord.from_json(content, where=where)

        return folder.read_json(RunPaths.AUDIT, built)

    def records(self) -> dict[int, AuditRecord]:
        numbers = self.numbers()
        return dict(zip(numbers, at_once(self.record, numbers), strict=True))

    def flags(self, number: int) -> pd.DataFrame:
        """The flags of an audit, worst first."""
        return with_all_columns(self._table(number, RunPaths.FLAGS))

    def below(self, number: int) -> pd.DataFrame:
        """What lies below the line, next to be looked at; empty by rules that know no such."""
        found = self._folder(number).exists(RunPaths.BELOW)
        return with_all_columns(self._table(number, RunPaths.BELOW) if found else pd.DataFrame())

    def frame_scores(self, number: int) -> FrameScores:
        """Scores that the rule `edits` gives frames."""
        return FrameScores(self._folder(number))

    def seen(self, number: int) -> SeenLabels | None:
        """Labels of all held-out videos; None of an audit of an earlier csl_dist."""
        table = self._table_or_none(number, RunPaths.SEEN)
        return None if table is None else SeenLabels(table)

    def locations(self, number: int) -> dict[str, dict[str, Location]]:
        """Where trajectories lay when the audit was made, by scorer; none where it is not told."""
        table = self._table_or_none(number, RunPaths.TRAJECTORIES)
        return {} if table is None else locations_in(table)

    def trained(self, number: int) -> list[LabelledVideo]:
        """Labels of the videos that were trained on, where the rule `edits` knew them."""
        if not self._folder(number).exists(RunPaths.TRAINED):
            return []
        return videos_of_table(self._table(number, RunPaths.TRAINED))

    def videos(self, number: int) -> list[Video]:
        digest = self._digests(number).get(RunPaths.VIDEO_LIST)
        return read_videos(self._folder(number), digest=digest)

    def calibration(self, number: int) -> AnyCalibration:
        return self._folder(number).read_json(RunPaths.CALIBRATION, calibration_from)

    def video_facts(self, number: int) -> pd.DataFrame | None:
        """What each audited video is as a whole; None of an audit of an earlier csl_dist."""
        return self._table_or_none(number, RunPaths.VIDEO_FACTS)

    def outliers(self, number: int) -> list[str]:
        """Videos that are far off as a whole."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.OUTLIERS):
            return []
        content = folder.read(RunPaths.OUTLIERS)
        if self._digests(number).get(RunPaths.OUTLIERS) not in (None, digest_of(content)):
            raise damaged(f"{folder.url}/{RunPaths.OUTLIERS}", "it is not what was written")
        try:
            table = pd.read_csv(io.BytesIO(content), dtype={"video": str})
            return [from_text(video) for video in table.video[table.outlier.astype(bool)]]
        except (AttributeError, KeyError, ValueError) as error:
            raise damaged(f"{folder.url}/{RunPaths.OUTLIERS}", error) from error

    def exchanges(self, number: int) -> list[Exchange]:
        """Pairs of videos that seem to have each other's labels."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.MIXED_UP):
            return []
        return folder.read_json(RunPaths.MIXED_UP, exchanges)

    def conventions(self, number: int) -> list[Convention]:
        """Disagreements that are the same in most videos, most places first."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.CONVENTIONS):
            return []
        return folder.read_json(
            RunPaths.CONVENTIONS, lambda c: [Convention(**told) for told in c["conventions"]]
        )

    def corrections(self, number: int) -> pd.DataFrame:
        """Spans whose label an audit corrected; empty where it did not."""
        folder = self._folder(number)
        if not folder.exists(RunPaths.CORRECTIONS):
            return pd.DataFrame()
        table = self._table(number, RunPaths.CORRECTIONS)
        # Earlier versions of csl_dist did not write it, and nothing is claimed of their spans.
        return table if "was_flagged" in table else table.assign(was_flagged=False)

    def metrics(self, number: int) -> dict[str, Any] | None:
        folder = self._folder(number)
        if not folder.exists(RunPaths.METRICS):
            return None
        return folder.read_json(RunPaths.METRICS, dict)

    def put_metrics(self, number: int, metrics: dict[str, Any]) -> None:
        self._folder(number).put_json(RunPaths.METRICS, metrics)

    def publish(
        self,
        record: AuditRecord,
        *,
        videos: Sequence[Video],
        decision: Decision,
        annotations: Iterable[Annotation],
        locations: Locations,
        trained: Sequence[LabelledVideo] = (),
        outliers: pd.DataFrame | None = None,
        corrections: pd.DataFrame | None = None,
    ) -> int:
        """Writes an audit whole, its record last; returns its number.

        `annotations` are those of all held-out videos.
        """
        number = self.next_number()
        folder = self._paths.audit(number)
        folder.delete_folder()  # what an interrupted command left
        put_videos(folder, videos)
        put_table(folder, RunPaths.FLAGS, decision.flags)
        put_table(folder, RunPaths.VIDEO_FACTS, decision.facts)
        put_table(folder, RunPaths.SEEN, seen_table(annotations))
        if any(locations.values()):
            put_table(folder, RunPaths.TRAJECTORIES, catalog_table(locations))
        folder.put(RunPaths.FLAGS_CSV, csv_bytes(decision.flags))
        folder.put_json(RunPaths.CALIBRATION, decision.calibration.as_json())
        if len(decision.below):
            put_table(folder, RunPaths.BELOW, decision.below)
        if trained:
            put_table(folder, RunPaths.TRAINED, segments_table(trained))
        if decision.frames:
            put_frames(folder, decision.frames)
        if decision.conventions:
            told = [asdict(convention) for convention in decision.conventions]
            folder.put_json(RunPaths.CONVENTIONS, {"conventions": told})
        if decision.mixed_up:
            folder.put_json(RunPaths.MIXED_UP, decision.mixed_up)
        if outliers is not None:
            folder.put(RunPaths.OUTLIERS, csv_bytes(outliers))
        if corrections is not None:
            put_table(folder, RunPaths.CORRECTIONS, corrections)
        keys = sorted(folder.list_keys())  # file systems list in an order of their own
        digests = at_once(lambda key: digest_of(folder.read(key)), keys)
        files = dict(zip(keys, digests, strict=True))
        folder.put_json(RunPaths.AUDIT, record.as_json() | {FILES: files})
        return number

    def damages(self, number: int) -> list[tuple[str, str]]:
        """Files of an audit that are not as they were written, each with what is wrong."""
        folder = self._folder(number)
        try:
            self.record(number)
            digests = self._digests(number)
        except CslError as error:
            return [(RunPaths.AUDIT, str(error))]
        found = []
        for key, written in digests.items():
            if not folder.exists(key):
                found.append((key, f"{folder.url}/{key} is gone"))
            elif digest_of(folder.read(key)) != written:
                found.append((key, f"{folder.url}/{key} is not as it was written"))
        try:
            self.metrics(number)
        except DamagedError as error:
            found.append((RunPaths.METRICS, str(error)))
        return found

    def repair(self, number: int, key: str) -> bool:
        """Writes what another file of an audit tells; otherwise removes what has to be made again.

        An audit that is removed keeps its number: decisions of reviewers are bound to that. Returns
        whether it is whole.
        """
        folder = self._paths.audit(number)
        if key == RunPaths.METRICS:
            folder.delete(key)
        elif key == RunPaths.FLAGS_CSV:
            folder.put(key, csv_bytes(self.flags(number)))
        elif folder.exists(RunPaths.AUDIT):
            self._remove_files(number, {"damaged": key})
        return key == RunPaths.FLAGS_CSV

    def remove(self, number: int) -> None:
        """Deletes an audit, and scores that no other audit has; its number stays taken."""
        records = self.records()
        if number not in records:
            known = ", ".join(map(str, records)) or "none"
            raise DataError(f"{self._paths.root.url} has no audit {number}; it has {known}")
        self._remove_files(number, {"made_from": records[number].made_from})
        kept = {
            ScoreStore.unit(video, scorer, made)
            for other, record in records.items()
            if other != number
            for scorer, videos in record.scores.items()
            for video, made in videos.items()
        }
        store = ScoreStore(self._paths.scores)
        store.remove(store.done() - kept)

    def _table(self, number: int, key: str) -> pd.DataFrame:
        return read_table(self._folder(number), key, digest=self._digests(number).get(key))

    def _table_or_none(self, number: int, key: str) -> pd.DataFrame | None:
        """A table that not every audit has; no request where the record tells that it has none."""
        digests, folder = self._digests(number), self._paths.audit(number)
        if key not in digests and (digests or not folder.exists(key)):
            return None
        return read_table(folder, key, digest=digests.get(key))

    def _digests(self, number: int) -> dict[str, str]:
        """Of an audit's other files, by their keys; none of an audit of an earlier csl_dist."""
        if number not in self._files:
            self._files[number] = self._folder(number).read_json(
                RunPaths.AUDIT, lambda content: dict(content.get(FILES, {}))
            )
        return self._files[number]

    def _remove_files(self, number: int, facts: dict[str, str]) -> None:
        folder = self._paths.audit(number)
        keys = folder.list_keys()
        folder.refuse_outside(keys)
        folder.put_json(RunPaths.REMOVED, facts)
        folder.delete(RunPaths.AUDIT)
        for key in keys:
            if key != RunPaths.REMOVED:
                folder.delete(key)

    def _folder(self, number: int) -> Storage:
        folder = self._paths.audit(number)
        if not folder.exists(RunPaths.AUDIT):
            raise NotReadyError(
                f"{self._paths.root.url} has no audit {number}; `csl audits` lists them"
            )
        return folder
