import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from csl_dist.errors import ConfigError
from csl_dist.training.trackers import open_trackers, require_trackers


def test_tensorboard_gets_every_metric_of_every_epoch(tmp_path: Path) -> None:
    with open_trackers(["tensorboard"], "mine/fold-0", str(tmp_path)) as track:
        for epoch in (1, 2):
            track(epoch, {"train_loss": 1.0 / epoch, "learning_rate": 0.1})
    [events] = (tmp_path / "mine/fold-0").glob("events.out.tfevents.*")
    from tensorboardX.proto.event_pb2 import Event

    data, values = events.read_bytes(), []
    while data:  # records: length (8 bytes), its checksum (4), the event, its checksum (4)
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        values += [(event.step, v.tag, round(v.simple_value, 3)) for v in event.summary.value]
        data = data[16 + length :]
    assert values == [
        (1, "train_loss", 1.0),
        (1, "learning_rate", 0.1),
        (2, "train_loss", 0.5),
        (2, "learning_rate", 0.1),
    ]


def test_mlflow_gets_every_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}")
    with open_trackers(["mlflow"], "mine/fold-0", "root") as track:
        track(1, {"train_loss": 2.0})
        track(2, {"train_loss": 1.0})
    client = mlflow.MlflowClient()
    [run] = client.search_runs([client.get_experiment_by_name("csl_dist").experiment_id])
    history = client.get_metric_history(run.info.run_id, "train_loss")
    assert [(m.step, m.value) for m in history] == [(1, 2.0), (2, 1.0)]


def test_error_of_a_training_is_told_though_mlflow_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Client:
        def get_experiment_by_name(self, name: str) -> SimpleNamespace:
            return SimpleNamespace(experiment_id="1")

        def create_run(self, experiment: str, **_: object) -> SimpleNamespace:
            return SimpleNamespace(info=SimpleNamespace(run_id="2"))

        def set_terminated(self, run: str, status: str = "FINISHED") -> None:
            raise ConnectionError(f"run {run} can't become {status}")

    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=Client))
    with (
        pytest.raises(ConfigError, match="the user's mistake"),
        open_trackers(["mlflow"], "mine/fold-0", "root"),
    ):
        raise ConfigError("the user's mistake")
    assert "run 2 can't become FAILED" in caplog.text


def test_trackers_that_cannot_be_used_are_refused_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="TensorBoard writes to local folders alone"):
        require_trackers(["tensorboard"], "s3://bucket/run/tensorboard")
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(ConfigError, match="mlflow needs the package mlflow"):
        require_trackers(["mlflow"], "/runs/x/tensorboard")
