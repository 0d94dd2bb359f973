"""The whole flow on a small dataset, with real Ray, interrupted and resumed."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from commands import RunningCommand, run_csl
from stage_bytes import planned_bytes, stored_bytes

import csl_dist
from csl_dist.audit.status import run_status
from csl_dist.config import load_config

pytestmark = pytest.mark.xdist_group("ray")

COMMAND = [sys.executable, "-c", "from csl_dist.cli import main; main()"]


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, small_dataset: Path
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A finished run: its config file and what the command printed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    path = folder / "small.yaml"
    path.write_text(config_text(folder / "run", small_dataset))
    # Started as people start it; the other commands of this file are forked.
    return path, subprocess.run(
        [*COMMAND, "run", str(path)], capture_output=True, text=True, check=False
    )


def config_text(root: Path, dataset: Path) -> str:
    return f"""\
root: {root}
dataset: {{path: {dataset}, truth: {dataset}/errors.csv}}
features: {{weights: random, size: 32, chunk_frames: 16}}
scorers:
  transformer: {{arguments: {{preset: tiny}}}}
  framewise: {{}}
train: {{epochs: 4, learning_rate: 1e-3, batch_frames: 256}}
predict: {{group_frames: 150}}
"""


def test_run_produces_metrics_flags_and_report(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    path, result = undisturbed
    assert result.returncode == 0, result.stderr
    root = path.parent / "run"
    metrics = json.loads((root / "audits/0001/metrics.json").read_text())
    assert (metrics["videos"], metrics["checkpoints"]) == (4, 4)
    assert metrics["frames"] > 0
    for scorer in ("transformer", "framewise", "ensemble"):
        for kind in ("mislabel", "disorder"):
            by_name = metrics["scorers"][scorer][kind]
            baselines = {"confident_learning"} if scorer != "ensemble" else set()
            assert {"csl", "csl_smoothed", "final"} | baselines <= set(by_name)
            for values in by_name.values():
                assert {"auc_micro", "average_precision", "eda_top_10", "eda_egoper"} <= set(values)
                assert all(0 <= v[0] <= 1 for v in values.values())
    flags = pd.read_parquet(root / "audits/0001/flags.parquet")
    assert {"video", "start", "stop", "score", "kind", "label", "suggested"} <= set(flags.columns)
    assert len(pd.read_csv(root / "audits/0001/flags.csv")) == len(flags)
    assert json.loads((root / "audits/0001/calibration.json").read_text())["planted_in"] == 6
    assert len(pd.read_csv(root / "audits/0001/videos.csv")) == 4
    page = (root / "report.html").read_text()
    assert "audit01" in page
    assert "http://" not in page
    assert "https://" not in page


def test_run_says_nothing_of_ray(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, result = undisturbed
    assert result.stderr == ""
    assert "ray" not in result.stdout.lower().replace("array", "")


def test_finished_run_does_nothing_again(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    path, _ = undisturbed
    root = path.parent / "run"
    kept = [p for p in root.rglob("*") if p.is_file() and p.name != "report.html"]
    before = {p: p.stat().st_mtime_ns for p in kept}
    again = run_csl("run", path)
    assert again.returncode == 0, again.stderr
    assert "train: epochs" not in again.stdout
    assert {p: p.stat().st_mtime_ns for p in kept} == before


def test_reproduce_makes_the_papers_tables_of_a_finished_run(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    path, _ = undisturbed
    result = run_csl("reproduce", path, "--seeds", "1", "--no-noise", "--no-encoders")
    assert result.returncode == 0, result.stderr
    assert "train: epochs" not in result.stdout, "all of it comes from the same trajectories"
    tables = path.parent / "run/reproduce/tables"
    main = pd.read_csv(tables / "main.csv")
    assert {"mislabel", "disorder"} == set(main.error)
    sampling = pd.read_csv(tables / "sampling.csv")
    assert {"last", "full", "every_2nd", "hybrid"} <= set(sampling.columns)
    names = ("dataset", "main", "sampling", "final_against_csl", "architectures", "other_noise")
    for name in (*names, "flags"):
        assert (tables / f"{name}.md").exists()
        assert "toprule" in (tables / f"{name}.tex").read_text()


def test_plan_foresees_what_every_stage_stores(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    config = load_config(undisturbed[0])
    planned, stored = planned_bytes(config), stored_bytes(config)
    assert {stage: stored[stage] / planned[stage] for stage in planned} == pytest.approx(
        dict.fromkeys(stored, 1.0), rel=0.1
    )


def test_status_shows_every_stage_done(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    path, _ = undisturbed
    lines = run_status(str(path.parent / "run"))
    assert [line.stage for line in lines][:2] == ["extract", "train transformer"]
    assert [line.total for line in lines if line.stage == "audit transformer"] == [6]
    assert all(line.done == line.total for line in lines)


def wait_for(command: RunningCommand, pattern: str, root: Path) -> None:
    """Waits until the run has written a file that matches."""
    while not any(root.glob(pattern)):
        assert command.goes_on_for(0.05), "the run ended before it could be stopped"


@pytest.mark.timeout(400)
def test_killed_and_interrupted_run_ends_with_the_same_metrics(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]],
    small_dataset: Path,
    tmp_path: Path,
) -> None:
    root = tmp_path / "run"
    path = tmp_path / "small.yaml"
    path.write_text(config_text(root, small_dataset))
    stops = [  # kills in every other stage: tests/faults/test_kills.py
        ("transformer/fold-0/checkpoints/*/epoch-0002/meta.json", signal.SIGINT, 130),
        ("*/records/rows/fold-0/*/*.json", signal.SIGKILL, -9),
    ]
    for pattern, how, code in stops:
        command = RunningCommand.start("run", path)
        wait_for(command, pattern, root)
        command.send(how)
        assert command.wait() == code
        if how == signal.SIGINT:
            assert f"go on with: csl run {path}" in command.stderr.read_text()
        assert not (root / "audits/0001/metrics.json").exists()
    result = run_csl("run", path)
    assert result.returncode == 0, result.stderr
    expected = (undisturbed[0].parent / "run/audits/0001/metrics.json").read_bytes()
    assert (root / "audits/0001/metrics.json").read_bytes() == expected


def test_changed_labels_redo_only_what_depends_on_them(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """A corrected audit label changes scores, but neither features, weights nor trajectories."""
    path, _ = undisturbed
    source = path.parent / "run"
    root = tmp_path / "run"
    subprocess.run(["cp", "-r", source, root], check=True)
    dataset = Path(path.read_text().split("path: ")[1].split(",")[0])
    changed = tmp_path / "dataset"
    subprocess.run(["cp", "-rp", dataset, changed], check=True)
    labels = changed / "labels/audit01.txt"
    labels.write_text(labels.read_text().replace("rinse", "remove"))
    config = tmp_path / "small.yaml"
    config.write_text(config_text(root, changed))
    result = run_csl("run", config)
    assert result.returncode == 0, result.stderr
    assert "all 8 epochs are trained" in result.stdout
    assert "trajectories: all" in result.stdout
    assert "score: videos: 12 of 12" in result.stdout
    first, second = (root / f"audits/000{n}/metrics.json" for n in (1, 2))
    assert first.read_bytes() == (source / "audits/0001/metrics.json").read_bytes()
    assert second.read_bytes() != first.read_bytes()


def test_finished_run_is_read_from_its_root_alone_and_corrected_in_place(
    undisturbed: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The planted errors' true labels, as annotators would hand them back."""
    path, _ = undisturbed
    root = tmp_path / "run"
    shutil.copytree(path.parent / "run", root)
    dataset = Path(path.read_text().split("path: ")[1].split(",")[0])
    audit = csl_dist.open_audit(str(root))
    assert audit.missing() == []
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    wrong = [error for error in audit.known_errors if error.true_label is not None]
    for error in wrong:
        source = dataset / "labels" / f"{error.video}.txt"
        target = fixed / source.name
        lines = (target if target.exists() else source).read_text().splitlines()
        lines[error.span.start : error.span.stop] = [str(error.true_label)] * len(error.span)
        target.write_text("\n".join(lines) + "\n")
    result = run_csl("relabel", root, fixed)
    assert result.returncode == 0, result.stderr
    after = csl_dist.open_audit(str(root))
    assert after.revision == audit.revision + 1
    assert len(after.corrections()) == len(wrong)
    for error in wrong:
        labels = after.annotation(error.video).labels_T
        truth = audit.classes.index(str(error.true_label))
        assert (labels[error.span.start : error.span.stop] == truth).all()
        assert after.csl(error.video) == pytest.approx(
            audit.csl(error.video, labels=labels), rel=1e-4
        )
    assert {e.kind for e in after.known_errors} == {"disorder"}
