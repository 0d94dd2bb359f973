from dataclasses import replace
from pathlib import Path

import pytest
from builder import write_features

from csl_dist.cli.app import main
from csl_dist.config import AdaptConfig, RunConfig, ScorerConfig
from csl_dist.cost import forecast as forecasting
from csl_dist.cost.forecast import Forecast, forecast, shares_left
from csl_dist.cost.recipes import Machine
from csl_dist.cost.words import size_words, time_words
from csl_dist.training.inputs import open_inputs

LAPTOP = Machine(cores=2, memory_gb=16, gpus=0)


def csl(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["csl", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def made(config: RunConfig) -> Forecast:
    inputs = open_inputs(config)
    return forecast(config, inputs.run.dataset, LAPTOP, left=shares_left(inputs))


def test_short_run_is_forecast_without_a_measurement(
    small_config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasting, "measured_rates", lambda *_: pytest.fail("measured"))
    found = made(small_config)
    assert [stage.stage for stage in found.stages] == [
        "extract",
        *("train transformer", "audit transformer", "train framewise", "audit framewise"),
        "score, flag, report",
    ]
    assert all(stage.seconds > 0 for stage in found.stages)
    assert found.refusal(small_config.root) is None
    assert found.advice() is None


def test_run_of_vit_b_for_hours_is_measured_and_advice_given(
    small_config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"transformer": ScorerConfig(arguments={"preset": "vit_b"})}
    config = replace(small_config, scorers=large, train=replace(small_config.train, epochs=2000))
    measured = []

    def slow(config: RunConfig, footage: object, video: object, effort: object) -> object:
        measured.append(effort)
        return forecasting.slow_rates(config, footage)  # type: ignore[arg-type]

    monkeypatch.setattr(forecasting, "measured_rates", slow)
    found = made(config)
    assert measured == [forecasting.BRIEF]
    assert "a smaller preset" in str(found.advice())
    assert found.num_bytes > 2000 * 80e6 * 4, "the weights of every epoch"
    small = replace(found, free_bytes=50e9)
    assert "checkpoints.keep: last" in str(small.refusal("runs/x"))


def test_stage_that_is_done_is_not_forecast(small_config: RunConfig) -> None:
    inputs = open_inputs(small_config)
    write_features(inputs)
    left = shares_left(inputs)
    assert left["extract"] == 0
    assert left["train framewise"] == 1
    assert made(small_config).stages[0].stage == "train transformer"


def test_dry_run_says_what_a_run_would_do_and_writes_nothing(
    small_config_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert csl(monkeypatch, "run", small_config_file, "--dry-run") == 0
    said = capsys.readouterr().out
    assert said.startswith("looking at the data"), "measuring takes seconds"
    assert "train framewise" in said
    assert said.endswith(f"next: csl run {small_config_file}\n")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["run", "check"])
def test_disk_that_is_too_small_is_refused_before_the_start(
    small_config_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.setattr(forecasting, "free_bytes", lambda root: 1e6)
    assert csl(monkeypatch, command, small_config_file) == 2
    assert "has 1 MB free" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("features.weights=imagenet", "weights of ResNet-18 can't be downloaded"),
        ("scorers={transformer: {arguments: {preset: huge}}}", "preset 'huge' is not one of"),
        ("scorers={mine: {model: 'no_such.module:Net'}}", "no_such"),
        ("train.workers=500", "train.workers is 500, but this machine has"),
    ],
)
def test_check_tells_what_a_run_would_refuse(
    small_config_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    setting: str,
    words: str,
) -> None:
    monkeypatch.setattr("torch.hub.get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert csl(monkeypatch, "check", small_config_file, "--set", setting) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_words_have_two_figures() -> None:
    times = [3, 62, 100, 3000, 7200, 200_000]
    assert [time_words(t) for t in times] == ["5 s", "60 s", "2 min", "50 min", "2.0 h", "2.3 days"]
    assert [size_words(n) for n in (1, 2.34e8, 3.47e11)] == ["1 MB", "234 MB", "347.0 GB"]


def test_adapted_encoder_is_forecast_stage_by_stage(small_config: RunConfig) -> None:
    config = replace(
        small_config,
        features=replace(small_config.features, adapt=AdaptConfig(epochs=2, fps=5)),
        scorers={"framewise": ScorerConfig(), "cnn": ScorerConfig()},
    )
    inputs = open_inputs(config)
    left = shares_left(inputs)
    found = forecast(config, inputs.run.dataset, LAPTOP, left=left)
    words = {stage.stage: stage.work for stage in found.stages}
    stages = ["sample", "adapt", "extract", "train framewise", "audit framewise", "audit cnn"]
    assert list(words)[:-1] == stages
    assert set(left) == set(stages)
    assert words["adapt"] == "2 epochs"
    assert words["train framewise"] == "3 epochs"
    assert words["audit cnn"].endswith("x 2 checkpoints")
    frames = {name: int(words[name].split()[0]) for name in ("sample", "extract")}
    assert 0 < frames["sample"] < frames["extract"]
