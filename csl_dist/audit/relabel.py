"""Audit again under corrected labels: no model and no Ray, as trajectories hold no labels.

Each time makes a new audit beside the earlier ones, by the same settings: thresholds and flags come
from the same function as those of `csl audit`. What the rule finds of planted errors is taken over.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.audit.revision import AuditStore
from csl_dist.data.layouts import corrected_labels
from csl_dist.data.splits import groups_of
from csl_dist.errors import DataError
from csl_dist.flag.decide import Decision, decide_by_edits, decide_by_threshold
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.edit_rule import labelled_videos
from csl_dist.flag.edits.files import Exchange
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.predict.published import Trajectory
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.score.table import SplitAnnotations
from csl_dist.score.task import Scoring
from csl_dist.storage.ledger import Unit
from csl_dist.storage.requests import at_once
from csl_dist.types import (
    Annotation,
    FloatArray,
    IntArray,
    PlantedError,
    Span,
    Split,
    Video,
    fingerprint,
    label_name,
    runs_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelled:
    """What corrected labels changed."""

    before: Audit
    after: Audit

    @property
    def corrections(self) -> pd.DataFrame:
        """Spans whose label changed: the deciding score before and after, and what became of them.

        `was_flagged`: a flag of before touches the span; `below_threshold`: nothing flags it now.
        """
        return self.after.corrections()

    @property
    def resolved(self) -> pd.DataFrame:
        """Flags of before that no flag of now touches."""
        return _untouched(self.before.flags(), self.after.flags())

    @property
    def still_suspicious(self) -> pd.DataFrame:
        """Flags of now in the videos that were corrected, whether they are new or not."""
        flags = self.after.flags()
        return flags[flags.video.isin(self.corrections.video)]

    @property
    def new(self) -> pd.DataFrame:
        """Flags of now that no flag of before touches."""
        return _untouched(self.after.flags(), self.before.flags())

    @property
    def settled_exchanges(self) -> list[Exchange]:
        """Videos that seemed to have each other's labels, and seem so no longer."""
        now = self.after.exchanges()
        return [exchange for exchange in self.before.exchanges() if exchange not in now]


class UnchangedLabelsError(DataError):
    """The newest audit has these labels already: there is nothing to make."""


def relabel(root: str, labels: Path) -> Relabelled:
    """Makes a new audit of a run under corrected labels in the dataset's own layout."""
    before = open_audit(root)
    record = before.record
    changed = changed_annotations(before, labels)
    if not changed:
        raise UnchangedLabelsError(
            f"the labels in {labels} are those of audit {before.revision} already; correct some, "
            "or give the folder that holds the corrected ones"
        )
    versions = {scorer: dict(made) for scorer, made in record.scores.items()}
    done = ScoreStore(before.paths.scores).done()
    for annotation in changed:
        for scorer in before.scorers:
            versions[scorer][annotation.video] = _write_scores(before, annotation, scorer, done)
    annotations = _annotations(before, changed)
    store = AuditStore(before.paths)
    trained = store.trained(before.revision)
    decision = _decided_again(before, versions, annotations, trained)
    after = replace(
        record,
        made_from=fingerprint(record.made_from, versions),
        created=time.time(),
        scores=versions,
        thresholds=decision.thresholds,
        scales=decision.scales,
        known_errors=_remaining(before.known_errors, changed, before.classes),
        labels=record.labels | {a.video: str(labels.absolute()) for a in changed},
        corrects=before.revision,
        rule_version=decision.rule_version,
        num_reviewed=decision.num_reviewed,
    )
    number = store.publish(
        after,
        videos=list(before.videos_by_id.values()),
        decision=decision,
        annotations=[a for own in annotations.values() for a in own],
        locations=store.locations(before.revision),
        trained=trained,
        corrections=_corrections(before, changed, decision.flags),
    )
    return Relabelled(before=before, after=open_audit(root, revision=number))


def _decided_again(
    before: Audit,
    versions: Versions,
    annotations: SplitAnnotations,
    trained: Sequence[LabelledVideo],
) -> Decision:
    """What the rule of an audit, by its own calibration, makes of other labels."""
    calibration, classes = before.calibration(), before.classes
    assert calibration is not None, "every audit has one"

    def trajectory_of(scorer: str, video: str) -> Trajectory:
        return before.log_probabilities(video, scorer=scorer)

    if not isinstance(calibration, EditCalibration):
        return decide_by_threshold(
            ScoreStore(before.paths.scores),
            versions,
            annotations,
            before.settings,
            calibration,
            trajectory_of,
            classes=classes,
        )
    everyone = [a for part in annotations.values() for a in part]
    held_out = labelled_videos(everyone, groups_of(before.held_out_videos()))
    return decide_by_edits(
        annotations[Split.AUDIT],
        held_out,
        OtherLabels([*trained, *held_out], num_classes=len(classes)),
        trajectory_of,
        calibration,
        before.settings.flag,
        classes=classes,
    )


def _annotations(audit: Audit, changed: Sequence[Annotation]) -> dict[Split, list[Annotation]]:
    """The labels of all held-out videos, with some corrected."""
    new = {annotation.video: annotation for annotation in changed}
    videos: dict[Split, list[str]] = {Split.AUDIT: [], Split.VAL: []}
    for video in audit.held_out_videos():
        videos[video.split].append(video.id)
    return {
        split: at_once(lambda video: new.get(video) or audit.annotation(video), own)
        for split, own in videos.items()
    }


def changed_annotations(audit: Audit, labels: Path) -> list[Annotation]:
    """The held-out videos whose labels at a path differ from those that the audit saw."""
    dataset = corrected_labels(audit.config.dataset, audit.classes, audit.held_out_videos(), labels)

    def corrected(video: Video) -> Annotation | None:
        seen = audit.annotation(video.id)
        # A derived video shows the same frames of the source, in another order.
        place_T = np.searchsorted(seen.times_T, seen.source_times_T)
        labels_T = dataset.labels(video, seen.timeline)[place_T]
        if np.array_equal(labels_T, seen.labels_T):
            return None
        return replace(seen, labels_T=labels_T)

    return [found for found in at_once(corrected, dataset.videos) if found is not None]


def _write_scores(audit: Audit, annotation: Annotation, scorer: str, done: set[Unit]) -> str:
    """Scores of a video under its corrected labels, unless they are done; their version."""
    trajectory = audit.log_probabilities(annotation.video, scorer=scorer)
    scoring = Scoring(
        store=ScoreStore(audit.paths.scores),
        scorer=scorer,
        class_weights_C=audit.class_weights(annotation.video, scorer=scorer),
        config=audit.settings.score,
    )
    made = scoring.version(annotation, trajectory.fingerprint)
    if ScoreStore.unit(annotation.video, scorer, made) not in done:
        scoring.write(annotation, made, scoring.by_name(annotation, trajectory))
    return made


def _corrections(before: Audit, changed: Sequence[Annotation], flags: pd.DataFrame) -> pd.DataFrame:
    """Spans whose label changed, in the order of videos and frames.

    By a rule without thresholds a span counts as below where no flag of now touches it.
    """
    rows = []
    earlier = before.flags()
    for annotation in changed:
        video = annotation.video
        old_T = before.annotation(video).labels_T
        # On the scale of the audit before, so that the two compare.
        tau = before.record.thresholds.get(video, np.nan)
        flagged_before, flagged = (
            _spans(table[table.video == video]) for table in (earlier, flags)
        )
        was_T, is_T = _scores_of_change(before, annotation)
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
                        "label": label_name(old, before.classes),
                        "corrected": label_name(new, before.classes),
                        "score_before": _mean(was_T[inside]),
                        "score_after": score,
                        "was_flagged": any(span.overlaps(flag) for flag in flagged_before),
                        "below_threshold": (
                            bool(score <= tau)
                            if before.record.thresholds
                            else not any(span.overlaps(flag) for flag in flagged)
                        ),
                    }
                )
    return pd.DataFrame(rows)


def _scores_of_change(before: Audit, annotation: Annotation) -> tuple[FloatArray, FloatArray]:
    """What decides on flags (T,), under the labels before and the corrected ones; NaN where only
    videos to audit have that."""
    if not before.has_deciding_score(annotation.video):
        unknown_T = np.full(annotation.num_frames, np.nan)
        return unknown_T, unknown_T
    labels_T = annotation.labels_T
    return (
        before.deciding_score(annotation.video),
        before.deciding_score(annotation.video, labels=labels_T),
    )


def _pairs(one_T: IntArray, other_T: IntArray) -> IntArray:
    """A number (T,) for each pair of labels, which are at least -1."""
    pairs_T: IntArray = (one_T + 1) * (int(other_T.max(initial=0)) + 2) + other_T + 1
    return pairs_T


def _mean(score_T: FloatArray) -> float:
    """NaN where no frame has a score."""
    known_T = score_T[~np.isnan(score_T)]
    return float(known_T.mean()) if len(known_T) else float("nan")


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


def _spans(flags: pd.DataFrame) -> list[Span]:
    return [Span(a, b) for a, b in flags[["start", "stop"]].to_numpy().tolist()]


def _untouched(flags: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Flags that share no frame with any of the others."""
    spans = {video: _spans(own) for video, own in others.groupby("video")}
    touched = [
        any(Span(row.start, row.stop).overlaps(other) for other in spans.get(row.video, ()))  # type: ignore[arg-type]
        for row in flags.itertuples()
    ]
    return flags[~np.array(touched, dtype=bool)]
