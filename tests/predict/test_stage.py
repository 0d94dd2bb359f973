"""Scoring on a real Ray: exact, however many workers there are and whatever happens to them."""

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
from csl_dist.predict import stage as scoring
from csl_dist.predict.actor import ScoreActor
from csl_dist.predict.follow import score_and_follow
from csl_dist.predict.plan import plan_scorers, scored_annotations, unpublished_groups
from csl_dist.predict.pulse import Pulse, read_pulse
from csl_dist.predict.stage import publish, score, scoring_rows
from csl_dist.run import Run, moved_of, open_run
from csl_dist.training.models import Place, build_scorer
from csl_dist.types import Annotation

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
    run = open_run(config_of(folder, folder / "run"))
    write_checkpoints(run, "transformer", NUM_CHECKPOINTS)
    return folder


def config_of(trained: Path, root: Path, **score: Any) -> RunConfig:
    data = {
        "root": str(root),
        "dataset": {"path": str(trained / "data")},
        "scorers": {"transformer": {"arguments": {"preset": "tiny"}}},
        "train": {"epochs": NUM_CHECKPOINTS},
        "score": {"group_frames": 2 * NUM_FRAMES, "dtype": "float32", **score},
    }
    return parse_config(data, where="the test")


def fresh_stage(trained: Path, tmp_path: Path, **score: Any) -> Stage:
    """The trained root, copied, ready to be scored."""
    root = tmp_path / "run"
    shutil.copytree(trained / "run", root)
    return stage_of(config_of(trained, root, **score))


def stage_of(config: RunConfig) -> Stage:
    return Stage(run=open_run(config), console=Console(quiet=True))


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
    score(fresh_stage(trained, tmp_path))
    return stored(tmp_path / "run")


def pool_of(run: Run, num_actors: int) -> ActorPool:
    """As many actors as asked for, on however few CPUs."""
    actor = ray.remote(num_cpus=0.25, max_concurrency=2)(ScoreActor)
    sources = {("transformer", 0): run.features}
    moved = moved_of(scored_annotations(run))
    return ActorPool(
        lambda: actor.remote(run.config.score, run.layout, sources, moved),
        num_actors=num_actors,
        max_retries=3,
    )


def score_with(stage: Stage, pool: ActorPool) -> None:
    plans = plan_scorers(stage.run, scored_annotations(stage.run))
    with pool:
        with scoring_rows(stage, plans) as rows:
            rows.score(plans, pool)
        publish(stage, plans, pool)


@torch.inference_mode()
def naive_log_probabilities(run: Run, annotation: Annotation) -> np.ndarray:
    """(E, T, C) by load, forward of one video, log_softmax."""
    store = run.checkpoint_store("transformer", 0)
    features_TD = run.features.read(annotation.footage)
    if annotation.order_T is not None:
        features_TD = features_TD[annotation.order_T]
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
    score(stage)
    annotations = scored_annotations(stage.run)
    assert sum(annotation.copy_of is not None for annotation in annotations) == NUM_VIDEOS
    for annotation in annotations:
        trajectory = stage.run.trajectories("transformer").trajectory(annotation.video)
        assert trajectory.shape == (NUM_CHECKPOINTS, NUM_FRAMES, NUM_CLASSES)
        naive = naive_log_probabilities(stage.run, annotation)
        assert np.abs(trajectory.read() - naive).max() < 1e-4
    assert read_pulse(stage.run.layout) is None


def test_corrected_label_has_copies_scored_again_and_no_video(
    trained: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained / "data", tmp_path / "data")
    shutil.copytree(trained / "run", tmp_path / "run")
    stage = stage_of(config_of(tmp_path, tmp_path / "run"))
    score(stage)
    labels = tmp_path / "data/v0.txt"
    labels.write_text("\n".join(reversed(labels.read_text().splitlines())) + "\n")
    run = open_run(stage.run.config)
    [plan] = plan_scorers(run, scored_annotations(run))
    again = {video for group in unpublished_groups(run, plan) for video in group.videos}
    assert "v0~swapped" in again
    assert all(video.endswith("~swapped") for video in again)


@pytest.mark.parametrize("num_workers", [1, 2, 4])
def test_number_of_workers_does_not_change_a_byte(
    trained: Path, tmp_path: Path, expected: dict[str, bytes], num_workers: int
) -> None:
    stage = fresh_stage(trained, tmp_path)
    score_with(stage, pool_of(stage.run, num_workers))
    assert stored(tmp_path / "run") == expected


def test_time_left_of_a_resumed_audit_counts_its_own_units_alone(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half the units were done by an earlier run."""
    stage = fresh_stage(trained, tmp_path)
    annotations = scored_annotations(stage.run)
    plans = plan_scorers(stage.run, annotations)
    num_groups = len(plans[0].units)
    first = ShortPool(pool_of(stage.run, 1), 3)
    with first, scoring_rows(stage, plans) as rows:
        rows.score(plans, first)
    said: list[Pulse] = []
    monkeypatch.setattr(scoring, "put_pulse", lambda _, pulse: said.append(pulse))
    monkeypatch.setattr(scoring, "PULSE_SECONDS", 0.0)
    second = pool_of(stage.run, 1)
    with second, scoring_rows(stage, plans) as rows:
        rows.score(plans, second)
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
    plans = plan_scorers(stage.run, scored_annotations(stage.run))
    first, second = (ShortPool(pool_of(stage.run, 2), most) for most in (2, 100))
    with first, scoring_rows(stage, plans) as rows:
        rows.score(plans, first)
    assert stored(tmp_path / "run") == {}
    score_with(stage, second)
    assert (first.asked["work"], second.asked["work"]) == (NUM_CHECKPOINTS, NUM_CHECKPOINTS - 2)
    assert stored(tmp_path / "run") == expected


def test_lost_actors_are_replaced_and_nothing_changes(
    trained: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    stage = fresh_stage(trained, tmp_path)
    pool = pool_of(stage.run, 2)
    made: list[Any] = []
    make_actor = pool._make_actor

    def noted() -> Any:
        made.append(make_actor())
        if len(made) <= 2:
            threading.Timer(1.0, lambda actor=made[-1]: ray.kill(actor)).start()
        return made[-1]

    pool._make_actor = noted
    pool.start(2)
    pool.wait_until_started()
    score_with(stage, pool)
    time.sleep(1.0)
    assert stored(tmp_path / "run") == expected


def truncate(stage: Stage, epoch: int) -> None:
    [path] = Path(stage.run.config.root).rglob(f"epoch-{epoch:04d}/model.safetensors")
    path.write_bytes(path.read_bytes()[:-10])


def test_bad_checkpoint_stops_the_audit_or_is_left_out_and_recorded(
    trained: Path, tmp_path: Path
) -> None:
    stage = fresh_stage(trained, tmp_path)
    truncate(stage, 3)
    with pytest.raises(CheckpointError, match=r"epoch-0003/model.safetensors does not match"):
        score(stage)
    skipping = stage_of(
        replace(stage.run.config, score=replace(stage.run.config.score, on_bad_checkpoint="skip"))
    )
    score(skipping)
    trajectory = skipping.run.trajectories("transformer").trajectory("v0")
    assert trajectory.epochs == [1, 2, 4, 5, 6]
    bad = skipping.run.checkpoint_store("transformer", 0).bad()
    assert list(bad) == [3]
    assert "does not match its meta.json" in bad[3]


def test_scored_weights_go_and_new_videos_say_why_they_can_not_be_scored(
    trained: Path, tmp_path: Path
) -> None:
    stage = with_keep(fresh_stage(trained, tmp_path), "last")
    score(stage)
    store = stage.run.checkpoint_store("transformer", 0)
    assert store.loadable_epochs() == [NUM_CHECKPOINTS]
    assert store.published_epochs() == list(range(1, NUM_CHECKPOINTS + 1))
    score(stage)
    stage.run.trajectories("transformer").remove("v0")
    with pytest.raises(NotReadyError, match=r"model.safetensors is gone: checkpoints.keep"):
        score(stage)


def test_following_scores_checkpoints_as_they_appear(
    trained: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    stage = with_keep(fresh_stage(trained, tmp_path), "last")
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
    score_and_follow(stage)
    training.join()
    assert stored(tmp_path / "run") == expected
    assert stage.run.checkpoint_store("transformer", 0).loadable_epochs() == [NUM_CHECKPOINTS]


def test_selection_of_a_training_in_progress_is_that_of_the_finished_one(
    trained: Path, tmp_path: Path
) -> None:
    stage = fresh_stage(trained, tmp_path, checkpoints="hybrid")
    annotations = scored_annotations(stage.run)
    [finished] = plan_scorers(stage.run, annotations)
    for path in (tmp_path / "run").rglob("epoch-0006"):
        shutil.rmtree(path)
    [so_far] = plan_scorers(stage.run, annotations, so_far=True)
    assert so_far.epochs_of(0) <= finished.epochs_of(0)
    assert so_far.num_expected == finished.num_units
