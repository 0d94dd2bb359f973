"""Evidence for an edit: what models, grammar, durations and counts say about it, as numbers.

One row per candidate, columns named by COLUMNS; in each, higher speaks for the edit, or is a size
that a fitted model may use. All are bounded, so that one odd number can't decide.
"""

from collections.abc import Sequence

import numpy as np

from csl_dist.data.segments import Segment, labels_of
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.emission import Emission, largest
from csl_dist.flag.edits.statistics import (
    BINS,
    TERMS,
    Statistics,
    sequence_terms,
    usual_log_seconds,
)
from csl_dist.types import EditKind, FloatArray, IntArray

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
LEAST_INSERTED_ORDER = -1.0
"""The lowest that order may say of inserting a step. Where people stop labelling, several steps are
missing: each of them alone stands between steps that it never stands between."""
MOST_WRITTEN_ORDER = 5.0
"""The highest that order may say of renaming or deleting a step: who writes what is unusual at its
place mostly saw it."""
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
    if not edits:
        return np.empty((0, len(COLUMNS)))
    before_K, *after = sequence_terms(
        [segments, *(edit.segments for edit in edits)], statistics, fps=fps
    )
    position_CT = statistics.position_CB[:, _bins(len(emission.logp_TC))]
    num_N = np.array([edit.num_frames for edit in edits])
    return np.column_stack(
        [
            _emission_evidence(edits, segments, emission),
            _bounded_terms(edits, np.array(after) - before_K),
            [_position_evidence(edit, position_CT) for edit in edits],
            np.log(num_N / fps) - usual_log_seconds(statistics) + np.log(USUAL_SIZE),
            [edit.changed_share for edit in edits],
        ]
    )


def _bounded_terms(edits: Sequence[Edit], gain_NK: FloatArray) -> FloatArray:
    """What the annotation gains by each of TERMS, within bounds."""
    low_NK, high_NK = np.full_like(gain_NK, -BOUND), np.full_like(gain_NK, BOUND)
    inserts_N = np.array([edit.kind is EditKind.INSERT for edit in edits])
    rewrites_N = np.array([edit.kind in (EditKind.RENAME, EditKind.DELETE) for edit in edits])
    for term in (TERMS.index("bigram"), TERMS.index("trigram")):
        low_NK[inserts_N, term] = LEAST_INSERTED_ORDER
        high_NK[rewrites_N, term] = MOST_WRITTEN_ORDER
    bounded_NK: FloatArray = np.clip(gain_NK, low_NK, high_NK)
    return bounded_NK


def _emission_evidence(
    edits: Sequence[Edit], segments: Sequence[Segment], emission: Emission
) -> FloatArray:
    """The columns (N, 8) that are about what models say."""
    logp_TC, sum_TC = emission.logp_TC, emission.sum_TC
    a_N, m_N, b_N = np.array([(e.start, _meeting(e), e.stop) for e in edits]).T
    y_N, z_N, c_N = np.array([(e.label, e.last_label, e.new_label) for e in edits]).T
    num_N = b_N - a_N
    first_N, last_N = np.maximum(0, a_N - num_N), np.minimum(len(logp_TC), b_N + num_N)

    def over(own_N: IntArray, low_N: IntArray, high_N: IntArray) -> FloatArray:
        """Sums (N,) over frames [low, high), of the new label over a present one."""
        high_sum_N = sum_TC[high_N, c_N] - sum_TC[high_N, own_N]
        sums_N: FloatArray = high_sum_N - (sum_TC[low_N, c_N] - sum_TC[low_N, own_N])
        return sums_N

    total_N = over(z_N, m_N, b_N) + over(y_N, a_N, m_N)
    outside_N = over(y_N, first_N, a_N) + over(z_N, b_N, last_N)
    num_outside_N = (a_N - first_N) + (last_N - b_N)
    contrast_N = np.where(
        num_outside_N > 0, total_N / num_N - outside_N / np.maximum(num_outside_N, 1), 0.0
    )
    root_N = np.sign(total_N) * np.sqrt(np.abs(total_N))
    spans = (a_N, m_N, b_N), (y_N, z_N, c_N)
    family_FN = _span_gains(emission.family_sum_FTC, *spans)
    late_EN = _span_gains(emission.late_sum_ETC, *spans)
    entropy_T = -(np.exp(logp_TC) * logp_TC).sum(axis=1)
    entropy_sum_T = np.concatenate([[0.0], entropy_T.cumsum()])
    rows_NK = np.stack(
        [
            total_N / num_N,
            np.zeros(len(edits)),
            np.clip(root_N, -2 * BOUND, 2 * BOUND),
            np.clip(family_FN.min(axis=0), -BOUND, BOUND),
            np.count_nonzero(late_EN > 0, axis=0) / len(late_EN),
            (sum_TC[m_N, z_N] - sum_TC[b_N, z_N] + sum_TC[a_N, y_N] - sum_TC[m_N, y_N]) / num_N,
            (entropy_sum_T[b_N] - entropy_sum_T[a_N]) / num_N,
            contrast_N,
        ],
        axis=1,
    )
    labels_T = labels_of(segments)
    own_T = logp_TC[np.arange(len(labels_T)), labels_T]
    rival_T = largest(logp_TC)
    for i, edit in enumerate(edits):
        inside = slice(edit.start, edit.stop)
        if edit.kind is EditKind.SWAP:
            # It leaves every frame its label: all that counts is how odd these look where they are.
            gain_T = rival_T[inside] - own_T[inside]
            rows_NK[i, :6] = gain_T.mean(), _low_third(gain_T), 0.0, 0.0, 0.0, -own_T[inside].mean()
            rows_NK[i, 7] = 0.0
        else:
            rows_NK[i, 1] = _low_third(logp_TC[inside, edit.new_label] - own_T[inside])
    return rows_NK


def _meeting(edit: Edit) -> int:
    """Where the frames of the first of two labels end; of one label, where they start."""
    return edit.place if edit.kind is EditKind.INSERT else edit.start


def _low_third(values_T: FloatArray) -> float:
    """Mean of the lowest third, at least of one."""
    count, parted_T = max(1, len(values_T) // 3), values_T.copy()
    parted_T.partition(count - 1)
    return float(np.add.reduce(parted_T[:count])) / count


def _position_evidence(edit: Edit, position_CT: FloatArray) -> float:
    a, m, b = edit.start, _meeting(edit), edit.stop
    if edit.kind is not EditKind.SWAP:
        gain_T = position_CT[edit.new_label, a:b] - position_CT[edit.last_label, a:b]
        if m > a:
            gain_T[: m - a] = position_CT[edit.new_label, a:m] - position_CT[edit.label, a:m]
        return float(np.add.reduce(gain_T)) / (b - a)
    cut, new_cut = edit.place, a + b - edit.place
    now = position_CT[edit.label, a:cut].sum() + position_CT[edit.new_label, cut:b].sum()
    then = position_CT[edit.new_label, a:new_cut].sum() + position_CT[edit.label, new_cut:b].sum()
    return float((then - now) / (b - a))


def _span_gains(
    sum_FTC: FloatArray,
    places: tuple[IntArray, IntArray, IntArray],
    labels: tuple[IntArray, IntArray, IntArray],
) -> FloatArray:
    """Mean gain per frame (F, N) of classes c in frames [a, b), over y up to m, and then over z."""
    (a_N, m_N, b_N), (y_N, z_N, c_N) = places, labels
    c_FN = sum_FTC[:, b_N, c_N] - sum_FTC[:, a_N, c_N]
    z_FN = sum_FTC[:, b_N, z_N] - sum_FTC[:, m_N, z_N]
    y_FN = sum_FTC[:, m_N, y_N] - sum_FTC[:, a_N, y_N]
    gain_FN: FloatArray = (c_FN - (z_FN + y_FN)) / (b_N - a_N)
    return gain_FN


def _bins(num_frames: int) -> IntArray:
    bins_T: IntArray = np.arange(num_frames) * BINS // num_frames
    return bins_T
