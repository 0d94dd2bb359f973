"""Stored scores, and those of an earlier csl_dist."""

from pathlib import Path

import numpy as np

from csl_dist.score.store import ScoreStore
from csl_dist.storage.url import Storage
from csl_dist.types import Annotation


def test_smoothed_csl_of_an_earlier_version_is_not_among_the_scores(tmp_path: Path) -> None:
    store = ScoreStore(Storage(str(tmp_path)))
    annotation = Annotation(video="v", labels_T=np.zeros(3, int), times_T=np.arange(3.0))
    written = {"csl": np.arange(3.0), "smoothed": np.ones(3), "final": np.zeros(3)}
    store.write(annotation, "framewise", "made", written, np.ones(1))
    assert store.names("v", "framewise", "made") == ["csl", "final"]
    assert store.read("v", "framewise", "csl", "made").tolist() == [0, 1, 2]
