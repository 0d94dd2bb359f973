"""Evidence for an edit: what models, grammar, durations and counts say about it, as numbers.

One row per candidate, columns named by COLUMNS; in each, higher speaks for the edit, or is a size
that a fitted model may use. All are bounded, so that one odd number can't decide.
"""

from collections.abc import Sequence

import numpy as np

from csl_dist.data.segments import Segment
from csl_dist.flag.edits.candidates import Edit, EditKind
from csl_dist.flag.edits.emission import Emission
from csl_dist.flag.edits.statistics import (
    BINS,
    TERMS,
    Statistics,
    sequence_terms,
    usual_log_seconds,
)
from csl_dist.types import UNLABELLED, FloatArray

COLUMNS = (
    "emission",
    "emission_low",
    "emission_sum",
    "least_family",
    "late_share",
    "own_doubt",
    "entropy",
    "contrast",
    *TERMS,
    "position",
    "log_size",
    "changed_share",
)
"""emission: mean gain per changed frame; emission_low: of the worst third; emission_sum: signed
root of the sum; least_family: the smallest mean gain of a family; late_share: later checkpoints
that favour the edit; own_doubt: minus the mean log-probability of the present label; contrast: gain
inside minus gain just outside; TERMS: what the annotation as a whole gains; position: the name fits
this part of the video better; log_size: log of the frames that change, on a scale on which a usual
segment has USUAL_SIZE."""
BOUND = 8.0
USUAL_SIZE = 20.0
"""Frames of a usual segment where the shipped weights were fitted; others are brought to it."""


def evidence_rows(
    edits: Sequence[Edit],
    segments: Sequence[Segment],
    emission: Emission,
    statistics: Statistics,
    *,
    fps: float,
) -> FloatArray:
    """Evidence (N, K) of a video's candidates."""
    usual = usual_log_seconds(statistics)
    before = sequence_terms(segments, statistics, fps=fps)
    probability_TC = np.exp(emission.logp_TC)
    entropy_T = -(probability_TC * emission.logp_TC).sum(axis=1)
    entropy_sum_T = np.concatenate([[0.0], entropy_T.cumsum()])
    position_CT = statistics.position_CB[:, _bins(len(emission.logp_TC))]
    rows = [
        np.concatenate(
            [
                _emission_evidence(edit, emission, entropy_sum_T),
                np.clip(sequence_terms(edit.segments, statistics, fps=fps) - before, -BOUND, BOUND),
                [
                    _position_evidence(edit, position_CT),
                    np.log(edit.num_frames / fps) - usual + np.log(USUAL_SIZE),
                    edit.changed_share,
                ],
            ]
        )
        for edit in edits
    ]
    return np.array(rows).reshape(len(edits), len(COLUMNS))


def _emission_evidence(edit: Edit, emission: Emission, entropy_sum_T: FloatArray) -> list[float]:
    a, b = edit.start, edit.stop
    if edit.kind is EditKind.SWAP:
        return _swap_emission(edit, emission, entropy_sum_T)
    y, c = edit.label, edit.new_label
    num, num_frames = b - a, len(emission.logp_TC)
    gain_T = emission.logp_TC[a:b, c] - emission.logp_TC[a:b, y]
    over_T = emission.sum_TC[:, c] - emission.sum_TC[:, y]
    total = float(over_T[b] - over_T[a])
    first, last = max(0, a - num), min(num_frames, b + num)
    num_outside = (a - first) + (last - b)
    outside = float(over_T[a] - over_T[first] + over_T[last] - over_T[b])
    contrast = total / num - outside / num_outside if num_outside else 0.0
    family_F = _span_gain(emission.family_sum_FTC, a, b, c, y)
    late_E = _span_gain(emission.late_sum_ETC, a, b, c, y)
    root = float(np.sign(total) * np.sqrt(abs(total)))
    return [
        total / num,
        _low_third(gain_T),
        min(max(root, -2 * BOUND), 2 * BOUND),
        min(max(float(family_F.min()), -BOUND), BOUND),
        np.count_nonzero(late_E > 0) / len(late_E),
        float(emission.sum_TC[a, y] - emission.sum_TC[b, y]) / num,
        float(entropy_sum_T[b] - entropy_sum_T[a]) / num,
        contrast,
    ]


def _low_third(values_T: FloatArray) -> float:
    """Mean of the lowest third, at least of one."""
    count = max(1, len(values_T) // 3)
    return float(np.partition(values_T, count - 1)[:count].sum()) / count


def _swap_emission(edit: Edit, emission: Emission, entropy_sum_T: FloatArray) -> list[float]:
    """A swap leaves every frame its label: all that counts is how odd these look where they are."""
    a, b, cut = edit.start, edit.stop, edit.place
    own_T = np.concatenate(
        [emission.logp_TC[a:cut, edit.label], emission.logp_TC[cut:b, edit.new_label]]
    )
    rival_T = emission.logp_TC[a:b].max(axis=1)
    gain_T = rival_T - own_T
    doubt = float(-own_T.mean())
    entropy = float(entropy_sum_T[b] - entropy_sum_T[a]) / (b - a)
    return [float(gain_T.mean()), _low_third(gain_T), 0.0, 0.0, 0.0, doubt, entropy, 0.0]


def _position_evidence(edit: Edit, position_CT: FloatArray) -> float:
    a, b = edit.start, edit.stop
    if edit.kind is not EditKind.SWAP:
        return float((position_CT[edit.new_label, a:b] - position_CT[edit.label, a:b]).mean())
    cut, new_cut = edit.place, a + b - edit.place
    now = position_CT[edit.label, a:cut].sum() + position_CT[edit.new_label, cut:b].sum()
    then = position_CT[edit.new_label, a:new_cut].sum() + position_CT[edit.label, new_cut:b].sum()
    return float((then - now) / (b - a))


def _span_gain(sum_FTC: FloatArray, a: int, b: int, c: int, y: int) -> FloatArray:
    """Mean gain per frame (F,) of class c over y in frames [a, b)."""
    c_F = sum_FTC[:, b, c] - sum_FTC[:, a, c]
    y_F = sum_FTC[:, b, y] - sum_FTC[:, a, y]
    gain_F: FloatArray = (c_F - y_F) / (b - a)
    return gain_F


def _bins(num_frames: int) -> list[int]:
    return [t * BINS // num_frames for t in range(num_frames)]


def surprise(segments: Sequence[Segment], statistics: Statistics) -> FloatArray:
    """U (T,): how little each frame's segment is expected by its neighbours; NaN unlabelled."""
    C = statistics.num_classes
    num_frames = segments[-1].stop if segments else 0
    result_T = np.full(num_frames, np.nan)
    names = [UNLABELLED, *(s.label for s in segments), UNLABELLED]
    for segment, before, after in zip(segments, names, names[2:], strict=False):
        if segment.label == UNLABELLED:
            continue
        p = C if before == UNLABELLED else before
        n = C + 1 if after == UNLABELLED else after
        into, out = statistics.bigram_CC[p, segment.label], statistics.bigram_CC[segment.label, n]
        result_T[segment.start : segment.stop] = -(into + out) / 2
    return result_T
