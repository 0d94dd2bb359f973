"""From stored scores to what people read: flags, and videos that lie off the others as a whole.

`flags.parquet` and `flags.csv` hold the same rows. All are made again only when what they are made
from has changed. Metrics, which need known errors, are in `measurements.py`.
"""

import io
from functools import partial

import pandas as pd

from csl_dist.flag.rehearse import write_calibration
from csl_dist.flag.rules import (
    APPEARANCE,
    KindJudge,
    described,
    ranked,
    suspicious_spans,
    thresholds,
)
from csl_dist.flag.verdict import put_flags, read_flags
from csl_dist.run import Run
from csl_dist.score.formulas import late_probabilities, outlying_videos
from csl_dist.score.table import Scored, made_from, read_all_scored, scores_made
from csl_dist.storage.ledger import Unit, made_once
from csl_dist.storage.paths import RunLayout
from csl_dist.types import Flag, Split, fingerprint


def write_flags(run: Run) -> int:
    """Flags suspicious spans of the audit videos; returns how many there are."""
    calibrated = write_calibration(run)
    made_once(
        run.layout.root,
        Unit("flags", made_from(run)),
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


def write_video_outliers(run: Run) -> list[str]:
    """Writes `videos.csv`, how far each video's CSL lies off the others'; returns those far off."""
    scorer, root = run.temporal_scorer(), run.layout.root

    def put_table() -> None:
        videos = [video.id for video in run.dataset.in_split(Split.AUDIT)]
        table = outlying_videos(run.scores.read_all(videos, scorer, "csl"))
        root.put(RunLayout.VIDEOS, table.to_csv(index=False).encode())

    unit = Unit("videos", fingerprint(scores_made(run), scorer))
    made_once(root, unit, (RunLayout.VIDEOS,), put_table)
    table = pd.read_csv(io.BytesIO(root.read(RunLayout.VIDEOS)), dtype={"video": str})
    return table.video[table.outlier].tolist()


def _put_flags(run: Run, flags: list[Flag]) -> None:
    table = ranked(flags)
    run.layout.root.put(RunLayout.FLAGS_CSV, table.to_csv(index=False).encode())
    put_flags(run.layout, table)
