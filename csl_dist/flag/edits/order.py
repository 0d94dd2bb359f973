"""Order of steps, frame by frame: what lint's statistics of other groups' labels say against it.

Models have no say in it: a swap of two steps is in the labels, and checkpoints hardly see it.
"""

from collections.abc import Sequence

import numpy as np

from csl_dist.data.segments import segments_of
from csl_dist.flag.edits.labelled import LabelledVideo
from csl_dist.lint.corpus import corpus_of
from csl_dist.lint.sequences import LabelSequence, Step
from csl_dist.lint.statistics.evidence import order_scores as order_of_segments
from csl_dist.lint.statistics.grammar import Grammar
from csl_dist.types import UNLABELLED, FloatArray


def order_scores(videos: Sequence[LabelledVideo]) -> dict[str, FloatArray]:
    """By video (T,): nats by which the usual order speaks against a frame's step; higher is worse.

    NaN on frames without a label. Every class counts as a step: a swap with background is one, too.
    """
    corpus = corpus_of(_steps_of(video) for video in videos)
    order_N = order_of_segments(Grammar(corpus))
    scores = {}
    for number, video in enumerate(videos):
        score_T = np.full(len(video.labels_T), np.nan, dtype=np.float32)
        own = corpus.span(number)
        for start, stop, order in zip(
            corpus.start_N[own], corpus.stop_N[own], order_N[own], strict=True
        ):
            score_T[int(start) : int(stop)] = order
        scores[video.id] = score_T
    return scores


def _steps_of(video: LabelledVideo) -> LabelSequence:
    """The segments of a video as lint reads them, with frames for seconds."""
    return LabelSequence(
        video=video.id,
        file=video.id,
        group=video.group,
        steps=tuple(
            Step(label=str(s.label), start_seconds=s.start, stop_seconds=s.stop)
            for s in segments_of(video.labels_T)
            if s.label != UNLABELLED
        ),
    )
