"""Prediction on a real Ray: exact, however many workers there are and whatever happens to them."""

import io
import re
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
import torch
from builder import NUM_CLASSES, write_checkpoints, write_random_dataset
from rich.console import Console

from csl_dist.cluster.pool import ActorPool
from csl_dist.cluster.stage import Stage
from csl_dist.config import CheckpointsConfig, RunConfig, parse_config
from csl_dist.errors import CheckpointError, NotReadyError
from csl_dist.predict import plan as planning
from csl_dist.predict import stage as prediction
from csl_dist.predict.actor import PredictActor
from csl_dist.predict.follow import follow_training
from csl_dist.predict.plan import checkpoints_done, first_sweep, plan_scorers, store_of
from csl_dist.predict.pulse import Pulse, read_pulse
from csl_dist.predict.stage import predict, publish, row_prediction
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.training.models import Place, build_scorer
from csl_dist.types import Annotation, Split

pytestmark = [
    pytest.mark.usefixtures("ray_session"),
    pytest.mark.xdist_group("ray"),
    pytest.mark.timeout(200),
]

NUM_VIDEOS, NUM_FRAMES, NUM_CHECKPOINTS = 5, 60, 6


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of features, and a run root with checkpoints that nothing is scored with."""
    folder = tmp_path_factory.mktemp("trained")
    sizes = {"num_videos": NUM_VIDEOS, "num_frames": NUM_FRAMES}
    write_random_dataset(folder / "data", **sizes, split="audit")
    inputs = open_inputs(config_of(folder, folder / "run"))
    write_checkpoints(inputs, "transformer", NUM_CHECKPOINTS)
    return folder


def config_of(trained: Path, root: Path, **predict: Any) -> RunConfig:
    data = {
        "root": str(root),
        "dataset": {"path": str(trained / "data")},
        "scorers": {"transformer": {"arguments": {"preset": "tiny"}}},
        "train": {"epochs": NUM_CHECKPOINTS},
        "predict": {"group_frames": 2 * NUM_FRAMES, "dtype": "float32", **predict},
        "flag": {"rule": "validation"},
    }
    return parse_config(data, where="the test")


def fresh_stage(trained: Path, tmp_path: Path, **predict: Any) -> Stage:
    """The trained root, copied, ready to be scored."""
    root = tmp_path / "run"
    shutil.copytree(trained / "run", root)
    return stage_of(config_of(trained, root, **predict))


def stage_of(config: RunConfig) -> Stage:
    return Stage(inputs=open_inputs(config), console=Console(quiet=True))


def with_keep(stage: Stage, keep: Any) -> Stage:
    return stage_of(replace(stage.run.config, checkpoints=CheckpointsConfig(keep=keep)))


def stored(root: Path) -> dict[str, bytes]:
    folder = root / "transformer/trajectories.zarr"
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def expected(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed audit stores."""
    tmp_path = tmp_path_factory.mktemp("expected")
    predict(fresh_stage(trained, tmp_path))
    return stored(tmp_path / "run")


def pool_of(inputs: Inputs, num_actors: int) -> ActorPool:
    """As many actors as asked for, on however few CPUs."""
    actor = ray.remote(num_cpus=0.25, max_concurrency=2)(PredictActor)
    sources = {("transformer", 0): inputs.features.base}
    derived, run = inputs.labels.derived(Split.AUDIT), inputs.run
    return ActorPool(
        lambda: actor.remote(run.config.predict, run.paths, sources, derived),
        num_actors=num_actors,
        max_retries=3,
    )


def predict_with(stage: Stage, pool: ActorPool) -> None:
    plans = plan_scorers(stage.inputs)
    with pool:
        with row_prediction(stage, plans) as rows:
            rows.predict(plans, pool)
        publish(stage, plans, pool)


@torch.inference_mode()
def naive_log_probabilities(inputs: Inputs, annotation: Annotation) -> np.ndarray:
    """(E, T, C) by load, forward of one video, log_softmax."""
    store = inputs.checkpoints.store("transformer", 0)
    order_T = np.searchsorted(annotation.times_T, annotation.source_times_T)
    features_TD = inputs.features.base.read(annotation.original)[order_T]
    x = torch.from_numpy(features_TD)[None]
    place = Place(torch.arange(NUM_FRAMES)[None].float(), torch.tensor([float(NUM_FRAMES)]))
    rows = []
    for info in store.infos():
        model = build_scorer(info.model).eval()
        model.load_state_dict(store.load(info))
        logits = model(x, torch.zeros(1, NUM_FRAMES, dtype=torch.bool), place)[0]
        rows.append(logits.log_softmax(dim=-1).numpy())
    return np.stack(rows)


def test_trajectories_are_those_of_a_naive_loop(trained: Path, tmp_path: Path) -> None:
    stage = fresh_stage(trained, tmp_path)
    predict(stage)
    annotations = stage.inputs.labels.held_out()
    assert sum(annotation.original != annotation.video for annotation in annotations) == NUM_VIDEOS
    for annotation in annotations:
        trajectory = store_of(stage.inputs, "transformer").trajectory(annotation.video)
        assert trajectory.shape == (NUM_CHECKPOINTS, NUM_FRAMES, NUM_CLASSES)
        naive = naive_log_probabilities(stage.inputs, annotation)
        assert np.abs(trajectory.read() - naive).max() < 1e-4
    assert read_pulse(stage.run.paths) is None


def test_corrected_label_has_its_copy_predicted_again_and_nothing_else(
    trained: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained / "data", tmp_path / "data")
    shutil.copytree(trained / "run", tmp_path / "run")
    stage = stage_of(config_of(tmp_path, tmp_path / "run"))
    predict(stage)
    labels = tmp_path / "data/v0.txt"
    labels.write_text("\n".join(reversed(labels.read_text().splitlines())) + "\n")
    inputs = open_inputs(stage.run.config)
    [plan] = plan_scorers(inputs)
    assert set(plan.rows) == {"v0~swapped"}


@pytest.mark.parametrize("num_workers", [1, 2, 4])
def test_number_of_workers_does_not_change_a_byte(
    trained: Path, tmp_path: Path, expected: dict[str, bytes], num_workers: int
) -> None:
    stage = fresh_stage(trained, tmp_path)
    predict_with(stage, pool_of(stage.inputs, num_workers))
    assert stored(tmp_path / "run") == expected


def test_time_left_of_a_resumed_audit_counts_its_own_units_alone(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half the units were done by an earlier run, a checkpoint in each slice."""
    monkeypatch.setattr(planning, "WEIGHTS_AT_ONCE", 0)
    stage = fresh_stage(trained, tmp_path)
    annotations = stage.inputs.labels.held_out()
    plans = plan_scorers(stage.inputs)
    num_groups = len(plans[0].units)
    first = ShortPool(pool_of(stage.inputs, 1), 3)
    with first, row_prediction(stage, plans) as rows:
        rows.predict(plans, first)
    said: list[Pulse] = []
    monkeypatch.setattr(prediction, "put_pulse", lambda _, pulse: said.append(pulse))
    monkeypatch.setattr(prediction, "PULSE_SECONDS", 0.0)
    second = pool_of(stage.inputs, 1)
    with second, row_prediction(stage, plans) as rows:
        rows.predict(plans, second)
        busy = rows._busy_seconds
    assert [pulse.units_done for pulse in said] == [num_groups * n for n in (4, 5, 6)]
    assert said[-1].seconds_left == 0
    # After one slice of three, the seconds so far stand for each of the other two.
    assert said[0].seconds_left is not None
    assert 0 < said[0].seconds_left / 2 < busy
    frames_left = 2 * len(annotations) * NUM_FRAMES
    assert said[0].frame_rate * said[0].seconds_left == pytest.approx(frames_left)


class ShortPool(ActorPool):
    """Does so many tasks and no more, and remembers what it was asked to do."""

    def __init__(self, pool: ActorPool, most: int):
        self.__dict__ |= pool.__dict__
        self._most = most
        self.asked: dict[str, int] = {}

    def run(self, tasks: Any, *, method: str = "work", prefetch: bool = False) -> Any:
        self.asked[method] = len(tasks)
        return super().run(tasks[: self._most], method=method, prefetch=prefetch)


def test_interrupted_and_resumed_scoring_ends_with_the_same_bytes(
    trained: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    stage = fresh_stage(trained, tmp_path)
    plans = plan_scorers(stage.inputs)
    first, second = (ShortPool(pool_of(stage.inputs, 2), most) for most in (2, 100))
    with first, row_prediction(stage, plans) as rows:
        rows.predict(plans, first)
    assert stored(tmp_path / "run") == {}
    predict_with(stage, second)
    assert (first.asked["work"], second.asked["work"]) == (NUM_CHECKPOINTS, NUM_CHECKPOINTS - 2)
    assert stored(tmp_path / "run") == expected


def test_lost_actors_are_replaced_and_nothing_changes(
    trained: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    stage = fresh_stage(trained, tmp_path)
    pool = LosingPool(pool_of(stage.inputs, 2))
    pool.start(2)
    pool.wait_until_started()
    predict_with(stage, pool)
    assert pool.killed_with > 0, "there was work to do"
    assert pool.num_lost > 0
    assert stored(tmp_path / "run") == expected


class LosingPool(ActorPool):
    """Loses all its actors once, as soon as the first of some tasks is done."""

    def __init__(self, pool: ActorPool):
        self.__dict__ |= pool.__dict__
        self.killed_with = 0
        """Tasks that were not done then."""

    def run(self, tasks: Any, *, method: str = "work", prefetch: bool = False) -> Any:
        for done in super().run(tasks, method=method, prefetch=prefetch):
            if not self.killed_with:
                self.killed_with = len(self._running) + len(self._waiting)
                for member in self._members:
                    ray.kill(member.actor)
            yield done


def truncate(stage: Stage, epoch: int) -> None:
    [path] = Path(stage.run.config.root).rglob(f"epoch-{epoch:04d}/model.safetensors")
    path.write_bytes(path.read_bytes()[:-10])


def test_bad_checkpoint_stops_the_audit_or_is_left_out_and_recorded(
    trained: Path, tmp_path: Path
) -> None:
    stage = fresh_stage(trained, tmp_path)
    truncate(stage, 3)
    with pytest.raises(CheckpointError, match=r"epoch-0003/model.safetensors is damaged"):
        predict(stage)
    skipping = stage_of(
        replace(
            stage.run.config, predict=replace(stage.run.config.predict, on_bad_checkpoint="skip")
        )
    )
    predict(skipping)
    trajectory = store_of(skipping.inputs, "transformer").trajectory("v0")
    assert trajectory.epochs == [1, 2, 4, 5, 6]
    bad = skipping.inputs.checkpoints.store("transformer", 0).bad()
    assert list(bad) == [3]
    assert "is damaged" in bad[3]


def test_used_weights_go_and_a_new_video_gets_the_checkpoint_that_is_left(
    trained: Path, tmp_path: Path
) -> None:
    stage = with_keep(fresh_stage(trained, tmp_path), "last")
    predict(stage)
    store = stage.inputs.checkpoints.store("transformer", 0)
    assert store.loadable_epochs() == [NUM_CHECKPOINTS]
    assert store.published_epochs() == list(range(1, NUM_CHECKPOINTS + 1))
    predict(stage)
    trajectories = store_of(stage.inputs, "transformer")
    trajectories.remove("v0")
    before = stored(tmp_path / "run")
    predict(stage)
    assert trajectories.trajectory("v0").epochs == [NUM_CHECKPOINTS]
    after = stored(tmp_path / "run")
    assert {key for key in after if after[key] != before.get(key)} == {
        key for key in after if key.startswith("v0/")
    }
    for path in (tmp_path / "run").rglob("model.safetensors"):
        path.unlink()
    trajectories.remove("v1")
    with pytest.raises(NotReadyError, match=r"model.safetensors is gone: checkpoints.keep"):
        predict(stage)


def test_following_scores_checkpoints_as_they_appear(
    trained: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    said = io.StringIO()
    stage = with_keep(fresh_stage(trained, tmp_path), "last")
    stage = replace(stage, console=Console(file=said, width=100))
    folder = next((tmp_path / "run").rglob("epoch-0001")).parent
    hidden = tmp_path / "hidden"
    shutil.move(folder, hidden)
    folder.mkdir()

    def publish_slowly() -> None:
        for path in sorted(hidden.glob("epoch-*")):
            time.sleep(1.5)
            path.rename(folder / path.name)

    training = threading.Thread(target=publish_slowly)
    training.start()
    follow_training(stage)
    predict(stage)
    training.join()
    assert stored(tmp_path / "run") == expected
    assert stage.inputs.checkpoints.store("transformer", 0).loadable_epochs() == [NUM_CHECKPOINTS]
    passes = re.findall(r"predict: units: ([0-9]+) of ([0-9]+) in", said.getvalue())
    assert len(passes) == 1, "all checkpoints in one"
    assert passes[0][0] == passes[0][1] != "0"


def test_selection_of_a_training_in_progress_is_that_of_the_finished_one(
    trained: Path, tmp_path: Path
) -> None:
    stage = fresh_stage(trained, tmp_path, checkpoints="hybrid")
    [finished] = plan_scorers(stage.inputs)
    for path in (tmp_path / "run").rglob("epoch-0006"):
        shutil.rmtree(path)
    [so_far] = plan_scorers(stage.inputs, so_far=True)
    assert so_far.epochs_of(0) <= finished.epochs_of(0)
    assert so_far.num_expected == finished.num_units


def without_versions(files: dict[str, bytes]) -> dict[str, bytes]:
    """Files of trajectories by video and place: sweeps publish a video several times."""
    return {re.sub(r"/0000[0-9]+/", "/", key): content for key, content in files.items()}


def test_sweeps_interrupted_anywhere_end_with_the_same_bytes(
    trained: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    stage = fresh_stage(trained, tmp_path, sweeps=True)
    store = store_of(stage.inputs, "transformer")
    assert first_sweep(stage.inputs) == 0
    predict(stage, sweep=0)
    assert store.trajectory("v0").epochs == [6]
    assert checkpoints_done(stage.inputs) == (1, 6)
    predict(stage, sweep=1)
    assert store.trajectory("v0").epochs == [5, 6]
    assert first_sweep(stage.inputs) == 1, "is done, but perhaps not its audit"
    # A run that is killed in the third sweep, or that predicted more beside a training.
    plans = plan_scorers(stage.inputs)
    short = ShortPool(pool_of(stage.inputs, 2), 1)
    with short, row_prediction(stage, plans) as rows:
        rows.predict(plans, short)
    assert not predict(stage, sweep=1), "coarser sweeps stay done"
    assert predict(stage, sweep=2)
    kept = set(store.trajectory("v0").epochs)
    assert kept >= {2, 4, 5, 6}
    assert first_sweep(stage.inputs) == 2
    predict(stage)
    assert without_versions(stored(tmp_path / "run")) == without_versions(expected)
    assert checkpoints_done(stage.inputs) == (6, 6)
    assert first_sweep(stage.inputs) == 3
