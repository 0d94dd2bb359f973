"""Tell the readers of an audit what it was decided by."""

from csl_dist.findings import SCORE, read_scored, run_thresholds, scores_made
from csl_dist.records import Split
from csl_dist.run import Run
from csl_dist.verdict import Verdict, put_verdict


def publish_verdict(run: Run) -> None:
    """Writes `audit.json` of a run whose flags are made."""
    thresholds = run_thresholds(run, read_scored(run, Split.AUDIT), read_scored(run, Split.VAL))
    verdict = Verdict(
        scorer=run.temporal_scorer(),
        framewise=run.framewise_scorer(),
        score=SCORE,
        threshold=thresholds.suspicious,
        appearance=thresholds.appearance,
        made_from=scores_made(run),
        known_errors=tuple(run.known_errors()) if run.has_known_errors() else (),
    )
    put_verdict(run.layout, verdict)
