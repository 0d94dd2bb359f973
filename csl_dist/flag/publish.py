"""Tell the readers of an audit what it was decided by."""

from dataclasses import astuple

from csl_dist.config import ENSEMBLE
from csl_dist.flag.stage import run_thresholds
from csl_dist.flag.verdict import Verdict, put_verdict
from csl_dist.predict.plan import skipped_checkpoints
from csl_dist.run import Run
from csl_dist.score.ensemble import scale_of
from csl_dist.score.table import read_all_scored, scores_made
from csl_dist.types import Split


def publish_verdict(run: Run) -> None:
    """Writes `audit.json` of a run whose flags are made."""
    scored = read_all_scored(run)
    temporal, framewise = run.temporal_scorer(), run.framewise_scorer()
    scales = None
    if run.flag_scorer() == ENSEMBLE and framewise is not None:
        scores = scored[Split.AUDIT].scores
        scales = tuple(astuple(scale_of(scores[name].values())) for name in (temporal, framewise))
    verdict = Verdict(
        scorer=run.flag_scorer(),
        temporal=temporal,
        framewise=framewise,
        score=run.config.flag.score,
        thresholds=run_thresholds(run, scored[Split.AUDIT], scored[Split.VAL]),
        scales=scales,  # type: ignore[arg-type]
        made_from=scores_made(run),
        skipped=skipped_checkpoints(run),
        known_errors=tuple(run.known_errors()) if run.has_known_errors() else (),
    )
    put_verdict(run.layout, verdict)
