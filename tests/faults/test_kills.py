"""kill -9 of driver, actor, raylet and head, and a full disk, in each stage that runs on Ray.

Every cell finishes with the same bytes, or stops with a sentence and goes on when it is run again.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import RunningCommand, run_csl
from made_run import TRUE_LABELS, label_text
from processes import descendants
from small_disk import small_disk
from stored import different, stored

ray_cells = [pytest.mark.slow, pytest.mark.xdist_group("ray"), pytest.mark.timeout(1800)]

CONFIG = """\
root: {root}
dataset: {{path: {dataset}}}
features: {{weights: random, size: 96, chunk_frames: 4, batch_frames: 4}}
scorers: {{transformer: {{arguments: {{preset: tiny}}}}}}
train: {{epochs: 12, learning_rate: 1.0e-3, batch_frames: 256, max_failures: 9}}
predict: {{group_frames: 60, max_retries: 9}}
audit: {{swapped_copies: 2}}
"""
STAGES = ("extract", "train", "audit")
WORKERS = {
    "extract": "MapBatches(_EncodeChunks)",
    "train": "ray::RayTrainWorker",
    "audit": "ray::PredictActor",
}
"""In the title of the processes that do a stage's work."""
VICTIMS = {"driver": None, "actor": None, "raylet": "raylet/raylet", "head": "gcs_server"}
SENTENCES = ("ended from outside", "a part of Ray was lost", "Ray can't", "run again")
SECONDS_TO_SAY = 30.0
FULL_BYTES = (0, 100_000, 400_000)
MEGABYTES = 64


def write_config(folder: Path, dataset: Path) -> Path:
    path = folder / "c.yaml"
    path.write_text(CONFIG.format(root=folder / "disk/run", dataset=dataset))
    return path


def killed_at_work(stage: str, config: Path, victim: str) -> RunningCommand:
    """Starts a stage and kills a part of it as soon as its workers work."""
    command = RunningCommand.start(stage, config)
    assert command.process.pid is not None
    pid, title = command.process.pid, WORKERS[stage]
    wait_for(lambda: bool(below(pid, title)), command)
    time.sleep(0.3)
    victims = {"driver": [pid], "actor": below(pid, title)}
    for process in victims.get(victim) or below(pid, str(VICTIMS[victim])):
        os.kill(process, signal.SIGKILL)
    return command


def below(pid: int, title: str) -> list[int]:
    return [process for process, name in descendants(pid).items() if title in name]


def wait_for(condition: Callable[[], bool], command: RunningCommand) -> None:
    while not condition():
        assert command.goes_on_for(0.02), command.stderr.read_text()


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray looks for a lost head for a minute before it gives up."""
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "5")


@pytest.fixture(scope="module")
def expected(
    small_dataset: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, bytes]]:
    """What each stage leaves when nobody disturbs it."""
    folder = tmp_path_factory.mktemp("calm")
    config, found = write_config(folder, small_dataset), {}
    for stage in STAGES:
        assert run_csl(stage, config).returncode == 0
        found[stage] = stored_below(folder)
        shutil.copytree(folder / "disk/run", folder / f"after-{stage}")
    found["folder"] = {"": str(folder).encode()}
    return found


def begun(stage: str, expected: dict[str, dict[str, bytes]], folder: Path) -> None:
    """The run as the stage before left it."""
    if stage != STAGES[0]:
        before = STAGES[STAGES.index(stage) - 1]
        calm = Path(expected["folder"][""].decode())
        shutil.copytree(calm / f"after-{before}", folder / "disk/run")


def stored_below(folder: Path) -> dict[str, bytes]:
    """What a run has stored, wherever it lies; the report is drawn anew by every command."""
    found = stored(folder / "disk/run")
    del found["run.json"]
    found.pop("report.html", None)
    return {key: data.replace(str(folder).encode(), b"") for key, data in found.items()}


def said_in_the_end(command: RunningCommand) -> str:
    """What it wrote to stderr; that it was ended from outside is said a moment later."""
    until = time.monotonic() + SECONDS_TO_SAY
    while time.monotonic() < until:
        said = command.stderr.read_text()
        if any(words in said for words in SENTENCES):
            return said
        time.sleep(0.1)
    return said


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("stage", [pytest.param(s, marks=ray_cells) for s in STAGES])
def test_killed_stage_ends_with_the_same_bytes(
    small_dataset: Path,
    tmp_path: Path,
    expected: dict[str, dict[str, bytes]],
    short_waits: None,
    stage: str,
    victim: str,
) -> None:
    config = write_config(tmp_path, small_dataset)
    begun(stage, expected, tmp_path)
    command = killed_at_work(stage, config, victim)
    code = command.wait()
    said = said_in_the_end(command) if code else command.stderr.read_text()
    if victim == "driver":
        assert code == -signal.SIGKILL
    if victim == "actor":
        assert code == 0, said
    assert code == 0 or any(words in said for words in SENTENCES), said
    assert "Traceback" not in said
    again = run_csl(stage, config)
    assert again.returncode == 0, again.stderr
    assert different(stored_below(tmp_path), expected[stage]) == []


@pytest.mark.parametrize("stage", [pytest.param(s, marks=ray_cells) for s in STAGES])
def test_stage_on_a_full_disk_is_a_sentence_and_goes_on_when_there_is_room(
    small_dataset: Path, tmp_path: Path, expected: dict[str, dict[str, bytes]], stage: str
) -> None:
    config = write_config(tmp_path, small_dataset)
    with small_disk(tmp_path / "disk", MEGABYTES) as disk:
        begun(stage, expected, tmp_path)
        for left in FULL_BYTES:
            disk.fill(left=left)
            full = run_csl(stage, config)
            assert full.returncode == 2, full.stderr
            assert "Traceback" not in full.stderr
            assert "No space left" in full.stderr or "can't write" in full.stderr, full.stderr
            disk.make_room()
        again = run_csl(stage, config)
        assert again.returncode == 0, again.stderr
        assert different(stored_below(tmp_path), expected[stage]) == []


@pytest.mark.timeout(200)
def test_killed_relabelling_ends_with_the_same_bytes(made_folder: Path, tmp_path: Path) -> None:
    """Without Ray, so that it is quick: killed when it has written so many files."""
    fixed, root = tmp_path / "fixed", tmp_path / "run"
    fixed.mkdir()
    (fixed / "v2.txt").write_text(label_text(TRUE_LABELS))
    shutil.copytree(made_folder / "run", root)
    before = len(list(root.rglob("*")))
    assert run_csl("relabel", root, fixed).returncode == 0
    calm = stored(root)
    num_killed = 0
    for num_files in (1, 8, 16):
        shutil.rmtree(root)
        shutil.copytree(made_folder / "run", root)
        command = RunningCommand.start("relabel", root, fixed)
        while len(list(root.rglob("*"))) < before + num_files and command.goes_on_for(0):
            pass
        command.send(signal.SIGKILL)
        num_killed += command.wait() == -signal.SIGKILL
        again = run_csl("relabel", root, fixed)
        assert again.returncode == 0 or "are those of audit" in again.stderr, again.stderr
        assert different(stored(root), calm) == []
    assert num_killed
