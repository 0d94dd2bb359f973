"""Calibrate a run's rule: plant errors in videos whose labels are believed right, and flag them.

Renaming spans changes labels alone, and trajectories hold none, so that no model is needed. Steps
that are swapped look otherwise to a model that sees context: copies of some videos are predicted
beside them, by the same checkpoints.
"""

from collections.abc import Sequence

from csl_dist.data.planted import PlantedVideo, copy_id, planted_videos
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
from csl_dist.score.formulas import smoothed_as_named, trajectory_scores
from csl_dist.score.store import ScoreStore
from csl_dist.score.table import (
    ScorerScores,
    ScoreTable,
    ensemble_of,
    flags_made,
    read_score_tables,
    smoothed_scores,
    stored_scores,
)
from csl_dist.storage.ledger import Unit, made_once
from csl_dist.storage.paths import RunPaths
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import (
    flag_scorer,
    framewise_scorer,
    has_ensemble,
    temporal_scorer,
)
from csl_dist.types import Annotation, ErrorKind, FloatArray, Span, Split, fingerprint

Flagged = dict[str, Sequence[Span]]
"""Flagged spans by video."""


def write_calibration(inputs: Inputs) -> Calibration:
    """Finds out what the run's rule makes of planted errors, and keeps it."""
    run = inputs.run
    root = run.paths.root
    copies = [copy_id(v.id) for v in run.dataset.in_split(Split.AUDIT, Split.VAL)]
    versions = ScoreStore(run.paths.scores).versions(copies, run.config.scorers)
    made_from = fingerprint(flags_made(run), run.config.audit.swapped_copies, versions)
    made_once(
        root,
        Unit("calibration", made_from),
        (RunPaths.CALIBRATION,),
        lambda: root.put_json(RunPaths.CALIBRATION, make_calibration(inputs).as_json()),
    )
    return Calibration.from_json(root.read_json(RunPaths.CALIBRATION))


def make_calibration(inputs: Inputs) -> Calibration:
    """Plants errors in validation videos, or in the audited ones, and flags them by the rule."""
    run, config = inputs.run, inputs.run.config
    tables = read_score_tables(inputs)
    split = inputs.labels.calibrated_on
    videos = planted_videos(
        tables[split].annotations,
        ErrorKind.MISLABEL,
        config.corrupt,
        num_classes=len(run.dataset.classes),
    )
    scores, appearance = _mislabelled_scores(inputs, videos)
    flagged = _flagged(inputs, [v.wrong for v in videos], scores, tables[Split.VAL])
    judge: KindJudge | None = None
    framewise = framewise_scorer(config)
    if framewise is not None and has_ensemble(config) and videos:
        store = ScoreStore(run.paths.scores)
        clean = store.read_all([v.clean.video for v in videos], framewise, APPEARANCE)
        judge = judge_from(videos, clean, appearance)
    swaps = _found_swaps(inputs, inputs.labels.swapped_copies, tables[Split.VAL])
    return calibration(videos, flagged, planted_in=split, judge=judge, swaps=swaps)


def _found_swaps(
    inputs: Inputs, copies: Sequence[PlantedVideo], validation: ScoreTable
) -> FoundSwaps | None:
    if not copies:
        return None
    base, smoothing = base_and_smoothing(inputs.run.config.flag.score)
    wrong, clean = [copy.wrong for copy in copies], [copy.clean for copy in copies]
    stored = stored_scores(inputs.run, base, wrong)
    scores = smoothed_scores(inputs.run.config, stored, wrong, smoothing)
    return found_swaps(
        copies,
        _flagged(inputs, wrong, scores, validation),
        _flagged(inputs, clean, validation.scores, validation),
    )


def _flagged(
    inputs: Inputs,
    annotations: Sequence[Annotation],
    scores: ScorerScores,
    validation: ScoreTable,
) -> Flagged:
    """What the run's rule flags in some videos, by their scores."""
    config = inputs.run.config
    scorer = flag_scorer(config)
    # With those of clean videos, so that the ensemble's scale stays about the same.
    everything = {s: validation.scores[s] | scores[s] for s in config.scorers if s in scores}
    known = (everything | ensemble_of(config, everything))[scorer]
    by_video = {a.video: known[a.video] for a in annotations}
    taus = thresholds(config.flag, validation.pooled(scorer), by_video)
    return {
        a.video: suspicious_spans(by_video[a.video], a, taus[a.video], config.flag)
        for a in annotations
    }


def _mislabelled_scores(
    inputs: Inputs, videos: Sequence[PlantedVideo]
) -> tuple[ScorerScores, dict[str, FloatArray]]:
    """The run's score under planted labels, by scorer and video; and the framewise margin.

    Of the temporal and the framewise scorer, which all flags come from.
    """
    run, config = inputs.run, inputs.run.config
    base, smoothing = base_and_smoothing(config.flag.score)
    fold_of = run.dataset.folds_by_video()
    scores: ScorerScores = {}
    appearance: dict[str, FloatArray] = {}
    for scorer in dict.fromkeys([temporal_scorer(config), framewise_scorer(config)]):
        if scorer is None:
            continue
        weights = {
            f.index: inputs.checkpoints.loss_weights(scorer, f.index) for f in run.dataset.folds
        }
        store, scores[scorer] = store_of(inputs, scorer), {}
        for planted in videos:
            video, labels_T = planted.wrong.video, planted.wrong.labels_T
            weights_C = weights[fold_of[video]]
            by_name = trajectory_scores(store.trajectory(video), labels_T, weights_C, config.score)
            scores[scorer][video] = smoothed_as_named(
                by_name[base], labels_T, smoothing=smoothing, window=config.score.window
            )
            if scorer == framewise_scorer(config):
                appearance[video] = by_name[APPEARANCE]
    return scores, appearance
