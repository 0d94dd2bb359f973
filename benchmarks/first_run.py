"""What a first run finds on real data: `csl init`, errors as people make them, `csl run`.

    python benchmarks/first_run.py --data ../shared/data --work /tmp/first [--datasets gtea hapt]

Nothing is chosen here: `csl init` writes the config, the recipe's models are trained through Ray,
and the newest audit is read as a user would. Errors are planted in `--share` of the videos, all
kinds alike. By dataset: AUC and average precision of the score that decides, and of rivals on the
same trajectories, over all frames and kinds but swaps, whose score is `order`; flags, what was
promised of them, and how many are right (they touch an error; or half of the frames of both are
shared). HAPT was looked at by no study: no constant was chosen on it.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from figures import parser_of, print_figures
from real_data import READERS, write_real_dataset

import csl_dist
from csl_dist.types import ErrorKind, FloatArray

KINDS = ("rename", "boundary", "merge", "insert", "missing", "occurrence", "disorder")
ALONE = {"hapt": ("rename", "insert", "occurrence")}
"""Kinds that need no neighbouring step: HAPT's steps have unlabelled frames between them."""
RIVALS = ("csl", "csl_smoothed", "aum", "aum_late_segment", "final")
CSL = Path(sys.executable).parent / "csl"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=list(READERS), choices=list(READERS))
    parser.add_argument("--share", type=float, default=0.5, help="of the videos that get errors")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recipe", default="standard")
    parser.add_argument("--set", action="append", default=[], help="passed on to csl run")
    arguments = parser.parse_args()
    for name in arguments.datasets:
        folder = arguments.work / name
        if not (folder / "manifest.csv").exists():
            write_real_dataset(name, arguments.data, folder)
            (folder / "csl.yaml").unlink()
        figures = first_run(
            folder,
            kinds=ALONE.get(name, KINDS),
            recipe=arguments.recipe,
            share=arguments.share,
            seed=arguments.seed,
            settings=arguments.set,
        )
        print_figures({name: figures}, as_json=arguments.json)
        sys.stdout.flush()


def first_run(
    folder: Path,
    *,
    kinds: Sequence[str],
    recipe: str,
    share: float,
    seed: int,
    settings: Sequence[str],
) -> dict[str, Any]:
    """Figures of one dataset; its folder has a manifest."""
    config = folder / f"{recipe}.yaml"
    if not config.exists():
        _csl("init", "auto", str(folder), "--recipe", recipe, "--out", str(config))
    root = folder / f"{recipe}-{share:g}-{seed}-{len(settings)}"
    planted = "{" + ", ".join(f"{kind}: {share / len(kinds):.4f}" for kind in kinds) + "}"
    given = [f"root={root}", f"corrupt.audit={planted}", f"corrupt.seed={seed}", *settings]
    begun = time.monotonic()
    _csl("run", str(config), *(part for one in given for part in ("--set", one)))
    return {"seconds": round(time.monotonic() - begun)} | dict(audit_figures(root))


def _csl(*arguments: str) -> None:
    done = subprocess.run([str(CSL), *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"csl {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")


def audit_figures(root: Path) -> Iterator[tuple[str, Any]]:
    """What the newest audit of a run found of the errors that were planted in it."""
    audit = csl_dist.open_audit(str(root))
    errors = audit.known_errors
    videos = list(audit.videos()["video"])
    swapped = {e.video for e in errors if e.kind is ErrorKind.DISORDER}
    wrong = {video: np.zeros(len(audit.annotation(video).labels_T), dtype=bool) for video in videos}
    for error in errors:
        wrong[error.video][error.span.start : error.span.stop] = True
    rest = [video for video in videos if video not in swapped]
    yield "errors", len(errors)
    yield "ours", _ranked({v: audit.deciding_score(v) for v in rest}, wrong)
    for name in RIVALS:
        yield name, _ranked({v: audit.score(v, name) for v in rest}, wrong)
    clean = [v for v in videos if v in swapped or not wrong[v].any()]
    if swapped:
        yield "order", _ranked({v: audit.score(v, "order") for v in clean}, wrong)
    flags = audit.flags()
    for listed, own in flags.groupby("list"):
        hits = [_best_overlap(flag, errors) for flag in own.itertuples()]
        yield f"{listed}: flags", len(own)
        yield f"{listed}: touching", round(float(np.mean([hit > 0 for hit in hits])), 2)
        yield f"{listed}: right", round(float(np.mean([hit >= 0.5 for hit in hits])), 2)
        if own["probability"].notna().any():
            yield f"{listed}: promised", round(float(own["probability"].mean()), 2)
    found = [_best_overlap_of(error, flags) > 0 for error in errors]
    yield "errors touched", round(float(np.mean(found)), 2) if found else None


def _ranked(scores: dict[str, FloatArray], wrong: dict[str, Any]) -> str:
    from sklearn.metrics import average_precision_score, roc_auc_score

    score = np.concatenate(list(scores.values()))
    truth = np.concatenate([wrong[video] for video in scores])
    known = np.isfinite(score)
    auc = roc_auc_score(truth[known], score[known])
    return f"{100 * auc:.1f}/{100 * average_precision_score(truth[known], score[known]):.1f}"


def _best_overlap(flag: Any, errors: Sequence[Any]) -> float:
    """The largest share of frames that a flag has in common with an error, of those of either."""
    spans = [(e.span.start, e.span.stop) for e in errors if e.video == flag.video]
    return max([0.0, *(_overlap((flag.start, flag.stop), span) for span in spans)])


def _best_overlap_of(error: Any, flags: Any) -> float:
    own = flags[flags["video"] == error.video]
    spans = zip(own["start"], own["stop"], strict=True)
    return max([0.0, *(_overlap((error.span.start, error.span.stop), span) for span in spans)])


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> float:
    shared = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    return shared / (a[1] - a[0] + b[1] - b[0] - shared)


if __name__ == "__main__":
    main()
