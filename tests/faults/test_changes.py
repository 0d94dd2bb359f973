"""Clocks that are wrong, and label files that change while a command reads them."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import made_run
import numpy as np
import pytest
from rich.console import Console
from stored import different, stored

from csl_dist.audit.reader import open_audit
from csl_dist.audit.relabel import relabel
from csl_dist.cluster.stage import Stage
from csl_dist.errors import DataError, NotReadyError
from csl_dist.flag.stage import flag
from csl_dist.pipeline import open_stage
from csl_dist.review import store as review_store
from csl_dist.review.store import CurrentDecisions, Decision, NewReview, of_revision, store_of
from csl_dist.score.stage import score_versions
from csl_dist.storage.lock import RootLock
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.inputs import open_inputs

DAY = 24 * 3600.0
YEARS = 40 * 365 * DAY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of its own with its finished run, as the test changes both."""
    made_run.make_run(tmp_path)
    return tmp_path


def test_label_file_edited_during_an_audit_is_in_the_next_one_whole(folder: Path) -> None:
    config = made_run.config_of(folder)
    labels = folder / "v3.txt"
    other_T = made_run.TRUE_LABELS.copy()
    other_T[200:260] = 0
    inputs = open_inputs(config)
    stage = Stage(inputs=inputs, console=Console(quiet=True))
    inputs.labels.held_out()  # as prediction does at its start
    labels.write_text(made_run.label_text(other_T))
    assert flag(stage, score_versions(inputs)) == 1, "made of the labels that were read"
    np.testing.assert_array_equal(
        open_audit(config.root).annotation("v3").labels_T, made_run.TRUE_LABELS
    )
    now = open_inputs(config)
    [read] = [a for a in now.labels.held_out() if a.video == "v3"]
    np.testing.assert_array_equal(read.labels_T, other_T)
    assert score_versions(now) != score_versions(inputs), "the next audit scores it again"


def test_label_file_cut_in_the_middle_of_a_save_is_a_sentence_and_changes_nothing(
    folder: Path,
) -> None:
    config = made_run.config_of(folder)
    before = stored(folder / "run")
    path = folder / "v2.txt"
    whole = path.read_text()
    for part in (whole[: len(whole) // 2], whole[:101], ""):
        path.write_text(part)
        with (
            pytest.raises(DataError, match="v2"),
            open_stage(config, "test", console=Console(quiet=True)) as stage,
        ):
            stage.inputs.labels.held_out()
    assert set(different(stored(folder / "run"), before)) <= {"run.json"}


def of_1970(path: Path) -> None:
    os.utime(path, (0, 0))


def of_the_future(path: Path) -> None:
    os.utime(path, (time.time() + YEARS,) * 2)


@pytest.mark.parametrize("touch", [of_1970, of_the_future])
def test_times_of_files_decide_nothing(folder: Path, touch: Callable[[Path], None]) -> None:
    config = made_run.config_of(folder)
    before = score_versions(open_inputs(config))
    for path in folder.rglob("*"):
        if path.is_file():
            touch(path)
    inputs = open_inputs(config)
    assert score_versions(inputs) == before
    assert inputs.features.base.missing() == []
    assert flag(Stage(inputs=inputs, console=Console(quiet=True)), before) == 1


@pytest.mark.parametrize("wrong", [-YEARS, -DAY, DAY, YEARS])
def test_clock_that_jumps_between_commands_changes_no_order(
    made_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    (fixed / "v2.txt").write_text(made_run.label_text(made_run.TRUE_LABELS))
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + wrong)
    assert relabel(made_root, fixed).after.revision == 2
    assert open_audit(made_root).revision == 2, "the newest by number, not by time"
    with RootLock(RunPaths(Storage(made_root)), "test"):
        monkeypatch.setattr(time, "time", right)
    assert Storage(made_root).exists(RunPaths.LOCK) is False


def test_decision_made_by_a_clock_that_went_back_is_still_the_last(
    made_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LateClock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) - timedelta(days=400)

    store = store_of(made_root, None)
    store.create()
    review = {"revision": 1, "video": "v2", "start": 120, "stop": 160, "reviewer": "Ada"}
    store.append(NewReview(key="1" * 8, decision=Decision.CORRECT, **review))  # type: ignore[arg-type]
    monkeypatch.setattr(review_store, "datetime", LateClock)
    store.append(NewReview(key="2" * 8, decision=Decision.UNSURE, **review))  # type: ignore[arg-type]
    [reviews] = CurrentDecisions(store, of_revision(1)).by_span().values()
    assert [review.decision for review in reviews] == [Decision.UNSURE]


def test_command_that_is_refused_leaves_the_runs_own_config(
    made_folder: Path, tmp_path: Path
) -> None:
    """`csl verify --repair` goes by it."""
    shutil.copytree(made_folder / "run", tmp_path / "run")
    config = replace(made_run.config_of(made_folder), root=str(tmp_path / "run"))
    with open_stage(config, "test", console=Console(quiet=True)):
        pass
    before = stored(tmp_path / "run")
    other = replace(config, train=replace(config.train, epochs=50))
    with (
        pytest.raises(NotReadyError),
        open_stage(other, "test", console=Console(quiet=True)),
    ):
        raise NotReadyError("3 of 50 epochs")
    assert different(stored(tmp_path / "run"), before) == []
    with open_stage(other, "test", console=Console(quiet=True)):
        pass
    assert different(stored(tmp_path / "run"), before) == ["run.json"]
