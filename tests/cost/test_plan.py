"""Plans of runs, against sums done by hand and against what a run really writes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from csl_dist.cli import main
from csl_dist.config import AdaptConfig, RunConfig, ScorerConfig, load_config
from csl_dist.cost.flops import encoder_flops, forward_flops
from csl_dist.cost.footage import Footage, supposed_footage
from csl_dist.cost.machines import GPUS, Machines
from csl_dist.cost.measure import Effort
from csl_dist.cost.plan import StagePlan, dollars_of, num_groups, plan_run
from csl_dist.cost.rates import Rates, StageRate, read_rates, write_rates
from csl_dist.cost.storage import USUAL_SHARES, audit_bytes, store_bytes
from csl_dist.predict.units import plan_groups
from csl_dist.training.models import ModelSpec, build_scorer
from csl_dist.types import Annotation

MACHINES = Machines(num_gpus=4, gpu=GPUS["a100"], utilisation=0.5, cpus_per_gpu=8)
STAGES = ("train", "audit")
CHOLEC80 = Path(__file__).parents[2] / "configs" / "cholec80.yaml"


@pytest.fixture
def footage() -> Footage:
    return Footage(
        train=(100, 200), held_out=(60, 60), has_pixels=True, num_classes=7, num_features=512
    )


def scorer_of(name: str, **arguments: object) -> ModelSpec:
    return ModelSpec(name=name, arguments=dict(arguments), num_features=512, num_classes=7)


def test_flops_of_a_transformer_are_those_of_its_products() -> None:
    spec = scorer_of("transformer", preset="tiny")
    scorer = build_scorer(spec)
    width, hidden, layers, num_frames = 64, 256, 2, 1000
    head = sum(m.weight.numel() for m in scorer.modules() if isinstance(m, torch.nn.Linear))
    head -= layers * (4 * width * width + 2 * width * hidden)
    per_layer = num_frames * (4 * width**2 + 2 * width * hidden) + 2 * num_frames**2 * width
    expected = 2 * (layers * per_layer + num_frames * head)
    assert forward_flops(spec, [num_frames]) == pytest.approx(expected, rel=1e-6)


def test_long_videos_are_counted_in_windows() -> None:
    spec = scorer_of("transformer", preset="tiny")
    windowed = replace(spec, max_frames=1000)
    assert forward_flops(windowed, [1000]) == forward_flops(spec, [1000])
    assert forward_flops(windowed, [10_000]) < forward_flops(spec, [10_000])


def test_groups_are_those_that_scoring_forms() -> None:
    lengths = [5, 100, 41, 40, 43, 42, 7, 300, 99, 98]
    annotations = [
        Annotation(video=str(n), labels_T=torch.zeros(n).numpy(), times_T=torch.zeros(n).numpy())
        for n in lengths
    ]
    features = {a.video: "" for a in annotations}
    for group_frames in (50, 100, 150, 1000):
        groups = plan_groups(annotations, features, fold=0, group_frames=group_frames)
        assert num_groups(sorted(lengths, key=str), group_frames) == len(groups)


def test_plan_counts_units_and_bytes(small_config: RunConfig, footage: Footage) -> None:
    stages = {stage.stage: stage for stage in plan_run(small_config, footage, MACHINES)}
    assert list(stages) == [
        "extract",
        "train transformer",
        "audit transformer",
        "train framewise",
        "audit framewise",
    ]
    assert stages["extract"].num_units == 4 + 7 + 2 + 2
    assert stages["extract"].num_bytes == store_bytes(
        [100, 200, 60, 60],
        num_rows=420,
        width=512,
        dtype="float16",
        share=USUAL_SHARES.features,
    )
    assert stages["train framewise"].num_units == 3
    assert stages["audit framewise"].num_units == 3
    assert stages["audit framewise"].num_bytes == audit_bytes(
        [60, 60], num_classes=7, num_epochs=3, dtype="float16"
    )
    assert all(stage.hours > 0 for stage in stages.values())
    assert dollars_of(list(stages.values()), MACHINES) == pytest.approx(
        sum(stage.hours for stage in stages.values()) * 4 * GPUS["a100"].dollars
    )


def test_plan_counts_what_an_adapted_encoder_takes(
    small_config: RunConfig, footage: Footage
) -> None:
    adapt = AdaptConfig(trainable_stages=2, epochs=5)
    config = replace(
        small_config,
        features=replace(small_config.features, size=224, adapt=adapt),
        scorers={"framewise": ScorerConfig(), "cnn": ScorerConfig()},
    )
    sampled = replace(footage, sample=(10, 20))
    stages = {stage.stage: stage for stage in plan_run(config, sampled, MACHINES)}
    assert list(stages) == [
        *("sample", "adapt", "extract", "train framewise", "audit framewise", "audit cnn")
    ]
    assert stages["sample"].num_bytes == store_bytes(
        [100, 200, 60, 60],
        num_rows=30,
        width=128 * 28**2,
        dtype="float16",
        share=USUAL_SHARES.activations,
    )
    frozen, last = encoder_flops(config.features)
    assert frozen + last == pytest.approx(2 * 1.814e9, rel=0.01), "as torchvision documents"
    assert last == pytest.approx(2 * 0.822e9, rel=0.01), "two stages of 0.411 G each"
    assert stages["adapt"].flops == pytest.approx(30 * last * 3 * 5)
    assert stages["extract"].flops == pytest.approx(420 * (frozen + last))
    assert stages["audit cnn"].flops == pytest.approx(120 * (frozen + 5 * last))
    with_folds = plan_run(config, replace(sampled, num_folds=2), MACHINES)
    assert with_folds[2].flops == pytest.approx(120 * (frozen + 2 * last)), "decoded once for both"


def test_one_training_does_not_get_faster_with_more_gpus(
    small_config: RunConfig, footage: Footage
) -> None:
    stages = plan_run(small_config, footage, MACHINES)
    assert {s.limit for s in stages if s.stage.startswith("train")} == {"1 GPU"}
    assert {s.limit for s in stages if s.stage.startswith("audit")} == {"3 GPUs"}


def rates_of(*, on_gpu: bool) -> Rates:
    stages = ("extract", *(f"{do} {n}" for n in ("transformer", "framewise") for do in STAGES))
    rate = StageRate(flops_per_second=1e12, num_frames=100)
    return Rates(
        device="it", on_gpu=on_gpu, stages=dict.fromkeys(stages, rate), decoded_per_cpu=7.0
    )


def test_measured_rates_replace_peak_and_utilisation(
    small_config: RunConfig, footage: Footage
) -> None:
    machines = replace(MACHINES, rates=rates_of(on_gpu=True))
    for stage in plan_run(small_config, footage, machines):
        if stage.stage == "extract":
            assert stage.hours == pytest.approx(420 / 7 / 32 / 3600)
            assert stage.limit == "decoding on 32 CPUs"
        else:
            num_gpus = int(stage.limit.split()[0])
            assert stage.hours == pytest.approx(stage.flops / 1e12 / num_gpus / 3600)


def test_cores_decode_and_encode_in_turn(small_config: RunConfig, footage: Footage) -> None:
    machines = replace(MACHINES, rates=rates_of(on_gpu=False))
    extract, *others = plan_run(small_config, footage, machines)
    assert extract.hours == pytest.approx((extract.flops / 1e12 + 420 / 7) / 4 / 3600)
    assert extract.limit == "4 cores"
    assert others[0].limit == "1 core"


def test_copies_are_scored_but_not_extracted(small_config: RunConfig, footage: Footage) -> None:
    extract, train, audit, *_ = plan_run(small_config, footage, MACHINES)
    copied = replace(footage, copies=footage.held_out)
    again = plan_run(small_config, copied, MACHINES)
    assert (again[0], again[1]) == (extract, train)
    assert again[2].flops == pytest.approx(2 * audit.flops)
    assert again[2].num_bytes == pytest.approx(2 * audit.num_bytes)
    assert again[2].num_units == 2 * audit.num_units


def test_supposed_footage_splits_as_the_paper_does() -> None:
    config = load_config(CHOLEC80, ["flag.rule=validation"])
    footage = supposed_footage(config, num_videos=80, minutes=1, num_classes=7, num_features=512)
    assert (len(footage.train), len(footage.held_out), len(footage.copies)) == (50, 30, 0)
    assert footage.train[0] == 900
    assert footage.sample == (60,) * 50, "one frame a second"
    copied = replace(config, audit=replace(config.audit, swapped_copies=10))
    footage = supposed_footage(copied, num_videos=80, minutes=1, num_classes=7, num_features=512)
    assert len(footage.copies) == 10, "of the videos that validate"


def test_plan_of_a_dataset_prints_a_table(
    small_config_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["csl", str(small_config_file), "--gpus", "2"])
    with pytest.raises(SystemExit) as end:
        main("plan")
    assert end.value.code == 0
    assert "audit framewise" in capsys.readouterr().out


def plan(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of `csl plan`."""
    monkeypatch.setattr("sys.argv", ["csl", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main("plan")
    return int(end.value.code or 0)


def test_rates_are_measured_and_used_again(
    small_config_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("csl_dist.cost.measure.THOROUGH", Effort(0.0, 1))
    file = tmp_path / "rates.json"
    assert plan(monkeypatch, small_config_file, "--measure", file, "--price", 0.05) == 0
    first = capsys.readouterr().out
    rates = read_rates(file)
    assert set(rates.stages) == {s.stage for s in plan_run_of(small_config_file)}
    assert all(rate.flops_per_second > 1e6 for rate in rates.stages.values())
    assert rates.decoded_per_cpu is not None
    assert plan(monkeypatch, small_config_file, "--rates", file, "--price", 0.05) == 0
    again = capsys.readouterr().out
    assert "at 0.05 an hour, by rates measured on" in again
    # The first line of each tells how long the videos took to look at.
    measuring, *same = first.splitlines()[1:]
    assert "measuring" in measuring
    assert again.splitlines()[1:] == same


def plan_run_of(path: Path) -> list[StagePlan]:
    config = load_config(path)
    footage = supposed_footage(config, num_videos=8, minutes=1, num_classes=7, num_features=512)
    return plan_run(config, footage, MACHINES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rates", "missing.json"], "can't read the rates in missing.json"),
        (["--rates", "a.json", "--measure", "b.json"], "exclude each other"),
    ],
)
def test_wrong_rates_are_one_sentence(
    small_config_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    assert plan(monkeypatch, small_config_file, *arguments) == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("option", "value"),
    [("--videos", "1000000000"), ("--minutes", "nan"), ("--price", "-3"), ("--price", "inf")],
)
def test_absurd_number_is_refused_before_anything_is_reckoned(
    monkeypatch: pytest.MonkeyPatch, option: str, value: str
) -> None:
    assert plan(monkeypatch, CHOLEC80, option, value) == 2


def test_rates_of_a_core_without_a_price_give_hours_alone(
    small_config_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_rates(rates_of(on_gpu=False), tmp_path / "rates.json")
    assert plan(monkeypatch, small_config_file, "--rates", tmp_path / "rates.json") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "hours: for 1 core" in said
    assert "cost:" not in said


def test_unknown_gpu_is_refused_by_name(
    small_config_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["csl", str(small_config_file), "--gpu-type", "b9"])
    with pytest.raises(SystemExit) as end:
        main("plan")
    assert end.value.code == 2
    assert "must be one of t4" in capsys.readouterr().err
