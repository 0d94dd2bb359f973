"""Rehearsal: the run's rule on errors planted in videos whose labels are believed right.

Mislabelled spans need no model. Swapped steps do: copies of some held-out videos are scored beside
them, by the same checkpoints.
"""

from collections.abc import Mapping, Sequence

from csl_dist.flag.calibrate import (
    Calibration,
    FoundSwaps,
    PlantedVideo,
    calibration,
    found_swaps,
    judge_from,
    planted_videos,
)
from csl_dist.flag.rules import APPEARANCE, KindJudge, suspicious_spans, thresholds
from csl_dist.measures import base_and_smoothing
from csl_dist.run import Run, class_weights_of
from csl_dist.score.formulas import smoothed_as_named, trajectory_scores
from csl_dist.score.table import (
    Scored,
    ScorerScores,
    ensemble_of,
    made_from,
    read_all_scored,
    smoothed_scores,
    stored_scores,
)
from csl_dist.storage.ledger import Unit, made_once
from csl_dist.storage.paths import RunLayout
from csl_dist.types import Annotation, ErrorKind, FloatArray, Span, Split, copy_id, fingerprint

Flagged = dict[str, Sequence[Span]]
"""Flagged spans by video."""


def planted_in(annotations: Mapping[Split, Sequence[Annotation]]) -> Split:
    """Where errors are planted: validation videos, or those to audit where there are none."""
    return Split.VAL if annotations[Split.VAL] else Split.AUDIT


def swapped_copies(
    run: Run, annotations: Mapping[Split, Sequence[Annotation]]
) -> list[PlantedVideo]:
    """Copies of some held-out videos, each with two neighbouring steps swapped."""
    taken = {video.id for video in run.dataset.videos}
    return planted_videos(
        [a for a in annotations[planted_in(annotations)] if copy_id(a.video) not in taken],
        ErrorKind.DISORDER,
        run.config.corrupt,
        num_classes=len(run.dataset.classes),
        most=run.config.audit.swapped_copies,
    )


def write_calibration(run: Run) -> Calibration:
    """Finds out what the run's rule makes of planted errors, and keeps it."""
    root = run.layout.root
    copies = [copy_id(v.id) for v in run.dataset.in_split(Split.AUDIT, Split.VAL)]
    of_copies = run.config.audit.swapped_copies, run.scores.versions(copies, run.config.scorers)
    made_once(
        root,
        Unit("calibration", fingerprint(made_from(run), *of_copies)),
        (RunLayout.CALIBRATION,),
        lambda: root.put_json(RunLayout.CALIBRATION, make_calibration(run).as_json()),
    )
    return Calibration.from_json(root.read_json(RunLayout.CALIBRATION))


def make_calibration(run: Run) -> Calibration:
    """Plants errors in validation videos, or in the audited ones, and flags them by the rule."""
    scored = read_all_scored(run)
    annotations = {split: part.annotations for split, part in scored.items()}
    split = planted_in(annotations)
    videos = planted_videos(
        annotations[split],
        ErrorKind.MISLABEL,
        run.config.corrupt,
        num_classes=len(run.dataset.classes),
    )
    scores, appearance = _mislabelled_scores(run, videos)
    flagged = _flagged(run, [v.wrong for v in videos], scores, scored[Split.VAL])
    judge: KindJudge | None = None
    framewise = run.framewise_scorer()
    if framewise is not None and run.has_ensemble() and videos:
        clean = run.scores.read_all([v.clean.video for v in videos], framewise, APPEARANCE)
        judge = judge_from(videos, clean, appearance)
    swaps = _found_swaps(run, swapped_copies(run, annotations), scored[Split.VAL])
    return calibration(videos, flagged, planted_in=split, judge=judge, swaps=swaps)


def _found_swaps(run: Run, copies: Sequence[PlantedVideo], validation: Scored) -> FoundSwaps | None:
    if not copies:
        return None
    base, smoothing = base_and_smoothing(run.config.flag.score)
    wrong, clean = [copy.wrong for copy in copies], [copy.clean for copy in copies]
    scores = smoothed_scores(run, stored_scores(run, base, wrong), wrong, smoothing)
    return found_swaps(
        copies,
        _flagged(run, wrong, scores, validation),
        _flagged(run, clean, validation.scores, validation),
    )


def _flagged(
    run: Run, annotations: Sequence[Annotation], scores: ScorerScores, validation: Scored
) -> Flagged:
    """What the run's rule flags in some videos, by their scores."""
    scorer = run.flag_scorer()
    # With those of clean videos, so that the ensemble's scale stays about the same.
    everything = {s: validation.scores[s] | scores[s] for s in run.config.scorers if s in scores}
    known = (everything | ensemble_of(run, everything))[scorer]
    by_video = {a.video: known[a.video] for a in annotations}
    taus = thresholds(run.config.flag, validation.pooled(scorer), by_video)
    return {
        a.video: suspicious_spans(by_video[a.video], a, taus[a.video], run.config.flag)
        for a in annotations
    }


def _mislabelled_scores(
    run: Run, videos: Sequence[PlantedVideo]
) -> tuple[ScorerScores, dict[str, FloatArray]]:
    """The run's score under planted labels, by scorer and video; and the framewise margin.

    Of the temporal and the framewise scorer, which all flags come from.
    """
    base, smoothing = base_and_smoothing(run.config.flag.score)
    fold_of = run.dataset.folds_by_video()
    scores: ScorerScores = {}
    appearance: dict[str, FloatArray] = {}
    for scorer in dict.fromkeys([run.temporal_scorer(), run.framewise_scorer()]):
        if scorer is None:
            continue
        weights = {f.index: class_weights_of(run, scorer, f.index) for f in run.dataset.folds}
        store, scores[scorer] = run.trajectories(scorer), {}
        for planted in videos:
            video, labels_T = planted.wrong.video, planted.wrong.labels_T
            weights_C = weights[fold_of[video]]
            by_name = trajectory_scores(
                store.trajectory(video), labels_T, weights_C, run.config.reduce
            )
            scores[scorer][video] = smoothed_as_named(
                by_name[base], labels_T, smoothing=smoothing, window=run.config.reduce.window
            )
            if scorer == run.framewise_scorer():
                appearance[video] = by_name[APPEARANCE]
    return scores, appearance
