"""Decisions hold as long as the labels that they are about do."""

import uuid
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import made_run
import numpy as np
from served import client_of

import csl_dist
from csl_dist.audit.relabel import relabel
from csl_dist.review.carried import decisions_on
from csl_dist.review.store import Decision, NewReview, store_of


def decide(root: str, span: tuple[int, int], **values: Any) -> None:
    store = store_of(root, None)
    store.create()
    key, revision = uuid.uuid4().hex, csl_dist.open_audit(root).revision
    place = {"video": "v2", "start": span[0], "stop": span[1]}
    store.append(NewReview(key=key, revision=revision, reviewer="Ada", **place, **values))


def flagged(root: str) -> tuple[int, int]:
    flag = csl_dist.open_audit(root).flags().iloc[0]
    return int(flag.start), int(flag.stop)


def relabelled(root: str, folder: Path, video: str, frames: slice, label: int) -> None:
    labels = made_run.labels_of(video)
    labels[frames] = label
    folder.mkdir()
    (folder / f"{video}.txt").write_text(made_run.label_text(labels))
    relabel(root, folder)


def states(root: str) -> dict[tuple[int, int], str]:
    flags = client_of(root).get("/api/audits/run/flags").json()["flags"]
    return {(f["start"], f["stop"]): f["state"] for f in flags}


def test_label_that_is_right_is_not_asked_again_after_relabelling(
    made_root: str, tmp_path: Path
) -> None:
    decide(made_root, flagged(made_root), decision=Decision.CORRECT)
    # Another place of the same video, so that its scores are new.
    relabelled(made_root, tmp_path / "fixed", "v2", slice(290, 300), 1)
    assert csl_dist.open_audit(made_root).revision == 2
    span = flagged(made_root)
    assert states(made_root)[span] == "decided"


def test_decision_on_labels_that_were_corrected_is_done_with(
    made_root: str, tmp_path: Path
) -> None:
    decide(made_root, flagged(made_root), decision=Decision.WRONG, label="b")
    relabelled(made_root, tmp_path / "fixed", "v2", made_run.WRONG, 1)
    audit = csl_dist.open_audit(made_root)
    assert decisions_on(audit, store_of(made_root, None)).by_span() == {}


def test_correction_that_is_not_in_the_labels_yet_is_exported_from_the_next_audit(
    made_root: str, tmp_path: Path
) -> None:
    decide(made_root, flagged(made_root), decision=Decision.WRONG, label="b")
    relabelled(made_root, tmp_path / "fixed", "v3", slice(0, 10), 1)
    content = client_of(made_root).get("/api/audits/run/corrected").content
    with ZipFile(BytesIO(content)) as packed:
        names = packed.read("v2.txt").decode().split()
    np.testing.assert_array_equal(
        np.array(names)[made_run.WRONG], np.full(made_run.WRONG.stop - made_run.WRONG.start, "b")
    )
