"""Audits of real datasets with planted errors, stored as plain arrays for findings_report.py."""

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from edit_audit import Audit, run_audit, tolerance_seconds
from edit_rivals import margin, rival_scores, standardised
from edit_settings import (
    EmissionCache,
    Trajectories,
    late_half,
    load,
    planted_labels,
    planting_of,
)

from csl_dist.data.mistakes import PlantedKind, PlantedSpan
from csl_dist.data.segments import segments_of
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.findings import (
    frame_log_odds,
    is_right_fix,
    log_odds_of,
    overlap,
)
from csl_dist.flag.edits.fitting import FIT_MIX
from csl_dist.flag.edits.lists import LIST_OF, ListName
from csl_dist.flag.edits.probability import SHIPPED
from csl_dist.types import EditKind, FloatArray

STUDY_KINDS = (
    *(PlantedKind.MISLABEL, PlantedKind.RENAME, PlantedKind.PLAUSIBLE, PlantedKind.INSERT),
    *(PlantedKind.MERGE, PlantedKind.SHIFT, PlantedKind.JITTER, PlantedKind.SWAP),
)
"""Columns of RESEARCH.md's table: `missing` there is `merge` here, `disorder` is `swap`."""
OTHER_KINDS = (PlantedKind.CONFUSABLE, PlantedKind.MISSING)
SEVEN = tuple(kind for kind in STUDY_KINDS if kind is not PlantedKind.PLAUSIBLE)
RELATED = {
    PlantedKind.RENAME: (PlantedKind.RENAME,),
    PlantedKind.CONFUSABLE: (PlantedKind.CONFUSABLE, PlantedKind.PLAUSIBLE),
    PlantedKind.MERGE: (PlantedKind.MERGE, PlantedKind.MISSING),
    PlantedKind.MISLABEL: (PlantedKind.MISLABEL, PlantedKind.INSERT),
    PlantedKind.SHIFT: (PlantedKind.SHIFT,),
}
"""Kinds that the fitted mix lacks where the first is audited."""
FEW = "few"
"""A mix as real datasets may have it: one error in one video of seven."""
MIXED = ("mix", "none", FEW)
AUM_WEIGHT = 0.3
"""Of the standardised AUM of single frames, which ranks frames that no edit tells apart."""


FRAME_SEEDS = 3
"""Planting seeds of audits of one kind of error, whose frames are ranked beside rivals'."""
PROMISE_SEEDS = 8
"""Of mixes, and of kinds that the fitted mix lacks: ten findings of one audit have a deviation of
their own of .1 to .15."""


class Setting(NamedTuple):
    """What is planted where: the key of a stored run."""

    dataset: str
    kind: str
    rate: float
    seed: int
    lacks: bool


def settings_of(dataset: str) -> Iterator[Setting]:
    """The first planting seed of everything comes first, so that a report can be had early.

    Promises are about ten or twenty findings of an audit, and want more seeds than averages do.
    """
    for seed in range(PROMISE_SEEDS):
        if seed < FRAME_SEEDS:
            for kind in STUDY_KINDS:
                yield Setting(dataset, kind, 0.1, seed, False)
        for rate in (0.02, 0.05, 0.1, 0.2):
            yield Setting(dataset, "mix", rate, seed, False)
        yield Setting(dataset, FEW, 0.02, seed, False)
        for kind in RELATED:
            yield Setting(dataset, kind, 0.1, seed, True)
        if seed == 0:
            yield Setting(dataset, "none", 0.1, 0, False)
            for kind in OTHER_KINDS:
                yield Setting(dataset, kind, 0.1, 0, False)


def run_setting(
    data: Trajectories, setting: Setting, caches: dict[tuple[float, ...], EmissionCache]
) -> dict[str, Any]:
    """Audits one setting; returns what the report needs, as plain arrays."""
    planting = planting_of(data, setting.rate, kinds=FIT_MIX)
    kind = None if setting.kind in MIXED else PlantedKind(setting.kind)
    share = {"none": 0.0, FEW: 0.15}.get(setting.kind, 0.5)
    planted = planted_labels(data, kind, setting.seed, planting, share=share)
    lacking = RELATED[kind] if setting.lacks and kind else ()
    mix = {name: part for name, part in FIT_MIX.items() if name not in lacking}
    audit = run_audit(data, planted, caches, mix=mix)
    single = kind in STUDY_KINDS + OTHER_KINDS and not setting.lacks
    scores = rival_scores(data, audit.videos) | our_scores(data, audit) if single else {}
    reporting = data.reporting()
    return {
        "fps": data.fps,
        "scores": {name: [s.astype(np.float32) for s in row] for name, row in scores.items()},
        "videos": [
            {
                "id": v.id,
                "reporting": v.id in reporting,
                "labelled_T": v.labels_T >= 0,
                "segments": [(s.start, s.stop) for s in segments_of(v.labels_T) if s.label >= 0],
                "wrong_T": wrong_frames(v.errors, len(v.labels_T)),
                "errors": v.errors,
                "move": audit.moves[v.id],
                "findings": findings_table(data, row, v.errors),
            }
            for v, row in zip(audit.videos, audit.findings, strict=True)
        ],
    }


def our_scores(data: Trajectories, audit: Audit) -> dict[str, list[FloatArray]]:
    """Frames by the surest edit that covers them, in one list and in the three lists apart."""
    labels = [v.labels_T for v in audit.videos]
    aum = [
        np.mean([margin(late_half(logp), v.labels_T) for logp in data.logp(v.id, v.swap_seed)], 0)
        for v in audit.videos
    ]
    plain = [np.clip(z_T, -3, 3) for z_T in standardised(aum, labels)]
    members: dict[str, set[EditKind]] = {
        "ours, one list": set(EditKind) - {EditKind.SWAP},
        **{
            f"ours, {name}": {kind for kind, own in LIST_OF.items() if own is name}
            for name in ListName
        },
    }
    members["shipped constants, one list"] = members["ours, one list"]
    members["shipped constants, order"] = members["ours, order"]
    shipped = [log_odds_of(v.edits, v.evidence_NK, SHIPPED) for v in audit.videos]
    result: dict[str, list[FloatArray]] = {}
    for name, kinds in members.items():
        own = name.startswith("ours")
        weight = AUM_WEIGHT if own and kinds != {EditKind.SWAP} else 0.0
        odds = audit.log_odds if own else shipped
        result[name] = []
        for video, odds_N, z_T in zip(audit.videos, odds, plain, strict=True):
            rows = [i for i, edit in enumerate(video.edits) if edit.kind in kinds]
            edits = [video.edits[i] for i in rows]
            frames_T = frame_log_odds(edits, odds_N[rows], len(z_T))
            result[name].append(frames_T + weight * z_T)
    return result


def wrong_frames(errors: Any, num_frames: int) -> Any:
    wrong_T = np.zeros(num_frames, dtype=bool)
    for error in errors:
        wrong_T[error.start : error.stop] = True
    return wrong_T


def is_found(edit: Edit, error: PlantedSpan, *, tolerance_frames: float) -> bool:
    """Whether an edit points at an error: half of the frames, or the boundary within tolerance."""
    if overlap(edit, error) >= 0.5:
        return True
    return (
        edit.kind is EditKind.BOUNDARY
        and error.boundary is not None
        and overlap(edit, error) > 0
        and abs(edit.place - error.boundary) <= tolerance_frames
    )


def findings_table(data: Trajectories, findings: Any, errors: Any) -> list[dict[str, Any]]:
    """Findings of a video, with the error that each points at, if any."""
    tolerance = tolerance_seconds(data) * data.fps
    rows = []
    for finding in findings:
        edit = finding.edit
        found = [i for i, e in enumerate(errors) if is_found(edit, e, tolerance_frames=tolerance)]
        rows.append(
            {
                "list": finding.list_name,
                "kind": edit.kind,
                "start": edit.start,
                "stop": edit.stop,
                "place": edit.place,
                "new_label": edit.new_label,
                "log_odds": finding.log_odds,
                "error": found[0] if found else None,
                "right_fix": bool(found) and is_right_fix(edit, errors[found[0]]),
            }
        )
    return rows


def run_all(trajectories: Path, work: Path, datasets: list[str]) -> None:
    work.mkdir(parents=True, exist_ok=True)
    loaded = {name: load(trajectories, name) for name in datasets}
    caches: dict[str, dict[tuple[float, ...], EmissionCache]] = {name: {} for name in datasets}
    for settings in zip(*map(settings_of, datasets), strict=True):
        for setting in settings:
            path = work / f"{'-'.join(map(str, setting))}.pkl"
            if path.exists():
                continue
            begun = time.perf_counter()
            result = run_setting(loaded[setting.dataset], setting, caches[setting.dataset])
            part = path.with_suffix(".part")
            part.write_bytes(pickle.dumps(result))
            part.rename(path)
            print(f"{path.stem}: {time.perf_counter() - begun:.1f} s", flush=True)
