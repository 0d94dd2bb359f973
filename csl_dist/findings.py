"""From stored scores to what people read: flags, the calibration behind them, and outlying videos.

`flags.parquet` and `flags.csv` hold the same rows. All are made again only when what they are made
from has changed. Metrics, which need known errors, are in `measurements.py`.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from csl_dist.calibrate import Calibration, PlantedVideo, calibration, judge_from, planted_videos
from csl_dist.config import ENSEMBLE
from csl_dist.ensemble import ensemble_scores
from csl_dist.flag import (
    APPEARANCE,
    KindJudge,
    described,
    ranked,
    suspicious_spans,
    thresholds,
)
from csl_dist.layout import RunLayout
from csl_dist.ledger import Ledger, Unit
from csl_dist.records import Annotation, Flag, FloatArray, Span, Split, fingerprint
from csl_dist.reduce import (
    late_probabilities,
    outlying_videos,
    smoothed_as_named,
    trajectory_scores,
)
from csl_dist.run import Run, class_weights_of
from csl_dist.score_names import base_and_smoothing
from csl_dist.verdict import put_flags, read_flags

ScorerScores = dict[str, dict[str, FloatArray]]
"""One score (T,) by scorer, then video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The annotated videos of one split and one score of each."""

    annotations: list[Annotation]
    scores: ScorerScores

    def pooled(self, scorer: str) -> FloatArray:
        """All frames' scores (N,), one video after the other."""
        arrays = [self.scores[scorer][a.video] for a in self.annotations]
        return np.concatenate([np.empty(0), *arrays])


def read_scored(run: Run, split: Split, name: str | None = None) -> Scored:
    """One score, by default the one that flags are made of, of every scorer and the ensemble."""
    return read_all_scored(run, name)[split]


def read_all_scored(run: Run, name: str | None = None) -> dict[Split, Scored]:
    """One score of the videos to audit and of the validation videos, on one scale."""
    base, smoothing = base_and_smoothing(name or run.config.flag.score)
    annotations = {split: run.split_annotations(split) for split in (Split.AUDIT, Split.VAL)}
    everyone = [a for part in annotations.values() for a in part]
    scores = smoothed_scores(run, stored_scores(run, base, everyone), everyone, smoothing)
    return {split: Scored(annotations=part, scores=scores) for split, part in annotations.items()}


def stored_scores(run: Run, base: str, annotations: Sequence[Annotation]) -> ScorerScores:
    """A score of every scorer as `reduce` left it."""
    videos = [a.video for a in annotations]
    return {scorer: run.scores.read_all(videos, scorer, base) for scorer in run.config.scorers}


def smoothed_scores(
    run: Run, stored: ScorerScores, annotations: Sequence[Annotation], smoothing: str
) -> ScorerScores:
    """Scores of every scorer with a smoothing, and those of the ensemble."""
    window = run.config.reduce.window
    scores = {
        scorer: {
            a.video: smoothed_as_named(
                by_video[a.video], a.labels_T, smoothing=smoothing, window=window
            )
            for a in annotations
        }
        for scorer, by_video in stored.items()
    }
    return scores | ensemble_of(run, scores)


def ensemble_of(run: Run, scores: ScorerScores) -> ScorerScores:
    """The score of the ensemble, by its name, where the run has scorers of both kinds."""
    temporal, framewise = run.temporal_scorer(), run.framewise_scorer()
    if framewise is None or not run.has_ensemble():
        return {}
    return {ENSEMBLE: ensemble_scores(scores[temporal], scores[framewise])}


def write_flags(run: Run) -> int:
    """Flags suspicious spans of the audit videos; returns how many there are."""
    calibrated = write_calibration(run)
    made_once(
        run,
        Unit("flags", _made_from(run)),
        (RunLayout.FLAGS, RunLayout.FLAGS_CSV),
        lambda: _put_flags(run, make_flags(run, calibrated.judge)),
    )
    return len(read_flags(run.layout))


def make_flags(run: Run, judge: KindJudge | None) -> list[Flag]:
    """The flags of the run's rule; `judge` tells their kinds."""
    scored = read_all_scored(run)
    audit, scorer = scored[Split.AUDIT], run.flag_scorer()
    taus = run_thresholds(run, audit, scored[Split.VAL])
    temporal, framewise = run.temporal_scorer(), run.framewise_scorer()
    store = run.trajectories(temporal)
    flags = []
    for annotation in audit.annotations:
        video = annotation.video
        score_T = audit.scores[scorer][video]
        spans = suspicious_spans(score_T, annotation, taus[video], run.config.flag)
        if not spans:
            continue
        trajectory = store.trajectory(video)
        flags += described(
            spans,
            annotation,
            score_T=score_T,
            appearance_T=run.scores.read(video, framewise, APPEARANCE) if framewise else None,
            judge=judge,
            probability_of=partial(
                late_probabilities, trajectory, strategy=run.config.reduce.checkpoints
            ),
            classes=run.dataset.classes,
        )
    return flags


def run_thresholds(run: Run, audit: Scored, validation: Scored) -> dict[str, float]:
    """The score above which a frame is flagged, by audit video."""
    scorer = run.flag_scorer()
    by_video = {a.video: audit.scores[scorer][a.video] for a in audit.annotations}
    return thresholds(run.config.flag, validation.pooled(scorer), by_video)


def write_calibration(run: Run) -> Calibration:
    """Finds out what the run's rule makes of planted errors, and keeps it."""
    root = run.layout.root
    made_once(
        run,
        Unit("calibration", _made_from(run)),
        (RunLayout.CALIBRATION,),
        lambda: root.put_json(RunLayout.CALIBRATION, make_calibration(run).as_json()),
    )
    return Calibration.from_json(root.read_json(RunLayout.CALIBRATION))


def make_calibration(run: Run) -> Calibration:
    """Plants mislabels in validation videos, or in the audited ones, and flags them by the rule."""
    scored = read_all_scored(run)
    planted_in = Split.VAL if scored[Split.VAL].annotations else Split.AUDIT
    videos = planted_videos(
        scored[planted_in].annotations, run.config.corrupt, num_classes=len(run.dataset.classes)
    )
    scores, appearance = _planted_scores(run, videos)
    scorer, framewise = run.flag_scorer(), run.framewise_scorer()
    # Those of clean videos stay as they are, so that the ensemble's scale stays about the same.
    everything = {s: scored[Split.VAL].scores[s] | scores[s] for s in scores}
    by_video = (everything | ensemble_of(run, everything))[scorer]
    by_video = {v.clean.video: by_video[v.clean.video] for v in videos}
    taus = thresholds(run.config.flag, scored[Split.VAL].pooled(scorer), by_video)
    flagged: dict[str, Sequence[Span]] = {
        v.clean.video: suspicious_spans(
            by_video[v.clean.video], v.wrong, taus[v.clean.video], run.config.flag
        )
        for v in videos
    }
    judge: KindJudge | None = None
    if framewise is not None and run.has_ensemble() and videos:
        clean = run.scores.read_all([v.clean.video for v in videos], framewise, APPEARANCE)
        judge = judge_from(videos, clean, appearance)
    return calibration(videos, flagged, planted_in=planted_in, judge=judge)


def _planted_scores(
    run: Run, videos: Sequence[PlantedVideo]
) -> tuple[ScorerScores, dict[str, FloatArray]]:
    """The run's score under planted labels, by scorer and video; and the framewise margin.

    Of the temporal and the framewise scorer, which all flags come from.
    """
    base, smoothing = base_and_smoothing(run.config.flag.score)
    fold_of = {video: fold.index for fold in run.dataset.folds for video in fold.scored}
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


def write_video_outliers(run: Run) -> list[str]:
    """Writes `videos.csv`, how far each video's CSL lies off the others'; returns those far off."""
    scorer, root = run.temporal_scorer(), run.layout.root

    def put_table() -> None:
        videos = [video.id for video in run.dataset.in_split(Split.AUDIT)]
        table = outlying_videos(run.scores.read_all(videos, scorer, "csl"))
        root.put(RunLayout.VIDEOS, table.to_csv(index=False).encode())

    unit = Unit("videos", fingerprint(scores_made(run), scorer))
    made_once(run, unit, (RunLayout.VIDEOS,), put_table)
    table = pd.read_csv(io.BytesIO(root.read(RunLayout.VIDEOS)), dtype={"video": str})
    return table.video[table.outlier].tolist()


def _made_from(run: Run) -> str:
    """Changes with the score of any video, with the splits, and with all that flags depend on."""
    scorers = [run.temporal_scorer(), run.framewise_scorer(), run.flag_scorer()]
    config = run.config
    parts = (config.flag, config.reduce, config.corrupt)
    return fingerprint(scores_made(run), *parts, scorers, list(run.dataset.classes))


def scores_made(run: Run) -> str:
    """Changes with the score of any video, and with which videos are in which split."""
    splits = {split: [v.id for v in run.dataset.in_split(split)] for split in Split}
    scored = [*splits[Split.AUDIT], *splits[Split.VAL]]
    return fingerprint(splits, run.scores.versions(scored, run.config.scorers))


def _put_flags(run: Run, flags: list[Flag]) -> None:
    table = ranked(flags)
    run.layout.root.put(RunLayout.FLAGS_CSV, table.to_csv(index=False).encode())
    put_flags(run.layout, table)


def made_once(run: Run, unit: Unit, keys: Sequence[str], make: Callable[[], None]) -> None:
    """Makes files unless they are there and on record as made from the same inputs."""
    ledger = Ledger(run.layout.root.child("records"))
    if unit not in ledger.done() or not all(run.layout.root.exists(key) for key in keys):
        ledger.retire([unit])
        make()
        ledger.write(unit)
