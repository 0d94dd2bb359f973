"""Plans of runs, against sums done by hand and against what a run really writes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from csl_dist.cli import main
from csl_dist.config import RunConfig, load_config
from csl_dist.models import ModelSpec, build_scorer
from csl_dist.plan import (
    GPUS,
    Footage,
    Machines,
    dollars_of,
    forward_flops,
    num_groups,
    plan_run,
    supposed_footage,
)
from csl_dist.records import Annotation
from csl_dist.score import plan_groups

MACHINES = Machines(num_gpus=4, gpu=GPUS["a100"], utilisation=0.5, cpus_per_gpu=8)
CHOLEC80 = Path(__file__).parents[1] / "configs" / "cholec80.yaml"


@pytest.fixture
def footage() -> Footage:
    return Footage(
        train=(100, 200), scored=(60, 60), has_pixels=True, num_classes=7, num_features=512
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
    assert stages["extract"].num_bytes == 420 * 512 * 2
    assert stages["train framewise"].num_units == 3
    assert stages["audit framewise"].num_units == 3
    assert stages["audit framewise"].num_bytes == 120 * (7 * 3 * 2 + 16)
    assert all(stage.hours > 0 for stage in stages.values())
    assert dollars_of(list(stages.values()), MACHINES) == pytest.approx(
        sum(stage.hours for stage in stages.values()) * 4 * 4.10
    )


def test_one_training_does_not_get_faster_with_more_gpus(
    small_config: RunConfig, footage: Footage
) -> None:
    stages = plan_run(small_config, footage, MACHINES)
    assert {s.limit for s in stages if s.stage.startswith("train")} == {"1 GPUs"}
    assert {s.limit for s in stages if s.stage.startswith("audit")} == {"3 GPUs"}


def test_supposed_footage_splits_as_the_paper_does() -> None:
    config = load_config(CHOLEC80)
    footage = supposed_footage(config, num_videos=80, minutes=1, num_classes=7, num_features=512)
    assert (len(footage.train), len(footage.scored)) == (50, 30)
    assert footage.train[0] == 900


def test_plan_of_a_dataset_prints_a_table(
    small_config_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["csl", str(small_config_file), "--gpus", "2"])
    with pytest.raises(SystemExit) as end:
        main("plan")
    assert end.value.code == 0
    assert "audit framewise" in capsys.readouterr().out


def test_unknown_gpu_is_refused_by_name(
    small_config_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["csl", str(small_config_file), "--gpu-type", "b9"])
    with pytest.raises(SystemExit) as end:
        main("plan")
    assert end.value.code == 2
    assert "must be one of t4" in capsys.readouterr().err
