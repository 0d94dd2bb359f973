"""Findings made on workers are those that the driver makes alone."""

from functools import partial
from pathlib import Path

import made_run
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from csl_dist.audit.revision import AuditStore
from csl_dist.cluster.stage import Stage
from csl_dist.config import FlagConfig
from csl_dist.flag import stage as flag_stage
from csl_dist.training.inputs import open_inputs

pytestmark = pytest.mark.xdist_group("ray")


def test_findings_on_workers_equal_those_of_the_driver(
    tmp_path: Path, ray_session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_run.make_run(tmp_path, FlagConfig())
    inputs = open_inputs(made_run.config_of(tmp_path, FlagConfig()))
    store = AuditStore(inputs.run.paths)
    monkeypatch.setattr(flag_stage, "FRAMES_ALONE", 0)
    stage = Stage(inputs=inputs, console=Console(quiet=True))
    second = flag_stage.make_audit(
        inputs, store.record(1).scores, "other", each=partial(flag_stage._on_workers, stage)
    )
    assert len(store.flags(1)) > 0
    pd.testing.assert_frame_equal(store.flags(second), store.flags(1))
    for name in ("suspicion", "order"):
        alone, shared = (store.frame_scores(n).read("v2", name) for n in (1, second))
        np.testing.assert_array_equal(shared, alone)
