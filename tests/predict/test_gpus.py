"""Prediction on more GPUs than there are checkpoints; the GPUs are logical, their schedule real."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builder import write_checkpoints, write_random_dataset

from csl_dist.config import load_config
from csl_dist.training.inputs import open_inputs

pytestmark = pytest.mark.xdist_group("ray")

SCRIPT = """
import sys
import ray
from rich.console import Console
from csl_dist.config import load_config
from csl_dist.cluster.pool import ActorPool
from csl_dist.cluster.stage import Stage
from csl_dist.predict.stage import predict
from csl_dist.training.inputs import open_inputs

ray.init(
    "local",
    num_cpus=2,
    num_gpus=int(sys.argv[2]),
    include_dashboard=False,
    log_to_driver=False,
)
asked = []
run = ActorPool.run

def noted(self, tasks, **given):
    asked.append((self.num_actors, len(tasks)))
    return run(self, tasks, **given)

ActorPool.run = noted
predict(Stage(inputs=open_inputs(load_config(sys.argv[1])), console=Console(quiet=True)))
print(asked[0])
"""


def predicted(folder: Path, num_gpus: int) -> tuple[str, dict[str, bytes]]:
    """Actors and tasks of prediction, and the bytes that it stores."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder / "c.yaml"), str(num_gpus)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    store = folder / "run/framewise/trajectories.zarr"
    files = [path for path in store.rglob("*") if path.is_file()]
    asked = result.stdout.strip().splitlines()[-1]
    return asked, {str(path.relative_to(store)): path.read_bytes() for path in files}


@pytest.mark.timeout(200)
def test_gpus_without_a_checkpoint_of_their_own_share_one(tmp_path: Path) -> None:
    write_random_dataset(tmp_path / "data", num_videos=6, num_frames=50, split="audit")
    for name in ("gpus", "cpus"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.yaml").write_text(
            f"root: {tmp_path}/{name}/run\n"
            f"dataset: {{path: {tmp_path}/data}}\n"
            "scorers: {framewise: {}}\n"
            "train: {epochs: 2}\n"
            "predict: {group_frames: 100}\n"
        )
    write_checkpoints(open_inputs(load_config(tmp_path / "gpus/c.yaml")), "framewise", 2)
    shutil.copytree(tmp_path / "gpus/run", tmp_path / "cpus/run")
    asked, on_gpus = predicted(tmp_path / "gpus", 4)
    assert asked == "(4, 4)", "three groups, one of them in two parts, for four GPUs"
    asked, on_cpus = predicted(tmp_path / "cpus", 0)
    assert asked == "(2, 3)", "a group with both of its checkpoints"
    assert on_gpus == on_cpus
    assert on_gpus
