"""Calibrate a threshold: plant errors in videos whose labels are believed right, and flag them.

Renaming spans changes labels alone, and trajectories hold none, so that no model is needed. Steps
that are swapped look otherwise to a model that sees context: copies of some videos are predicted
beside them, by the same checkpoints.
"""

from collections.abc import Sequence

from csl_dist.data.planted import PlantedVideo, planted_videos
from csl_dist.flag.calibration import (
    Calibration,
    FoundSwaps,
    calibration,
    found_swaps,
    judge_from,
)
from csl_dist.flag.rules import APPEARANCE, KindJudge, suspicious_spans, thresholds
from csl_dist.measures import base_and_smoothing
from csl_dist.predict.plan import store_of
from csl_dist.score.formulas import loss_weights, smoothed_as_named, trajectory_scores
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.score.table import (
    ScorerScores,
    ScoreTable,
    ensemble_of,
    read_score_tables,
    smoothed_scores,
    stored_scores,
)
from csl_dist.training.inputs import Inputs
from csl_dist.types import Annotation, ErrorKind, FloatArray, Span, Split

Flagged = dict[str, Sequence[Span]]
"""Flagged spans by video."""


def threshold_calibration(
    inputs: Inputs, versions: Versions, settings: AuditSettings
) -> Calibration:
    """Plants errors in validation videos, or in the audited ones, and flags them by the rule."""
    run, config = inputs.run, inputs.run.config
    store = ScoreStore(run.paths.scores)
    annotations = {split: inputs.labels.in_split(split) for split in (Split.AUDIT, Split.VAL)}
    tables = read_score_tables(store, versions, annotations, settings)
    split = inputs.labels.calibrated_on
    videos = planted_videos(
        tables[split].annotations,
        ErrorKind.MISLABEL,
        config.corrupt,
        num_classes=len(run.dataset.classes),
    )
    scores, appearance = _mislabelled_scores(inputs, videos, settings)
    flagged = _flagged(settings, [v.wrong for v in videos], scores, tables[Split.VAL])
    judge: KindJudge | None = None
    framewise = settings.framewise
    if framewise is not None and settings.has_ensemble and videos:
        made = {v.clean.video: versions[framewise][v.clean.video] for v in videos}
        judge = judge_from(videos, store.read_all(made, framewise, APPEARANCE), appearance)
    swaps = None
    if inputs.labels.swapped_copies:
        copies = inputs.labels.swapped_copies
        base, smoothing = base_and_smoothing(settings.flag.score)
        wrong = [copy.wrong for copy in copies]
        stored = stored_scores(store, versions, base, wrong)
        copied = smoothed_scores(settings, stored, wrong, smoothing)
        swaps = _found_swaps(settings, copies, copied, tables[Split.VAL])
    return calibration(videos, flagged, planted_in=split, judge=judge, swaps=swaps)


def _found_swaps(
    settings: AuditSettings,
    copies: Sequence[PlantedVideo],
    scores: ScorerScores,
    validation: ScoreTable,
) -> FoundSwaps:
    wrong, clean = [copy.wrong for copy in copies], [copy.clean for copy in copies]
    return found_swaps(
        copies,
        _flagged(settings, wrong, scores, validation),
        _flagged(settings, clean, validation.scores, validation),
    )


def _flagged(
    settings: AuditSettings,
    annotations: Sequence[Annotation],
    scores: ScorerScores,
    validation: ScoreTable,
) -> Flagged:
    """What the rule flags in some videos, by their scores."""
    # With those of clean videos, so that the ensemble's scale stays about the same.
    everything = {s: validation.scores[s] | scores[s] for s in settings.scorers if s in scores}
    known = (everything | ensemble_of(settings, everything))[settings.scorer]
    by_video = {a.video: known[a.video] for a in annotations}
    taus = thresholds(settings.flag, validation.pooled(settings.scorer), by_video)
    return {
        a.video: suspicious_spans(by_video[a.video], a, taus[a.video], settings.flag)
        for a in annotations
    }


def _mislabelled_scores(
    inputs: Inputs, videos: Sequence[PlantedVideo], settings: AuditSettings
) -> tuple[ScorerScores, dict[str, FloatArray]]:
    """The run's score under planted labels, by scorer and video; and the framewise margin.

    Of the temporal and the framewise scorer, which all flags come from.
    """
    run = inputs.run
    base, smoothing = base_and_smoothing(settings.flag.score)
    fold_of = run.dataset.folds_by_video()
    scores: ScorerScores = {}
    appearance: dict[str, FloatArray] = {}
    for scorer in dict.fromkeys([settings.temporal, settings.framewise]):
        if scorer is None:
            continue
        weights = {
            f.index: loss_weights(inputs.checkpoints.class_weights(scorer, f.index), settings.score)
            for f in run.dataset.folds
        }
        store, scores[scorer] = store_of(inputs, scorer), {}
        for planted in videos:
            video, labels_T = planted.wrong.video, planted.wrong.labels_T
            weights_C = weights[fold_of[video]]
            by_name = trajectory_scores(
                store.trajectory(video), labels_T, weights_C, settings.score
            )
            scores[scorer][video] = smoothed_as_named(
                by_name[base], labels_T, smoothing=smoothing, window=settings.score.window
            )
            if scorer == settings.framewise:
                appearance[video] = by_name[APPEARANCE]
    return scores, appearance
