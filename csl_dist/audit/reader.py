"""Audit: read what a run has found, from its root alone.

Reading needs no Ray, no model and no dataset, and writes nothing. A run in progress can be read
too: `missing` says what it lacks, and what is asked for and not there yet is a NotReadyError.
What decides on flags, and what that would be under other labels, is read by `deciding`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from csl_dist.audit.deciding import DecidingScores
from csl_dist.audit.notebook import Flags, audit_html
from csl_dist.audit.revision import AuditStore
from csl_dist.audit.seen import SeenLabels, order_of_classes, seen_table
from csl_dist.audit.stored import StoredVideos
from csl_dist.data.layouts import listed_in
from csl_dist.errors import DataError, NotReadyError, nearest
from csl_dist.flag.calibration import AnyCalibration
from csl_dist.flag.edits.conventions import Convention
from csl_dist.flag.edits.files import Exchange
from csl_dist.flag.facts import FACT_COLUMNS, frame_facts
from csl_dist.flag.record import AuditRecord
from csl_dist.measures import (
    FRAME_SCORES,
    PAPERS_SCORE,
    SCORE_NAMES,
)
from csl_dist.predict.published import Trajectory
from csl_dist.score.formulas import chosen_rows, late_classes
from csl_dist.score.settings import AuditSettings
from csl_dist.score.under import LabelledTrajectory, Labels, class_ids
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import read_run_file, read_run_videos
from csl_dist.storage.url import Storage
from csl_dist.strategies import Strategy
from csl_dist.types import (
    FLAGGED_KINDS,
    Annotation,
    FloatArray,
    IntArray,
    PlantedError,
    Split,
    Video,
)

if TYPE_CHECKING:
    import xarray as xr

MAX_ORDERING = 50
"""Videos whose labels tell in which order steps come."""


def open_audit(root: str, *, revision: int | None = None) -> "Audit":
    """An audit of a run root, a path or URL: the newest finished one, or that of a number."""
    return Audit(root, revision=revision)


class Audit:
    """The findings of one audit; the last used files are kept open.

    A run that has no finished audit yet can be read as far as it is.
    """

    def __init__(self, root: str, *, revision: int | None = None):
        self.paths = RunPaths(Storage(root))
        self._audits = AuditStore(self.paths)
        run = read_run_file(root)
        self.revisions = self._audits.numbers()
        """Numbers of all finished audits of the run."""
        if revision is not None and revision not in self.revisions:
            known = ", ".join(map(str, self.revisions)) or "none"
            raise DataError(f"{root} has no audit number {revision}; it has {known}")
        self.revision = revision or max(self.revisions, default=0)
        """The number of this audit; 0 where the run has none yet."""
        self._record = self._audits.record(self.revision) if self.revision else None
        if self._record is None:
            self.config, self.classes = run.config, run.classes
            videos = read_run_videos(self.paths.root)
        else:
            # The root may have been moved or copied since.
            self.config = replace(self._record.config, root=run.config.root)
            self.classes = self._record.classes
            videos = self._audits.videos(self.revision)
        self.videos_by_id = {video.id: video for video in videos}
        self._stored = StoredVideos(
            self._audits,
            self.revision,
            self._record,
            self.paths,
            config=self.config.score,
            videos=[video.id for video in self.held_out_videos()],
            scorers=self.scorers,
        )

    def __repr__(self) -> str:
        num_videos = len(self.held_out_videos())
        return f"Audit({self.paths.root.url!r}, {num_videos} videos, revision {self.revision})"

    def _repr_html_(self) -> str:
        videos = [v for v in self.held_out_videos() if v.split is Split.AUDIT]
        facts = {
            "run": self.paths.root.url,
            "audit": f"{self.revision} of {len(self.revisions)}" if self.revision else "none yet",
            "videos": f"{len(videos):,}",
            "classes": ", ".join(self.classes),
            "scorers": ", ".join(self.scorers),
        }
        rests_on = [self.rests_on] if self.rests_on else []
        told = [*self.missing(), *rests_on, *(exchange.sentence() for exchange in self.exchanges())]
        return audit_html(facts, self.flags() if self.has_flags else None, told)

    @property
    def record(self) -> AuditRecord:
        """What decided on the flags; NotReadyError where there are none yet."""
        if self._record is None:
            raise NotReadyError(f"{self.paths.root.url} has no flags yet; run `csl audit`")
        return self._record

    def output_folder(self, path: Path) -> OutputFolder:
        """A folder to write findings to: never onto what the audit was made from or consists of."""
        videos = self.videos_by_id.values()
        files = (file for video in videos for file in (video.labels, video.source) if file)
        own = self.paths.own(self.config.scorers)
        return OutputFolder(path, [*listed_in(self.config.dataset), *files], own)

    @property
    def settings(self) -> AuditSettings:
        """What the audit was decided by; NotReadyError where there are no flags yet."""
        return self.record.settings

    @property
    def has_flags(self) -> bool:
        """Whether the run has come as far as that."""
        return self._record is not None

    @property
    def rests_on(self) -> str | None:
        """How much an early audit rests on, in a sentence; None where it is all checkpoints."""
        sweep = self._record.sweep if self._record is not None else None
        return f"audit {self.revision} {sweep.sentence()}" if sweep is not None else None

    @property
    def scorers(self) -> list[str]:
        return list(self.config.scorers)

    @property
    def scorer(self) -> str:
        """The scorer that is meant where none is named: the one that explains flags."""
        if self.has_flags:
            return self.settings.temporal
        named = self.config.flag.scorer
        return named if named in self.scorers else self.scorers[0]

    @property
    def known_errors(self) -> tuple[PlantedError, ...]:
        """Label errors whose place is known: planted, listed, or annotated."""
        return self.record.known_errors

    def held_out_videos(self) -> list[Video]:
        """Videos that checkpoints are evaluated on: those to audit, and those for the threshold."""
        wanted = (Split.AUDIT, Split.VAL)
        return [video for video in self.videos_by_id.values() if video.split in wanted]

    def video(self, video: str) -> Video:
        """A video that is scored; DataError where the run has none such."""
        return self.videos_by_id[self._known(video)]

    def missing(self) -> list[str]:
        """What a run without an audit lacks, a sentence each; empty where there is one."""
        if self._record is not None:
            return []
        return [*self._stored.missing(), "there are no flags yet"]

    def videos(self) -> pd.DataFrame:
        """The audited videos, worst first; NaN where a video has no score yet.

        `worst` and `mean` are of the score that decides on flags, over the video's frames.
        """
        flags = self.flags() if self.has_flags else pd.DataFrame({"video": []})
        facts = self._audits.video_facts(self.revision) if self.has_flags else None
        if facts is None:
            audited = (v.id for v in self.held_out_videos() if v.split is Split.AUDIT)
            facts = pd.DataFrame(
                [(video, *self._video_facts(video)) for video in audited],
                columns=list(FACT_COLUMNS),
            )
        num_flags = facts.video.map(flags.video.value_counts()).fillna(0).astype(int)
        table = facts.assign(flags=num_flags)[[*FACT_COLUMNS[:3], "flags", *FACT_COLUMNS[3:]]]
        return table.sort_values(["worst", "video"], ascending=[False, True], ignore_index=True)

    def flags(
        self,
        *,
        top: int | None = None,
        video: str | None = None,
        label: str | None = None,
        kind: str | None = None,
        min_score: float | None = None,
        from_seconds: float | None = None,
        to_seconds: float | None = None,
        below: bool = False,
    ) -> Flags:
        """Flagged spans, worst first; those that fit all that is given, the first `top` of them.

        A label is the annotated or the suggested one; a time range is touched, not enclosed.
        `below`: what lies below the line instead, next to be looked at; only by the rule `edits`.
        """
        table = self._below if below else self._flags
        if video is not None:
            table = table[table.video == self._known(video)]
        if label is not None:
            self.known_class(label)
            table = table[(table.label == label) | (table.suggested == label)]
        if kind is not None:
            if kind not in FLAGGED_KINDS:
                known = nearest(kind, FLAGGED_KINDS)
                raise DataError(f"there is no kind {kind!r} of flag; {known}")
            table = table[table.kind == kind]
        if min_score is not None:
            table = table[table.score >= min_score]
        if from_seconds is not None:
            table = table[table.stop_seconds > from_seconds]
        if to_seconds is not None:
            table = table[table.start_seconds < to_seconds]
        return Flags(table.head(top if top is not None else len(table)).reset_index(drop=True))

    @cached_property
    def _flags(self) -> pd.DataFrame:
        self.record  # noqa: B018  says so where there are none yet
        return self._audits.flags(self.revision)

    @cached_property
    def _below(self) -> pd.DataFrame:
        self.record  # noqa: B018
        return self._audits.below(self.revision)

    def conventions(self) -> list[Convention]:
        """Disagreements that are the same in most videos: told once, and not among the flags."""
        return self._audits.conventions(self.revision) if self.revision else []

    def exchanges(self) -> list[Exchange]:
        """Pairs of videos that seem to have each other's labels: told once, flagged nowhere."""
        return self._audits.exchanges(self.revision) if self.revision else []

    def corrections(self) -> pd.DataFrame:
        """Spans whose label this audit corrected; empty where it corrected none."""
        return self._audits.corrections(self.revision) if self.revision else pd.DataFrame()

    def calibration(self) -> AnyCalibration | None:
        """What the rule finds of planted errors; None before there are flags."""
        return self._deciding.calibration if self.revision else None

    def metrics(self) -> dict[str, Any] | None:
        """How well known errors were found; None where none are known, or it was not measured."""
        return self._audits.metrics(self.revision) if self.revision else None

    def scores(self, video: str, *, scorer: str | None = None) -> pd.DataFrame:
        """Every stored score of a video and the one that decides, a row a frame.

        Higher is more suspicious. By the rule `edits` it is `suspicion` that decides, which only
        videos to audit have; by others the score of the column `deciding`.
        """
        scorer = self._scorer(scorer)
        annotation = self.annotation(video, scorer=scorer)
        names = self._stored.score_names(video, scorer)
        columns = {name: self._stored.score(video, scorer, name) for name in names}
        classes = np.array([*self.classes, ""], dtype=object)
        return pd.DataFrame(
            {
                "frame": np.arange(annotation.num_frames),
                "seconds": annotation.times_T,
                "label": classes[annotation.labels_T],
                **columns,
                **self._deciding.by_name(video),
            }
        )

    def score(
        self, video: str, name: str, *, labels: Labels | None = None, scorer: str | None = None
    ) -> FloatArray:
        """One score (T,) of a video, smoothed as its name ends; NaN on frames without a label.

        `suspicion` and `order` are of all scorers together, where the rule of the audit is `edits`.
        Under other `labels`, only frames whose label differs are computed anew.
        """
        if name in FRAME_SCORES:
            return self._deciding.frame_score(self._known(video), name, self._given(video, labels))
        if name not in SCORE_NAMES:
            known = nearest(name, (*SCORE_NAMES, *FRAME_SCORES))
            raise DataError(f"there is no score {name!r}; {known}")
        return self._stored.named_score(
            self._known(video), self._scorer(scorer), name, self._given(video, labels)
        )

    def deciding_score(self, video: str, *, labels: Labels | None = None) -> FloatArray:
        """The score (T,) behind the flags: `suspicion`, or what is compared with a threshold.

        Under other `labels`, suspicion of frames that changed is only how much models prefer yet
        another label; what else speaks against these labels, the next audit tells.
        """
        return self._deciding.score(self._known(video), self._given(video, labels))

    def has_deciding_score(self, video: str) -> bool:
        """Whether a video has one: by the rule `edits` those to audit alone."""
        return self._deciding.is_known(self._known(video))

    @cached_property
    def _deciding(self) -> DecidingScores:
        return DecidingScores(self._audits, self.revision, self.record, self._stored)

    def _given(self, video: str, labels: Labels | None) -> IntArray | None:
        return None if labels is None else self.label_ids(labels, video)

    def annotation(self, video: str, *, scorer: str | None = None) -> Annotation:
        """The labels and times of a video's frames, as this audit saw them."""
        return self._annotated(video, scorer)[0]

    def csl(
        self,
        video: str,
        *,
        labels: Labels | None = None,
        checkpoints: Strategy | None = None,
        weighted: bool | None = None,
        scorer: str | None = None,
    ) -> FloatArray:
        """CSL (T,) of a video: under its labels, or others, over the checkpoints of a strategy.

        `checkpoints` and `weighted` None are as the run has them. Frames without a label have NaN.
        """
        own = self.config.score
        is_stored = checkpoints in (None, own.checkpoints) and weighted in (None, own.weighted)
        if labels is None and is_stored:
            return self.score(video, "csl", scorer=scorer)
        return self.under(
            video,
            checkpoints=own.checkpoints if checkpoints is None else checkpoints,
            labels=labels,
            weighted=weighted,
            scorer=scorer,
        ).csl()

    def trajectory(
        self,
        video: str,
        *,
        frames: slice | int | None = None,
        labels: Labels | None = None,
        weighted: bool | None = None,
        scorer: str | None = None,
    ) -> FloatArray:
        """Losses (E, frames) of a video's labels, or of other `labels` of all its frames."""
        return self.under(
            video, frames=frames, labels=labels, weighted=weighted, scorer=scorer
        ).loss()

    def under(
        self,
        video: str,
        *,
        frames: slice | int | None = None,
        checkpoints: Strategy = "full",
        labels: Labels | None = None,
        weighted: bool | None = None,
        scorer: str | None = None,
    ) -> LabelledTrajectory:
        """Loss, CSL, margin and prediction of frames at checkpoints, under their labels or others.

        `checkpoints` is a strategy's name or a tuple of epochs; `labels` are those of all frames.
        """
        scorer = self._scorer(scorer)
        trajectory = self.log_probabilities(video, scorer=scorer)
        span = _frame_range(frames, trajectory.shape[1], video)
        if labels is not None:
            labels_T = class_ids(labels, self.classes, video, trajectory.shape[1])
        elif self._seen is not None and video in self._seen:
            labels_T = self._seen.labels(video)
        else:
            labels_T = self.annotation(video, scorer=scorer).labels_T
        return LabelledTrajectory(
            trajectory=trajectory,
            labels_T=labels_T[span.start : span.stop],
            weights_C=self._stored.loss_weights(video, scorer, weighted),
            start=span.start,
            rows=chosen_rows(trajectory.epochs, checkpoints),
        )

    def log_probabilities(self, video: str, *, scorer: str | None = None) -> Trajectory:
        """The stored trajectory of a video, which is read as asked for and knows no labels."""
        return self._stored.trajectory(self._known(video), self._scorer(scorer))

    def predicted(self, video: str, *, scorer: str | None = None) -> IntArray:
        """The likeliest class (T,) over the later half of the training, whatever the labels."""
        trajectory = self.log_probabilities(video, scorer=scorer)
        own = self.config.score
        return late_classes(trajectory, own.checkpoints, window=own.window)

    @cached_property
    def class_order(self) -> list[int]:
        """All class ids in the order in which the steps of these videos come, on average."""
        annotations = self._stored_annotations(self.held_out_videos()[:MAX_ORDERING])
        return order_of_classes((a.labels_T for a in annotations), len(self.classes))

    def to_xarray(
        self, video: str, *, frames: slice | int | None = None, scorer: str | None = None
    ) -> "xr.DataArray":
        """Log-probabilities with named dimensions: checkpoint, frame, class."""
        scorer = self._scorer(scorer)
        trajectory = self.log_probabilities(video, scorer=scorer)
        span = _frame_range(frames, trajectory.shape[1], video)
        annotation = self.annotation(video, scorer=scorer)
        names = np.array([*self.classes, ""])
        import xarray as xr  # takes as long as all else together

        return xr.DataArray(
            trajectory.read(span.start, span.stop),
            dims=("checkpoint", "frame", "class"),
            coords={
                "checkpoint": trajectory.epochs,
                "frame": np.arange(span.start, span.stop),
                "class": list(self.classes),
                "seconds": ("frame", annotation.times_T[span.start : span.stop]),
                "label": ("frame", names[annotation.labels_T[span.start : span.stop]]),
            },
            name="log_probability",
            attrs={"video": video, "scorer": scorer, "fold": trajectory.fold},
        )

    def label_ids(self, labels: Labels, video: str) -> IntArray:
        """Class ids (T,) of labels of all of a video's frames; DataError where they do not fit."""
        return class_ids(labels, self.classes, video, self.annotation(video).num_frames)

    def class_weights(self, video: str, *, scorer: str | None = None) -> FloatArray:
        """Weights (C,) of the loss when the scorer behind a video was trained."""
        return self._annotated(video, scorer)[1]

    def labels_from(self, video: str) -> str | None:
        """Where a video's corrected labels came from; None for the dataset's own."""
        return self.record.labels.get(self._known(video))

    def _annotated(self, video: str, scorer: str | None) -> tuple[Annotation, FloatArray]:
        scorer = self._scorer(scorer)
        return self._stored.annotated(self._known(video), scorer)

    @cached_property
    def seen(self) -> SeenLabels:
        """Labels of all videos that are scored so far."""
        return self._seen or SeenLabels(
            seen_table(self._stored_annotations(self.held_out_videos()))
        )

    @cached_property
    def _seen(self) -> SeenLabels | None:
        """The same where the audit has them in one place."""
        return self._audits.seen(self.revision) if self.revision else None

    def _stored_annotations(self, videos: Sequence[Video]) -> Iterator[Annotation]:
        """Of those videos that have come as far as that."""
        for video in videos:
            with suppress(NotReadyError):
                yield self.annotation(video.id)

    def _video_facts(self, video: str) -> tuple[float, float, float, float]:
        try:
            annotation = self.annotation(video)
            score_T = (
                self.deciding_score(video) if self.has_flags else self.score(video, PAPERS_SCORE)
            )
        except NotReadyError:
            return np.nan, np.nan, np.nan, np.nan
        return frame_facts(annotation, score_T)

    def _scorer(self, scorer: str | None) -> str:
        if scorer is not None and scorer not in self.scorers:
            names = ", ".join(self.scorers)
            raise DataError(f"there is no scorer {scorer!r}; the run has {names}")
        return scorer or self.scorer

    def known_class(self, name: str) -> str:
        """The name of a class; DataError with the nearest one where there is none such."""
        if name not in self.classes:
            raise DataError(f"the run has no class {name!r}; {nearest(name, self.classes)}")
        return name

    def _known(self, video: str) -> str:
        if video not in self.videos_by_id:
            known = [v.id for v in self.held_out_videos()]
            raise DataError(f"the run has no video {video!r}; {nearest(video, known)}")
        if self.videos_by_id[video].split is Split.TRAIN:
            raise DataError(f"video {video!r} is trained on, so that it has no scores")
        return video


def _frame_range(frames: slice | int | None, num_frames: int, video: str) -> range:
    """The frames that are meant; a range, as only whole ranges are stored together."""
    if isinstance(frames, int):
        frames = slice(frames, frames + 1)
    frames = frames or slice(None)
    span = range(*frames.indices(num_frames))
    if span.step != 1 or not span:
        ends = ":".join("" if end is None else str(end) for end in (frames.start, frames.stop))
        raise DataError(f"frames {ends} are not a range within 0:{num_frames} of {video!r}")
    return span
