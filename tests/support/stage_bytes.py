"""Storage that a plan foresees beside what lies in the run root, by stage."""

from pathlib import Path

from csl_dist.cli.plan import footage_of
from csl_dist.config import CNN, RunConfig
from csl_dist.cost.machines import GPUS, Machines
from csl_dist.cost.plan import plan_run
from csl_dist.training.inputs import open_inputs

MACHINES = Machines(num_gpus=1, gpu=GPUS["a100"], utilisation=0.3, cpus_per_gpu=8)


def planned_bytes(config: RunConfig) -> dict[str, float]:
    """What `csl plan` says of every stage of a run."""
    return {s.stage: s.num_bytes for s in plan_run(config, footage_of(config), MACHINES)}


def stored_bytes(config: RunConfig) -> dict[str, int]:
    """What a run that is done has stored, by the plan's stages."""
    root, inputs = Path(config.root), open_inputs(config)
    base, adapted = inputs.features.base, inputs.features.adapted
    store = root / "features.zarr"
    found = {"extract": size(store / base.encoder)}
    if adapted is not None:
        folds = [fold.index for fold in inputs.run.dataset.folds]
        found["sample"] = found["extract"]
        found["adapt"] = sum(size(folder) for folder in (root / CNN).glob("fold-*"))
        found["extract"] = sum(size(store / adapted(fold).encoder) for fold in folds)
    for scorer in config.scorers:
        scores = [path for path in root.glob(f"scores.zarr/*/{scorer}")]
        scores += root.glob(f"scores.zarr/records/*/{scorer}@*")
        trained = sum(size(folder) for folder in (root / scorer).glob("fold-*"))
        found[f"audit {scorer}"] = size(root / scorer) - trained + sum(map(size, scores))
        if scorer != CNN:
            found[f"train {scorer}"] = trained
    return found


def size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
