import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from csl_dist.config import TrainConfig
from csl_dist.errors import CheckpointError, DataError, NotReadyError
from csl_dist.storage.url import Storage
from csl_dist.training.checkpoints import CheckpointStore, require_fit
from csl_dist.training.models import ModelSpec, build_scorer
from csl_dist.training.record import metrics_of
from csl_dist.training.train import (
    TrainingTask,
    class_counts,
    class_weights,
    epoch_batches,
    feature_moments,
    learning_rate,
    settings_fingerprint,
    train_epochs,
    video_fingerprints,
    weighted_loss,
)
from csl_dist.types import Annotation, Window

NUM_CLASSES, NUM_FEATURES = 3, 8
LENGTHS = (5, 9, 12, 7)


def annotation(index: int, length: int) -> Annotation:
    labels = np.random.default_rng(index).integers(-1, NUM_CLASSES, size=length)
    return Annotation(video=f"v{index}", labels_T=labels, times_T=np.arange(length) / 5)


def features_of(video: str) -> np.ndarray:
    index = int(video[1:])
    rng = np.random.default_rng(100 + index)
    return rng.normal(3, 2, size=(LENGTHS[index], NUM_FEATURES)).astype(np.float32)


def read_features(window: Window) -> np.ndarray:
    return features_of(window.video)[window.span.start : window.span.stop]


@pytest.fixture
def task() -> TrainingTask:
    return TrainingTask(
        scorer="transformer",
        fold=0,
        model=ModelSpec(
            name="transformer",
            arguments={"preset": "tiny"},
            num_features=NUM_FEATURES,
            num_classes=NUM_CLASSES,
        ),
        config=TrainConfig(epochs=3, learning_rate=1e-3, batch_frames=24),
        classes=("a", "b", "c"),
        encoder="enc",
        annotations=tuple(annotation(i, n) for i, n in enumerate(LENGTHS)),
        fingerprint="training",
    )


def test_class_weights_are_inverse_to_frequency() -> None:
    weights = class_weights(np.array([10.0, 20.0, 70.0]))
    assert np.allclose(weights * [10, 20, 70], 100 / 3)
    assert np.allclose(class_weights(np.array([5.0, 5.0])), 1)


def test_class_that_training_never_sees_weighs_as_the_rarest() -> None:
    weights = class_weights(np.array([10.0, 0.0, 30.0]))
    assert weights[1] == weights[0] == weights.max()


def test_class_counts_leave_unlabelled_frames_out() -> None:
    labels = np.array([-1, 0, 2, 2, -1])
    counts = class_counts([Annotation(video="v", labels_T=labels, times_T=np.arange(5))], 3)
    assert counts.tolist() == [1, 0, 2]


def test_feature_moments_equal_those_of_all_frames_together() -> None:
    arrays = [features_of(f"v{i}") for i in range(4)]
    mean, std = feature_moments(arrays)
    together = np.concatenate(arrays)
    assert np.allclose(mean, together.mean(axis=0), atol=1e-5)
    assert np.allclose(std, together.std(axis=0), atol=1e-5)


def test_feature_that_never_varies_does_not_divide_by_zero() -> None:
    _, std = feature_moments([np.ones((4, 2), dtype=np.float32)])
    assert (std > 0).all()


def test_epoch_loss_equals_a_naive_computation(task: TrainingTask) -> None:
    """Without dropout and at a learning rate of zero, the epoch's loss is that of fresh weights."""
    task = replace(
        task,
        model=replace(task.model, name="framewise", arguments={}),
        config=replace(task.config, epochs=1, learning_rate=1e-30, weighted=True),
    )
    torch.manual_seed(task.config.seed)
    scorer = build_scorer(task.model)
    for module in scorer.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    everything = np.concatenate([features_of(a.video) for a in task.annotations])
    weights = class_weights(class_counts(task.annotations, NUM_CLASSES))
    losses = []
    for batch in epoch_batches(task, epoch=1):
        total = weight = 0.0
        for window in batch:
            a = task.annotations[int(window.video[1:])]
            x = (features_of(a.video) - everything.mean(axis=0)) / everything.std(axis=0)
            logits = scorer.model(torch.from_numpy(x.astype(np.float32))[None], None, None)[0]
            p = torch.softmax(logits, dim=-1).detach().numpy()
            for t, label in enumerate(a.labels_T):
                if label >= 0:
                    total -= weights[label] * np.log(p[t, label])
                    weight += weights[label]
        losses.append(total / weight)

    no_dropout = pytest.MonkeyPatch()
    no_dropout.setattr(torch.nn.Dropout, "forward", lambda self, x: x)
    with no_dropout.context():
        [result] = train_epochs(task, read_features)
    no_dropout.undo()
    assert result.info.metrics["train_loss"] == pytest.approx(np.mean(losses), abs=1e-5)


def test_batches_of_an_epoch_hold_every_video_once(task: TrainingTask) -> None:
    for epoch in (1, 2):
        videos = [window.video for batch in epoch_batches(task, epoch) for window in batch]
        assert sorted(videos) == sorted(a.video for a in task.annotations)
    assert epoch_batches(task, 1) == epoch_batches(task, 1)


def test_training_that_resumes_ends_with_the_same_weights(
    task: TrainingTask, storage: Storage
) -> None:
    undisturbed = list(train_epochs(task, read_features))
    store = CheckpointStore(storage)
    first = next(train_epochs(task, read_features))
    info = store.save(first.info, first.weights, first.resume_state)
    start = (1, store.load(info), store.load_resume_state(1))
    resumed = list(train_epochs(task, read_features, start=start))
    assert [r.info.epoch for r in resumed] == [2, 3]
    for name, tensor in undisturbed[-1].weights.items():
        assert torch.equal(tensor, resumed[-1].weights[name]), name


def test_fingerprint_follows_what_decides_the_weights(task: TrainingTask) -> None:
    class Features:
        def __init__(self, changed: str = ""):
            self.changed = changed

        def fingerprint(self, video: str) -> str:
            return "new" if video == self.changed else "f"

    def made(**changes: object) -> tuple[str, object]:
        parts = {"model": task.model, "config": task.config, "classes": task.classes} | changes
        annotations = parts.pop("annotations", task.annotations)
        features = parts.pop("features", Features())
        videos = video_fingerprints(annotations, features)  # type: ignore[arg-type]
        return settings_fingerprint(**parts), tuple(videos.items())  # type: ignore[arg-type]

    more_epochs = replace(task.config, epochs=9, max_failures=0)
    assert made(config=more_epochs) == made()
    falling = replace(task.config, schedule="cosine")
    assert made(config=falling) != made(config=replace(falling, epochs=9)), "it ends elsewhere"
    relabelled = replace(annotation(9, LENGTHS[0]), video="v0")
    others = [
        made(config=replace(task.config, seed=1)),
        made(config=replace(task.config, learning_rate=1e-2)),
        made(features=Features("v0")),
        made(annotations=(relabelled, *task.annotations[1:])),
        made(classes=("a", "c", "b")),
    ]
    assert len({made(), *others}) == 6


def test_checkpoint_reads_back_and_only_the_newest_can_resume(
    task: TrainingTask, storage: Storage
) -> None:
    store = CheckpointStore(storage)
    saved = [
        store.save(r.info, r.weights, r.resume_state) for r in train_epochs(task, read_features)
    ]
    assert store.infos(3) == saved
    assert store.infos(2) == saved[:2]
    assert store.published_epochs() == [1, 2, 3]
    assert sorted(k for k in storage.list_keys() if "resume" in k) == [
        "epoch-0003/resume.safetensors"
    ]
    assert saved[0].train_ids == ("v0", "v1", "v2", "v3")


def test_strategies_select_among_published_checkpoints(
    task: TrainingTask, storage: Storage
) -> None:
    store = CheckpointStore(storage)
    task = replace(task, config=replace(task.config, epochs=8))
    for r in train_epochs(task, read_features):
        store.save(r.info, r.weights, r.resume_state)
    chosen = {
        strategy: [info.epoch for info in store.select(strategy)]
        for strategy in ("full", "every_2nd", "every_5th", "hybrid", "last", (2, 7))
    }
    assert chosen == {
        "full": [1, 2, 3, 4, 5, 6, 7, 8],
        "every_2nd": [2, 4, 6, 8],
        "every_5th": [5],
        "hybrid": [2, 7],
        "last": [8],
        (2, 7): [2, 7],
    }
    assert [info.epoch for info in store.select("every_2nd", num_epochs=5)] == [2, 4]


def test_metrics_of_every_epoch_lie_beside_the_checkpoints(
    task: TrainingTask, storage: Storage
) -> None:
    store = CheckpointStore(storage)
    results = list(train_epochs(task, read_features))
    for r in [*results, results[1]]:  # the second epoch is done again, after a failure
        store.save(r.info, r.weights, r.resume_state)
    lines = [json.loads(line) for line in storage.read("metrics.jsonl").splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert lines == [
        {"epoch": e, **metrics} for e, metrics in enumerate(metrics_of(storage)[:2], 1)
    ]
    assert lines[0]["train_loss"] == results[0].info.metrics["train_loss"]
    assert lines[0]["learning_rate"] == task.config.learning_rate


@pytest.mark.parametrize("steps", [2, 11])
def test_epoch_of_steps_passes_over_a_part_of_the_videos_or_over_all_several_times(
    task: TrainingTask, steps: int
) -> None:
    config = replace(task.config, batch_frames=1, steps=steps)
    batches = epoch_batches(replace(task, config=config), epoch=1)
    assert len(batches) == steps
    seen = Counter(window.video for batch in batches for window in batch)
    assert max(seen.values()) - min(seen.get(a.video, 0) for a in task.annotations) <= 1
    assert batches != epoch_batches(replace(task, config=config), epoch=2)


def test_unweighted_training_counts_every_frame_alike(task: TrainingTask) -> None:
    config = replace(task.config, epochs=1, learning_rate=1e-30, batch_frames=10**6)
    model = replace(task.model, name="framewise", arguments={})
    made = [replace(task, model=model, config=replace(config, weighted=w)) for w in (True, False)]
    (weighted,), (plain,) = (list(train_epochs(t, read_features)) for t in made)
    assert plain.info.class_weights == (1.0,) * NUM_CLASSES
    assert weighted.info.class_weights != plain.info.class_weights
    assert weighted.info.metrics["train_loss"] != plain.info.metrics["train_loss"]


def test_windows_of_long_videos_are_trained_on_with_their_own_labels(task: TrainingTask) -> None:
    """In windows of four frames, a framewise model sees each frame once: the mean loss agrees."""
    framewise = replace(task.model, name="framewise", arguments={})
    config = replace(task.config, epochs=1, learning_rate=1e-30, batch_frames=10**6)
    losses = []
    no_dropout = pytest.MonkeyPatch()
    no_dropout.setattr(torch.nn.Dropout, "forward", lambda self, x: x)
    for max_frames in (None, 4):
        model = replace(framewise, max_frames=max_frames)
        with no_dropout.context():
            [result] = train_epochs(replace(task, model=model, config=config), read_features)
        losses.append(result.info.metrics["train_loss"])
    no_dropout.undo()
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    windows = [w for b in epoch_batches(replace(task, model=model), 1) for w in b]
    assert sum(len(w.span) for w in windows) == sum(LENGTHS)
    assert len(windows) > len(LENGTHS)


def test_loss_equals_a_naive_sum_and_averages_stages() -> None:
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(size=(2, 3, 4, NUM_CLASSES)))
    targets = torch.from_numpy(rng.integers(-1, NUM_CLASSES, size=(3, 4)))
    weights = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    naive = []
    for stage in logits:
        total = weight = 0.0
        for b in range(3):
            for t in range(4):
                if targets[b, t] >= 0:
                    p = torch.softmax(stage[b, t], dim=0)[targets[b, t]]
                    total -= float(weights[targets[b, t]] * torch.log(p))
                    weight += float(weights[targets[b, t]])
        naive.append(total / weight)
    assert float(weighted_loss(logits, targets, weights)) == pytest.approx(np.mean(naive))
    assert float(weighted_loss(logits[0], targets, weights)) == pytest.approx(naive[0])


def test_learning_rate_rises_then_follows_its_schedule() -> None:
    constant = TrainConfig(epochs=10, learning_rate=1.0)
    assert [learning_rate(constant, e) for e in (0, 5, 9.9)] == [1.0, 1.0, 1.0]
    config = TrainConfig(epochs=10, learning_rate=1.0, schedule="cosine", warmup_epochs=2)
    rates = [learning_rate(config, e) for e in np.linspace(0, 10, 41)]
    assert 0 < rates[0] < 0.01
    assert rates[4] == pytest.approx(0.5)
    assert rates[8] == pytest.approx(1.0)
    assert rates[24] == pytest.approx(0.5), "half-way down"
    assert rates[40] == pytest.approx(0.0)
    assert all(a < b for a, b in pairwise(rates[:9]))
    assert all(a > b for a, b in pairwise(rates[8:]))


def test_checkpoint_without_description_does_not_count(storage: Storage) -> None:
    storage.put("epoch-0001/model.safetensors", b"half")
    assert CheckpointStore(storage).infos(9) == []
    assert CheckpointStore(storage).resume_point(9) == 0


def test_training_resumes_only_after_checkpoints_without_a_gap(
    task: TrainingTask, storage: Storage
) -> None:
    store = CheckpointStore(storage)
    for r in train_epochs(task, read_features):
        store.save(r.info, r.weights, r.resume_state)
    assert store.resume_point(3) == 3
    assert store.resume_point(2) == 2
    assert store.resume_point(5) == 3
    storage.delete("epoch-0003/meta.json")
    assert store.resume_point(3) == 0, "epoch 2 has no optimiser state any more"
    storage.put("epoch-0003/meta.json", b"{}")
    storage.delete("epoch-0002/meta.json")
    assert store.resume_point(3) == 0


def test_checkpoints_of_other_features_or_classes_are_refused(task: TrainingTask) -> None:
    info = next(train_epochs(task, read_features)).info
    require_fit([info], "s", encoder="enc", classes=("a", "b", "c"))
    with pytest.raises(CheckpointError, match="features of encoder enc, but the config has new"):
        require_fit([info], "s", encoder="new", classes=("a", "b", "c"))
    with pytest.raises(CheckpointError, match="know the classes a, b, c, but .* c, b, a"):
        require_fit([info], "s", encoder="enc", classes=("c", "b", "a"))
    with pytest.raises(NotReadyError, match="no checkpoints yet; run `csl train`"):
        require_fit([], "s", encoder="enc", classes=())


def test_training_without_a_labelled_frame_is_refused() -> None:
    with pytest.raises(DataError, match="no labelled frame"):
        class_weights(np.zeros(3))


def test_truncated_checkpoint_is_named(task: TrainingTask, storage: Storage) -> None:
    store = CheckpointStore(storage)
    result = next(train_epochs(task, read_features))
    info = store.save(result.info, result.weights, result.resume_state)
    data = storage.read("epoch-0001/model.safetensors")
    storage.put("epoch-0001/model.safetensors", data[:-10])
    with pytest.raises(CheckpointError, match=r"epoch-0001/model\.safetensors is damaged .*meta"):
        store.load(info)
