"""Prediction in sweeps: an audit after each, and at the end the audit of a straight run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builder import MadeVideo, write_checkpoints, write_manifest
from rich.console import Console
from typer.testing import CliRunner

from csl_dist import open_audit, pipeline
from csl_dist.audit.changes import audit_lines
from csl_dist.audit.revision import AuditStore
from csl_dist.audit.status import run_status
from csl_dist.cli import main  # noqa: F401  registers every command
from csl_dist.cli.app import app
from csl_dist.config import PredictConfig, RunConfig, parse_config
from csl_dist.errors import ConfigError
from csl_dist.flag import stage as flagging
from csl_dist.flag.settled import is_settled, num_changed
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.inputs import open_inputs

NUM_CHECKPOINTS = 12


def flags_of(*spans: tuple[str, int, int]) -> pd.DataFrame:
    """Flags of steps without a probability."""
    flags = pd.DataFrame(spans, columns=["video", "start", "stop"])
    return flags.assign(probability=np.nan, list="steps")


def test_top_is_settled_when_at_most_a_tenth_of_either_list_or_two_have_no_like() -> None:
    before = flags_of(*((f"v{i}", 10, 20) for i in range(40)))
    moved = before.assign(start=before.start + 3, stop=before.stop + 3)
    assert is_settled(before, moved), "seven of ten frames are shared"
    assert num_changed(before, before.assign(start=before.start + 6)) == 40
    assert num_changed(before, before[:36]) == 4
    for allowed, longer, shorter in ((True, 40, 36), (False, 40, 35), (True, 9, 7), (False, 9, 6)):
        assert is_settled(before[:longer], before[:shorter]) is allowed
        assert is_settled(before[:shorter], before[:longer]) is allowed
    repeated = pd.concat([before, moved], ignore_index=True)
    assert is_settled(repeated, repeated.head(50)), "only the first 50 are compared"
    assert is_settled(before[:0], before[:0])


def test_order_which_labels_alone_decide_does_not_make_a_top_settled() -> None:
    order = flags_of(*((f"o{i}", 10, 20) for i in range(45))).assign(list="order")
    one, other = (flags_of(*((f"{name}{i}", 10, 20) for i in range(5))) for name in "ab")
    assert not is_settled(pd.concat([order, one]), pd.concat([order, other]))
    assert is_settled(pd.concat([order, one]), pd.concat([one, order[:9]]))


def test_flags_that_are_about_even_come_and_go_in_a_settled_top() -> None:
    flags = flags_of(*((f"v{i}", 10, 20) for i in range(9)))
    for probability, allowed in ((0.55, True), (0.65, False)):
        longer = flags.assign(probability=[0.9] * 5 + [probability] * 4)
        assert is_settled(longer, longer[:5]) is allowed
        assert is_settled(longer[:5], longer) is allowed


def config_of(folder: Path, name: str, **predict: object) -> RunConfig:
    data = {
        "root": str(folder / name),
        "dataset": {"path": str(folder / "data")},
        "scorers": {"framewise": {}},
        "train": {"epochs": NUM_CHECKPOINTS},
        "predict": predict,
    }
    return parse_config(data, where="the test")


def audit(config: RunConfig) -> list[int]:
    """Audits, and the numbers of all that there are then."""
    with pipeline.open_stage(config, "test", console=Console(quiet=True)) as stage:
        pipeline.audit(stage)
    return open_audit(config.root).revisions


@pytest.mark.usefixtures("ray_session")
@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(300)
def test_sweeps_give_an_audit_each_and_end_with_that_of_a_straight_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = ["train"] * 4 + ["audit"] * 8
    rng = np.random.default_rng(0)
    videos = [
        MadeVideo(
            id=f"v{number:02d}",
            split=split,
            names_T=np.repeat(["reach", "grasp", "lift"], [9, 8 + number, 12]).tolist(),
            features_TD=rng.normal(size=(29 + number, 3)).astype(np.float32),
        )
        for number, split in enumerate(splits)
    ]
    write_manifest(tmp_path / "data", videos, fps=2, classes=("reach", "grasp", "lift"))
    config = config_of(tmp_path, "straight")
    for name in ("straight", "swept"):
        own = replace(config, root=str(tmp_path / name))
        write_checkpoints(open_inputs(own), "framewise", NUM_CHECKPOINTS)
    assert audit(config) == [1]

    monkeypatch.setattr(flagging, "is_settled", lambda *_: True)
    settled = config_of(tmp_path, "swept", stop="settled")
    assert audit(settled) == [1, 2]
    assert audit(settled) == [1, 2], "what is settled stays so"
    rests_on = "audit 2 rests on 3 of 12 checkpoints, by which the top of the list is settled"
    found, first = open_audit(settled.root), open_audit(settled.root, revision=1)
    assert (found.rests_on, first.rests_on) == (rests_on, "audit 1 rests on 2 of 12 checkpoints")
    assert found.missing() == [], "it is finished, as far as it goes"
    assert rests_on in found._repr_html_()
    for command in (["status", settled.root], ["query", settled.root, "top"]):
        said = CliRunner().invoke(app, command).output
        assert rests_on in said
        assert "not finished" not in said
    assert "rests on 3 of 12" in (tmp_path / "swept/report.html").read_text()
    assert "rests on 3 of 12 checkpoints" in " ".join(audit_lines(settled.root)[1].changes)
    assert [line.done for line in run_status(settled.root) if line.stage == "flags"] == [1]

    whole = config_of(tmp_path, "swept", sweeps=True)
    assert audit(whole) == [1, 2, 3, 4]
    store = AuditStore(RunPaths(Storage(whole.root)))
    sweeps = [record.sweep for record in store.records().values()]
    assert [sweep and sweep.checkpoints for sweep in sweeps] == [2, 3, 7, None]
    assert open_audit(whole.root).rests_on is None
    straight = AuditStore(RunPaths(Storage(config.root)))
    assert store.record(4).made_from == straight.record(1).made_from
    assert digests(whole, 4) == digests(config, 1)


def digests(config: RunConfig, number: int) -> dict[str, str]:
    """Of an audit's files, by their names; without the list of which arrays it read, whose names
    count how often a video was published."""
    record = Path(config.root, "audits", f"{number:04d}", "audit.json")
    found: dict[str, str] = json.loads(record.read_text())["files"]
    return {name: digest for name, digest in found.items() if name != RunPaths.TRAJECTORIES}


def test_list_of_epochs_for_scores_is_refused_beside_sweeps() -> None:
    data = {"root": "r", "dataset": {"path": "d"}, "score": {"checkpoints": [1, 2]}}
    parse_config(data, where="the test")
    with pytest.raises(ConfigError, match="score.checkpoints is a list of epochs"):
        parse_config(data | {"predict": {"stop": "settled"}}, where="the test")
    assert PredictConfig(stop="settled").in_sweeps
