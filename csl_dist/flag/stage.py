"""From stored scores to an audit: flags, how far to trust them, and videos that are far off."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from operator import itemgetter
from typing import Any

import pandas as pd
import ray

from csl_dist.audit.revision import AuditStore
from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.session import connect, get_all
from csl_dist.cluster.stage import Stage
from csl_dist.config import AuditConfig, RunConfig
from csl_dist.data.splits import groups_of
from csl_dist.flag.calibrate import threshold_calibration
from csl_dist.flag.decide import (
    THRESHOLDS_VERSION,
    Decision,
    decide_by_edits,
    decide_by_threshold,
)
from csl_dist.flag.edit_findings import VideoFindings
from csl_dist.flag.edit_rule import (
    RULE_VERSION,
    EachVideo,
    TrajectoryOf,
    VideoLook,
    labelled_videos,
    learnt_edits,
    one_by_one,
)
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.record import AuditRecord, Sweep
from csl_dist.flag.settled import is_settled
from csl_dist.flag.task import findings_of
from csl_dist.predict.checkpoints import skipped_checkpoints
from csl_dist.predict.plan import trajectory_catalog
from csl_dist.review.store import judged_spans, own_database, store_of
from csl_dist.review.verdicts import verdicts_of
from csl_dist.score.formulas import outlying_videos
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.storage.paths import RunPaths
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import flag_scorer, framewise_scorer, temporal_scorer
from csl_dist.types import Annotation, PlantedError, Split, array_fingerprint, fingerprint

FRAMES_ALONE = 200_000
"""Frames of all audited videos up to which the driver looks at them itself."""
VIDEOS_PER_TASK = 16
MOST_TASKS = 256
"""About so many tasks: waiting for each of more takes the driver longer than it gains."""
MAX_NAMED = 20
"""Videos that a sentence names."""


def flag(stage: Stage, versions: Versions, *, sweep: Sweep | None = None) -> int:
    """Flags suspicious spans of the scores given; the number of the audit that holds them.

    An audit of the very same labels, trajectories and settings is there already: no other is made.
    `sweep`: how much of the trajectories is there, unless it is all.
    """
    _tell_unread_reviews(stage)
    store = AuditStore(stage.run.paths)
    made_from = audit_fingerprint(stage.inputs, versions)
    number, record = store.newest_of_dataset()
    if record is None or record.made_from != made_from:
        number = make_audit(
            stage.inputs, versions, made_from, sweep=sweep, each=partial(_on_workers, stage)
        )
    stage.say(f"audit {number}: {len(store.flags(number))} spans to review")
    newest = store.newest()
    if newest != number:
        stage.say(
            f"these labels were audited before, as audit {number}; `csl query`, the report and the "
            f"page show audit {newest}, whose labels were corrected by `csl relabel`"
        )
    stage.say(f"calibration: {store.calibration(number).sentence()}")
    for convention in store.conventions(number):
        stage.say(f"convention: {convention.sentence()}")
    for exchange in store.exchanges(number):
        stage.say(exchange.sentence())
    outliers = store.outliers(number)
    if outliers:
        more = f" and {len(outliers) - MAX_NAMED} more" if len(outliers) > MAX_NAMED else ""
        names = ", ".join(outliers[:MAX_NAMED])
        stage.say(f"videos far off as a whole (another one's labels?): {names}{more}")
    return number


def _tell_unread_reviews(stage: Stage) -> None:
    """Says which decisions of reviewers do not count."""
    config = stage.run.config
    named = config.audit.reviews
    if named is None or not config.flag.by_edits:
        return
    if not store_of(config.root, named).may_exist():
        stage.say(f"audit.reviews: {named} is not there yet, so that no decision counts")
    root = stage.run.paths.root
    own = own_database(root.url)
    if root.exists(RunPaths.REVIEWS) and named != own:
        stage.say(f"audit.reviews: only decisions in {named} count, not those in {own}")


def sweep_of(inputs: Inputs, unpredicted: Versions, checkpoints: tuple[int, int]) -> Sweep | None:
    """What an audit says of some checkpoints, of so many; None where these are all.

    `unpredicted` are the versions that scores would have without trajectories.
    """
    done, total = checkpoints
    if done == total:
        return None
    trainings = [
        [scorer, fold.index, record and record.training]
        for scorer in inputs.run.config.scorers
        for fold in inputs.run.dataset.folds
        for record in [inputs.checkpoints.current(scorer, fold.index)]
    ]
    asked = fingerprint(audit_fingerprint(inputs, unpredicted), trainings)
    return Sweep(checkpoints=done, of=total, asked=asked, settled=False)


def settings_of(config: RunConfig) -> AuditSettings:
    """What an audit of this config decides by."""
    return AuditSettings(
        scorers=tuple(config.scorers),
        scorer=flag_scorer(config),
        temporal=temporal_scorer(config),
        framewise=framewise_scorer(config),
        score=config.score,
        flag=config.flag,
    )


def audit_fingerprint(inputs: Inputs, versions: Versions) -> str:
    """Changes with labels, classes, trajectories, splits, and all settings that decide on flags."""
    run = inputs.run
    return fingerprint(
        versions,
        {video.id: video.split for video in run.dataset.videos},
        list(run.dataset.classes),
        settings_of(run.config),
        [run.config.corrupt, _audited_as(run.config.audit)],
        [str(error) for error in _known_errors(inputs)],
        skipped_checkpoints(inputs),
        *_rests_on(inputs),
    )


def _audited_as(config: AuditConfig) -> dict[str, Any]:
    """The section without the place of reviews, as it is what they say that counts."""
    return {name: value for name, value in asdict(config).items() if name != "reviews"}


def _rests_on(inputs: Inputs) -> list[Any]:
    """The rule itself, and of `edits` also the labels of training videos, and reviewers."""
    config = inputs.run.config
    if not config.flag.by_edits:
        return [THRESHOLDS_VERSION]
    trained = inputs.labels.in_split(Split.TRAIN)
    labels = {a.video: array_fingerprint(a.labels_T) for a in trained}
    judged = judged_spans(config.root, config.audit.reviews)
    return [RULE_VERSION, labels, sorted(judged.items(), key=itemgetter(0))]


def _on_workers(
    stage: Stage, look: VideoLook, audited: Sequence[Annotation]
) -> list[VideoFindings]:
    """Looks at many videos at once; a few are done sooner than workers have started."""
    if sum(annotation.num_frames for annotation in audited) < FRAMES_ALONE:
        return one_by_one(look, audited)
    connect(verbose=stage.verbose)
    # In a list, so that each worker reads it once: it holds every video's labels.
    shared = [ray.put(look)]
    size = max(VIDEOS_PER_TASK, len(audited) // MOST_TASKS)
    parts = [audited[i : i + size] for i in range(0, len(audited), size)]
    task = ray.remote(findings_of)
    futures = [task.remote(shared, part) for part in parts]
    with progress_bar(stage.console, "flag: videos", total=len(audited)) as bar:
        left = dict(zip(futures, map(len, parts), strict=True))
        while left:
            ready, _ = ray.wait(list(left))
            get_all(ready)
            bar.advance(sum(left.pop(future) for future in ready))
    return [findings for part in get_all(futures) for findings in part]


def make_audit(
    inputs: Inputs,
    versions: Versions,
    made_from: str,
    *,
    sweep: Sweep | None = None,
    each: EachVideo = one_by_one,
) -> int:
    """Makes and publishes an audit; returns its number."""
    run, settings = inputs.run, settings_of(inputs.run.config)
    scores = ScoreStore(run.paths.scores)
    store = AuditStore(run.paths)
    newest = store.newest()
    known = store.locations(newest) if newest else {}
    trajectory_of = trajectory_catalog(inputs, settings.scorers, known)
    annotations = {split: inputs.labels.in_split(split) for split in (Split.AUDIT, Split.VAL)}
    trained: list[LabelledVideo] = []
    if settings.flag.by_edits:
        trained = labels_in(inputs, Split.TRAIN)
        decision = _decided_by_edits(inputs, settings, store, trained, trajectory_of, each)
    else:
        decision = decide_by_threshold(
            scores,
            versions,
            annotations,
            settings,
            threshold_calibration(inputs, versions, settings),
            trajectory_of,
            classes=run.dataset.classes,
        )
    record = AuditRecord(
        made_from=made_from,
        created=time.time(),
        config=run.config,
        settings=settings,
        classes=run.dataset.classes,
        scores=versions,
        thresholds=decision.thresholds,
        scales=decision.scales,
        known_errors=tuple(_known_errors(inputs)),
        skipped=skipped_checkpoints(inputs),
        sweep=sweep and _compared(store, sweep, decision.flags),
        rule_version=decision.rule_version,
        num_reviewed=decision.num_reviewed,
    )
    made = {v: versions[settings.temporal][v] for v in run.dataset.audited_ids()}
    return store.publish(
        record,
        videos=run.dataset.videos,
        decision=decision,
        annotations=[a for own in annotations.values() for a in own],
        locations=trajectory_of.locations,
        trained=trained,
        outliers=outlying_videos(scores.usual_csl(made, settings.temporal)),
    )


def _decided_by_edits(
    inputs: Inputs,
    settings: AuditSettings,
    store: AuditStore,
    trained: list[LabelledVideo],
    trajectory_of: TrajectoryOf,
    each: EachVideo,
) -> Decision:
    """What the rule learns of errors planted in held-out videos, and makes of those to audit.

    Labels of videos that are `trained` on and not audited tell of order, too.
    """
    run, classes = inputs.run, inputs.run.dataset.classes
    held_out = labels_in(inputs, Split.AUDIT, Split.VAL)
    others = OtherLabels([*trained, *held_out], num_classes=len(classes))
    learnt = learnt_edits(
        held_out, others, trajectory_of, scorers=settings.scorers, num_classes=len(classes)
    )
    reviews = verdicts_of(run.config.root, run.config.audit.reviews, store, classes)
    return decide_by_edits(
        inputs.labels.in_split(Split.AUDIT),
        held_out,
        others,
        trajectory_of,
        replace(learnt, reviews=reviews),
        settings.flag,
        classes=classes,
        each=each,
    )


def labels_in(inputs: Inputs, *splits: Split) -> list[LabelledVideo]:
    """Labels of the videos of some splits, as the rule `edits` compares them."""
    annotations = [a for split in splits for a in inputs.labels.in_split(split)]
    return labelled_videos(annotations, groups_of(inputs.run.dataset.videos))


def _compared(store: AuditStore, sweep: Sweep, flags: pd.DataFrame) -> Sweep:
    """A sweep that knows whether its flags are those of the sweep before, if that is the newest."""
    number, record = store.newest_of_dataset()
    before = record and record.sweep
    if not before or before.asked != sweep.asked or before.checkpoints >= sweep.checkpoints:
        return sweep
    return replace(sweep, settled=is_settled(store.flags(number), flags))


def _known_errors(inputs: Inputs) -> list[PlantedError]:
    return inputs.labels.known_errors() if inputs.labels.has_known_errors() else []
