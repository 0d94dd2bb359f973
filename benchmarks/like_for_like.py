"""CSL beside the loss of the last epoch in finished runs with known errors: like beside like.

.venv/bin/python benchmarks/like_for_like.py ROOT… [--scorer transformer] [--json]

Both as they are and both smoothed, with the losses weighted by class as in training and without.
Reads stored trajectories; nothing is run. AUC / average precision in percent.
"""

from pathlib import Path

import numpy as np
from figures import parser_of

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.evaluate.metrics import ranking, truth_of_kind
from csl_dist.score.formulas import smooth
from csl_dist.types import ErrorKind, FloatArray, Split


def scores_of(audit: Audit, scorer: str) -> dict[str, dict[str, FloatArray]]:
    """Scores (T,) by name and video."""
    found: dict[str, dict[str, FloatArray]] = {}
    window = audit.config.score.window
    for video in (v.id for v in audit.held_out_videos() if v.split is Split.AUDIT):
        for weighted, words in ((True, ""), (False, ", unweighted")):
            losses_ET = audit.trajectory(video, weighted=weighted, scorer=scorer)
            for name, score_T in (("final", losses_ET[-1]), ("csl", losses_ET.mean(axis=0))):
                found.setdefault(f"{name}{words}", {})[video] = score_T
                found.setdefault(f"{name} smoothed{words}", {})[video] = smooth(score_T, window)
    return found


def measured(audit: Audit, scorer: str) -> dict[str, dict[str, tuple[float, float]]]:
    """AUC and average precision by kind of error and score."""
    scores = scores_of(audit, scorer)
    num_frames = {video: len(score_T) for video, score_T in scores["csl"].items()}
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for kind in ErrorKind:
        if any(error.kind is kind for error in audit.known_errors):
            truth = truth_of_kind(kind, audit.known_errors, num_frames)
            for name, by_video in scores.items():
                found = ranking(truth, by_video).metrics(np.ones(len(truth.videos)))
                pair = (100 * found["auc_micro"], 100 * found["average_precision"])
                table.setdefault(kind.value, {})[name] = pair
    return table


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("roots", nargs="+", type=Path)
    parser.add_argument("--scorer", default="transformer")
    arguments = parser.parse_args()
    tables = [measured(csl_dist.open_audit(str(r)), arguments.scorer) for r in arguments.roots]
    for kind in dict.fromkeys(kind for table in tables for kind in table):
        own = [table[kind] for table in tables if kind in table]
        print(f"\n{kind}, {len(own)} runs\n\n| score | AUC / AP |\n|---|---|")
        for name in own[0]:
            auc, precision = np.mean([by_name[name] for by_name in own], axis=0)
            print(f"| {name} | {auc:.1f} / {precision:.1f} |")


if __name__ == "__main__":
    main()
