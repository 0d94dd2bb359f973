"""Audit again under corrected labels: no model and no Ray, as trajectories hold no labels.

Each time makes a new audit beside the earlier ones, which stay as they are. It holds the scores of
the videos whose labels changed, and takes those of the others from the audits before. Thresholds
and scales are those of the first audit, so that what is left compares with what was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.data.layouts import corrected_labels
from csl_dist.errors import DataError
from csl_dist.flag.calibration import Calibration
from csl_dist.flag.record import put_record
from csl_dist.flag.rules import APPEARANCE, KindJudge, described, ranked, suspicious_spans
from csl_dist.score.formulas import late_probabilities, trajectory_scores
from csl_dist.score.store import ScoreStore
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.tables import put_table
from csl_dist.types import (
    UNLABELLED,
    Annotation,
    Flag,
    FloatArray,
    IntArray,
    PlantedError,
    Span,
    Split,
    array_fingerprint,
    runs_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelled:
    """What corrected labels changed."""

    before: Audit
    after: Audit
    corrections: pd.DataFrame
    """Spans whose label changed: the deciding score before and after, and whether it is below."""

    @property
    def resolved(self) -> pd.DataFrame:
        """Flags of before that no flag of now touches."""
        return _untouched(self.before.flags(), self.after.flags())

    @property
    def still_suspicious(self) -> pd.DataFrame:
        """Flags of now in the videos that were corrected, whether they are new or not."""
        flags = self.after.flags()
        return flags[flags.video.isin(self.after.record.changed)]

    @property
    def new(self) -> pd.DataFrame:
        """Flags of now that no flag of before touches."""
        return _untouched(self.after.flags(), self.before.flags())


def relabel(root: str, labels: Path) -> Relabelled:
    """Makes a new audit of a run under corrected labels in the dataset's own layout."""
    before = open_audit(root)
    changed = changed_annotations(before, labels)
    if not changed:
        raise DataError(
            f"the labels in {labels} are those of audit {before.revision} already; correct some, "
            "or give the folder that holds the corrected ones"
        )
    number = before.revisions[-1] + 1
    paths = before.paths.revision(number)
    for annotation in changed:
        _write_scores(before, annotation, ScoreStore(paths.scores))
    record = replace(
        before.record,
        labels=str(labels.absolute()),
        changed=tuple(annotation.video for annotation in changed),
        known_errors=_remaining(before.known_errors, changed, before.classes),
    )
    after = Audit(root, draft=(number, record))
    put_table(paths.root, paths.FLAGS, _flags(before, after, changed))
    corrections = _corrections(before, after, changed)
    put_table(paths.root, paths.CORRECTIONS, corrections)
    put_record(paths, record)
    return Relabelled(before=before, after=open_audit(root), corrections=corrections)


def changed_annotations(audit: Audit, labels: Path) -> list[Annotation]:
    """The held-out videos whose labels at a path differ from those that the audit saw."""
    dataset = corrected_labels(audit.config.dataset, audit.classes, audit.held_out_videos(), labels)
    changed = []
    for video in dataset.videos:
        seen = audit.annotation(video.id)
        # A derived video shows the same frames of the source, in another order.
        place_T = np.searchsorted(seen.times_T, seen.source_times_T)
        labels_T = dataset.labels(video, seen.timeline)[place_T]
        if not np.array_equal(labels_T, seen.labels_T):
            changed.append(replace(seen, labels_T=labels_T))
    return changed


def _write_scores(audit: Audit, annotation: Annotation, scores: ScoreStore) -> None:
    video, config = annotation.video, audit.config.score
    for scorer in audit.scorers:
        trajectory = audit.log_probabilities(video, scorer=scorer)
        class_weights_C = audit.class_weights(video, scorer=scorer)
        weights_C = class_weights_C if config.weighted else np.ones_like(class_weights_C)
        by_name = trajectory_scores(trajectory, annotation.labels_T, weights_C, config)
        scores.write_annotation(annotation, scorer, class_weights_C)
        unit = ScoreStore.unit(video, scorer, array_fingerprint(annotation.labels_T))
        scores.write(video, scorer, unit, by_name)


def _flags(before: Audit, after: Audit, changed: Sequence[Annotation]) -> pd.DataFrame:
    """Flags under the new labels; those of videos that did not change stay as they are."""
    audited = [a for a in changed if after.videos_by_id[a.video].split is Split.AUDIT]
    kept = before.flags()
    kept = kept[~kept.video.isin([annotation.video for annotation in audited])]
    judge = _judge(before.paths)
    made = ranked(flag for a in audited for flag in _flags_of(after, a, judge))
    parts = [part for part in (kept, made) if len(part)]
    table = pd.concat(parts) if parts else made
    order = ["score", "video", "start"]
    table = table.sort_values(order, ascending=[False, True, True], ignore_index=True)
    return table.assign(rank=np.arange(1, len(table) + 1))


def _flags_of(audit: Audit, annotation: Annotation, judge: KindJudge | None) -> list[Flag]:
    video, record = annotation.video, audit.record
    score_T = audit.deciding_score(video)
    spans = suspicious_spans(score_T, annotation, record.thresholds[video], audit.config.flag)
    framewise = record.framewise
    appearance_T = audit.score(video, APPEARANCE, scorer=framewise) if framewise else None
    trajectory = audit.log_probabilities(video, scorer=record.temporal)
    return described(
        spans,
        annotation,
        score_T=score_T,
        appearance_T=appearance_T,
        judge=judge,
        probability_of=partial(
            late_probabilities, trajectory, strategy=audit.config.score.checkpoints
        ),
        classes=audit.classes,
    )


def _judge(paths: RunPaths) -> KindJudge | None:
    return Calibration.from_json(paths.root.read_json(paths.CALIBRATION)).judge


def _corrections(before: Audit, after: Audit, changed: Sequence[Annotation]) -> pd.DataFrame:
    """Spans whose label changed, in the order of videos and frames."""
    rows = []
    for annotation in changed:
        video = annotation.video
        old_T = before.annotation(video).labels_T
        tau = after.record.thresholds.get(video, np.nan)
        was_T, is_T = before.deciding_score(video), after.deciding_score(video)
        # A span of one row has one label before, and one after.
        for span in runs_of(_pairs(old_T, annotation.labels_T)):
            old, new = int(old_T[span.start]), int(annotation.labels_T[span.start])
            if old != new:
                inside = slice(span.start, span.stop)
                score = _mean(is_T[inside])
                rows.append(
                    {
                        "video": video,
                        "start": span.start,
                        "stop": span.stop,
                        "start_seconds": float(annotation.times_T[span.start]),
                        "label": _name(before.classes, old),
                        "corrected": _name(before.classes, new),
                        "score_before": _mean(was_T[inside]),
                        "score_after": score,
                        "below_threshold": bool(score <= tau),
                    }
                )
    return pd.DataFrame(rows)


def _pairs(one_T: IntArray, other_T: IntArray) -> IntArray:
    """A number (T,) for each pair of labels, which are at least -1."""
    pairs_T: IntArray = (one_T + 1) * (int(other_T.max(initial=0)) + 2) + other_T + 1
    return pairs_T


def _mean(score_T: FloatArray) -> float:
    """NaN where no frame has a score."""
    known_T = score_T[~np.isnan(score_T)]
    return float(known_T.mean()) if len(known_T) else float("nan")


def _name(classes: tuple[str, ...], label: int) -> str:
    return "" if label == UNLABELLED else classes[label]


def _remaining(
    errors: Sequence[PlantedError], changed: Sequence[Annotation], classes: tuple[str, ...]
) -> tuple[PlantedError, ...]:
    """Known errors that the new labels do not fix."""
    labels = {annotation.video: annotation.labels_T for annotation in changed}

    def fixed(error: PlantedError) -> bool:
        if error.true_label is None or error.video not in labels:
            return False
        span_T = labels[error.video][error.span.start : error.span.stop]
        return bool((span_T == classes.index(error.true_label)).all())

    return tuple(error for error in errors if not fixed(error))


def _untouched(flags: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Flags that share no frame with any of the others."""
    spans = {
        video: [Span(a, b) for a, b in own[["start", "stop"]].to_numpy().tolist()]
        for video, own in others.groupby("video")
    }
    touched = [
        any(Span(row.start, row.stop).overlaps(other) for other in spans.get(row.video, ()))  # type: ignore[arg-type]
        for row in flags.itertuples()
    ]
    return flags[~np.array(touched, dtype=bool)]
