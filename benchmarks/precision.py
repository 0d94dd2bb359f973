"""What `predict.precision: fast` changes: CSL of every frame, and the first flags.

.venv/bin/python benchmarks/precision.py [--data ../shared/data] [--dataset demo ...] [--json]
    [--set 'scorers={transformer: {arguments: {preset: small}}}' --set train.epochs=10]

Each dataset is trained and audited once, or is a run root that is there (--root), whose copy is
audited by the same checkpoints in 8-bit integers. The models that datasets have by themselves are
too small for integers; `--set` makes larger ones. A flag is the same where one of the other list's
first 50 shares half of both. The datasets beside `demo` are not part of the project.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from figures import parser_of, print_figures
from real_data import DATASETS, write_real_dataset
from scipy.stats import spearmanr

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.config import config_as_dict
from csl_dist.features.source import FeatureReader
from csl_dist.predict.arithmetic import in_integers, load_weights
from csl_dist.predict.forward import CPU_BATCH_FRAMES, group_log_probabilities
from csl_dist.predict.units import plan_groups
from csl_dist.storage.run_file import read_run_config
from csl_dist.training.inputs import open_inputs
from csl_dist.training.models import build_scorer
from csl_dist.types import Split

TOP = 50


def bench_precision(
    name: str, data: Path, folder: Path, overrides: Sequence[str]
) -> dict[str, Any]:
    """Correlation of the CSL of all audited frames by scorer, and how many flags are the same."""
    exact = folder / "exact"
    settings = [part for override in overrides for part in ("--set", override)]
    if name == "demo":
        _csl("demo", "--root", str(exact), *settings)
    else:
        config = write_real_dataset(name, data, folder / "data")
        _csl("run", str(config), "--set", f"root={exact}", *settings)
    return compare(exact, folder)


def compare(exact: Path, folder: Path) -> dict[str, Any]:
    """A finished run beside a copy of it in a folder, which is predicted again."""
    fast, config = folder / "fast", folder / "fast.yaml"
    shutil.copytree(exact, fast)
    _write_config(exact, config)
    _csl("audit", str(config), "--set", f"root={fast}", "--set", "predict.precision=fast")
    before, after = open_audit(str(exact)), open_audit(str(fast))
    assert after.revision == before.revision + 1, "the copy has an audit of its own"
    figures: dict[str, Any] = {
        f"spearman_{scorer}": round(_correlation(before, after, scorer), 5)
        for scorer in before.scorers
    }
    first = [audit.flags(top=TOP) for audit in (before, after)]
    same = sum(any(_alike(a, b) for b in first[1].itertuples()) for a in first[0].itertuples())
    return figures | {"flags": len(first[0]), "same_flags": same}


def csl_correlations(root: Path) -> dict[str, Any]:
    """The correlations alone, of a finished run, computed in this process."""
    inputs = open_inputs(read_run_config(str(root)))
    annotations = inputs.labels.held_out()
    figures: dict[str, Any] = {}
    for scorer in inputs.run.config.scorers:
        spec = inputs.model_spec(scorer)
        csl: tuple[list[Any], list[Any]] = ([], [])
        seconds = [0.0, 0.0]
        for fold in inputs.run.dataset.folds:
            source = inputs.seen_features(scorer, fold.index, Split.AUDIT)
            own = [a for a in annotations if a.original in fold.held_out]
            group = plan_groups(
                own, {a.video: "" for a in own}, fold=fold.index, group_frames=10**9
            )
            labels = {a.video: a.labels_T for a in own}
            store = inputs.checkpoints.store(scorer, fold.index)
            infos = store.infos(inputs.run.config.train.epochs)
            losses: tuple[list[Any], list[Any]] = ([], [])
            for info in infos:
                model = build_scorer(spec).eval()
                load_weights(model, store.load(info), info)
                for place, one in enumerate((model, in_integers(model, info))):
                    begun = time.process_time()
                    parts = [
                        group_log_probabilities(
                            one,
                            part,
                            FeatureReader(source).read,
                            model=spec,
                            batch_frames=CPU_BATCH_FRAMES,
                            device=torch.device("cpu"),
                        )
                        for part in group
                    ]
                    seconds[place] += time.process_time() - begun
                    labels_N = np.concatenate([labels[v] for part in group for v in part.videos])
                    logp_NC = np.concatenate(parts)
                    loss_N = -logp_NC[np.arange(len(labels_N)), labels_N]
                    losses[place].append(loss_N[labels_N >= 0])
            for kept, found in zip(csl, losses, strict=True):
                kept.append(np.mean(found, axis=0))
        exact_N, fast_N = (np.concatenate(own) for own in csl)
        figures[f"spearman_{scorer}"] = round(float(spearmanr(exact_N, fast_N).statistic), 5)
        figures[f"cpu_ratio_{scorer}"] = round(seconds[0] / seconds[1], 2)
    return figures


def _correlation(before: Audit, after: Audit, scorer: str) -> float:
    videos = [v.id for v in before.held_out_videos() if v.split is Split.AUDIT]
    one_N, other_N = (
        np.concatenate([audit.score(video, "csl", scorer=scorer) for video in videos])
        for audit in (before, after)
    )
    known_N = ~np.isnan(one_N)
    return float(spearmanr(one_N[known_N], other_N[known_N]).statistic)


def _alike(a: Any, b: Any) -> bool:
    shared = min(a.stop, b.stop) - max(a.start, b.start)
    longest = max(a.stop - a.start, b.stop - b.start)
    return bool(a.video == b.video and shared >= longest / 2)


def _write_config(root: Path, path: Path) -> None:
    """The config of a run, which its root holds."""
    path.write_text(yaml.safe_dump(config_as_dict(read_run_config(str(root))), sort_keys=False))


def _csl(*arguments: str) -> None:
    command = [sys.executable, "-m", "csl_dist.cli", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dataset", action="append", choices=["demo", *DATASETS])
    parser.add_argument("--root", action="append", type=Path, default=[], help="a finished run")
    parser.add_argument("--csl", action="store_true", help="of roots, correlations alone")
    parser.add_argument("--set", action="append", default=[], help="SECTION.KEY=VALUE, of datasets")
    given = parser.parse_args()
    figures = {}
    for root in given.root:
        with tempfile.TemporaryDirectory() as folder:
            whole = csl_correlations(root) if given.csl else compare(root, Path(folder))
            figures[str(root)] = whole
    for name in given.dataset or ([] if given.root else ["demo", "gtea", "knot_tying"]):
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = bench_precision(name, given.data, Path(folder), given.set)
            print(f"{name}: {figures[name]}", file=sys.stderr, flush=True)
    print_figures(figures, as_json=given.json)


if __name__ == "__main__":
    main()
