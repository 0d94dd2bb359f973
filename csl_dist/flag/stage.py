"""From stored scores to what people read: flags, and videos that are far off as a whole.

`flags.parquet` and `flags.csv` hold the same rows. All are made again only when what they are made
from has changed; `audit.json`, which says what decided, is written last.
"""

import io
from dataclasses import astuple
from functools import partial

import pandas as pd

from csl_dist.cluster.stage import Stage
from csl_dist.config import ENSEMBLE
from csl_dist.flag.calibrate import write_calibration
from csl_dist.flag.record import AuditRecord, put_record, read_flags
from csl_dist.flag.rules import (
    APPEARANCE,
    KindJudge,
    described,
    ranked,
    suspicious_spans,
    thresholds,
)
from csl_dist.predict.plan import skipped_checkpoints, store_of
from csl_dist.score.ensemble import scale_of
from csl_dist.score.formulas import late_probabilities, outlying_videos
from csl_dist.score.store import ScoreStore
from csl_dist.score.table import ScoreTable, flags_made, read_score_tables, scores_made
from csl_dist.storage.ledger import Unit, made_once
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.tables import put_table
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import flag_scorer, framewise_scorer, temporal_scorer
from csl_dist.types import Flag, Split, fingerprint


def flag(stage: Stage) -> None:
    """Flags suspicious spans, and says how far to trust that."""
    inputs = stage.inputs
    tables, calibration = read_score_tables(inputs), write_calibration(inputs)
    stage.say(f"flags: {write_flags(inputs, tables, calibration.judge)} spans to review")
    stage.say(f"calibration: {calibration.sentence()}")
    outliers = write_video_outliers(inputs)
    if outliers:
        stage.say(f"videos far off as a whole (another one's labels?): {', '.join(outliers)}")
    write_record(inputs, tables)


def write_flags(inputs: Inputs, tables: dict[Split, ScoreTable], judge: KindJudge | None) -> int:
    """Flags suspicious spans of the audit videos; returns how many there are."""
    paths = inputs.run.paths

    def put_flags() -> None:
        table = ranked(make_flags(inputs, tables, judge))
        paths.root.put(RunPaths.FLAGS_CSV, table.to_csv(index=False).encode())
        put_table(paths.root, RunPaths.FLAGS, table)

    keys = (RunPaths.FLAGS, RunPaths.FLAGS_CSV)
    made_once(paths.root, Unit("flags", flags_made(inputs.run)), keys, put_flags)
    return len(read_flags(paths))


def make_flags(
    inputs: Inputs, tables: dict[Split, ScoreTable], judge: KindJudge | None
) -> list[Flag]:
    """The flags of the run's rule; `judge` says which kind they are."""
    run, config = inputs.run, inputs.run.config
    audit, scorer = tables[Split.AUDIT], flag_scorer(config)
    taus = run_thresholds(inputs, tables)
    framewise = framewise_scorer(config)
    scores, store = ScoreStore(run.paths.scores), store_of(inputs, temporal_scorer(config))
    flags = []
    for annotation in audit.annotations:
        video = annotation.video
        score_T = audit.scores[scorer][video]
        spans = suspicious_spans(score_T, annotation, taus[video], config.flag)
        if not spans:
            continue
        trajectory = store.trajectory(video)
        flags += described(
            spans,
            annotation,
            score_T=score_T,
            appearance_T=scores.read(video, framewise, APPEARANCE) if framewise else None,
            judge=judge,
            probability_of=partial(
                late_probabilities, trajectory, strategy=config.score.checkpoints
            ),
            classes=run.dataset.classes,
        )
    return flags


def run_thresholds(inputs: Inputs, tables: dict[Split, ScoreTable]) -> dict[str, float]:
    """The score above which a frame is flagged, by audit video."""
    scorer, audit = flag_scorer(inputs.run.config), tables[Split.AUDIT]
    by_video = {a.video: audit.scores[scorer][a.video] for a in audit.annotations}
    return thresholds(inputs.run.config.flag, tables[Split.VAL].pooled(scorer), by_video)


def write_video_outliers(inputs: Inputs) -> list[str]:
    """Writes `videos.csv`, how far each video's CSL is off the others'; returns those far off."""
    run = inputs.run
    scorer, root = temporal_scorer(run.config), run.paths.root

    def put_outliers() -> None:
        videos = [video.id for video in run.dataset.in_split(Split.AUDIT)]
        csl = ScoreStore(run.paths.scores).read_all(videos, scorer, "csl")
        root.put(RunPaths.VIDEOS, outlying_videos(csl).to_csv(index=False).encode())

    unit = Unit("videos", fingerprint(scores_made(run), scorer))
    made_once(root, unit, (RunPaths.VIDEOS,), put_outliers)
    table = pd.read_csv(io.BytesIO(root.read(RunPaths.VIDEOS)), dtype={"video": str})
    return table.video[table.outlier].tolist()


def write_record(inputs: Inputs, tables: dict[Split, ScoreTable]) -> None:
    """Writes `audit.json`: what decided on the flags, for readers without dataset and models."""
    run, config = inputs.run, inputs.run.config
    temporal, framewise = temporal_scorer(config), framewise_scorer(config)
    scales = None
    if flag_scorer(config) == ENSEMBLE and framewise is not None:
        scores = tables[Split.AUDIT].scores
        scales = tuple(astuple(scale_of(scores[name].values())) for name in (temporal, framewise))
    labels = inputs.labels
    record = AuditRecord(
        scorer=flag_scorer(config),
        temporal=temporal,
        framewise=framewise,
        score=config.flag.score,
        thresholds=run_thresholds(inputs, tables),
        scales=scales,  # type: ignore[arg-type]
        made_from=scores_made(run),
        skipped=skipped_checkpoints(inputs),
        known_errors=tuple(labels.known_errors()) if labels.has_known_errors() else (),
    )
    put_record(run.paths, record)
