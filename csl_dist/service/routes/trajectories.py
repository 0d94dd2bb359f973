"""Routes of trajectories: losses and log-probabilities of frames under checkpoints."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response

from csl_dist.errors import DataError
from csl_dist.report.shrink import column_starts, shrunk_losses
from csl_dist.service.answers import TrajectoryAnswer
from csl_dist.service.asked import asked_labels, asked_span, span_within
from csl_dist.service.audits import AuditPool, OpenAudit
from csl_dist.service.forms import (
    AskedFrames,
    Form,
    Revision,
    TrajectoryQuery,
    TrajectoryUnderLabels,
    Values,
)
from csl_dist.service.packing import (
    ARRAYS,
    arrow_answer,
    json_answer,
    npy_answer,
    plain,
    require_room,
)
from csl_dist.types import FloatArray, IntArray


def trajectory_routes(pool: AuditPool) -> APIRouter:
    """Trajectories of frames, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])

    @routes.get("/{audit}/trajectory", response_model=TrajectoryAnswer, responses=ARRAYS)
    def read_trajectory(audit: str, asked: Annotated[TrajectoryQuery, Query()]) -> Response:
        """Losses of any frames under any checkpoints, or log-probabilities of all classes."""
        return pool.read(audit, asked.revision, lambda opened: trajectory_answer(opened, asked))

    @routes.post("/{audit}/trajectory", response_model=TrajectoryAnswer, responses=ARRAYS)
    def trajectory_under_labels(
        audit: str, asked: TrajectoryUnderLabels, revision: Revision = None
    ) -> Response:
        """Losses under labels that the request gives, the mean of each column."""

        def answer(opened: OpenAudit) -> Response:
            opened.video(asked.video)
            annotation = opened.audit.annotation(asked.video, scorer=opened.scorer(asked.scorer))
            labels_T = asked_labels(opened.audit, annotation, asked)
            return _column_answer(opened, asked, labels_T=labels_T, weighted=asked.weighted)

        return pool.read(audit, revision, answer)

    return routes


def trajectory_answer(opened: OpenAudit, asked: TrajectoryQuery) -> Response:
    """What a request for a trajectory gets."""
    opened.video(asked.video)
    if asked.columns is not None:
        if asked.values is not Values.LOSS or asked.frame is not None:
            raise DataError("only losses of a range of frames are put together in columns")
        return _column_answer(opened, asked, epochs=asked.epoch, weighted=asked.weighted)
    audit, scorer = opened.audit, opened.scorer(asked.scorer)
    trajectory = audit.log_probabilities(asked.video, scorer=scorer)
    epochs = asked.epoch or trajectory.epochs
    rows = _rows(trajectory.epochs, epochs)
    frames = _frames(asked, trajectory.shape[1])
    width = len(audit.classes) if asked.values is Values.LOG_PROBABILITY else 1
    require_room(len(rows) * len(frames) * width)

    def read(start: int, stop: int) -> FloatArray:
        if asked.values is Values.LOG_PROBABILITY:
            return trajectory.read(start, stop)
        span = slice(start, stop)
        return audit.trajectory(asked.video, frames=span, weighted=asked.weighted, scorer=scorer)

    if isinstance(frames, range):
        values = read(frames.start, frames.stop)
    else:
        values = np.concatenate([read(frame, frame + 1) for frame in frames], axis=1)
    return _packed(opened, asked, epochs, frames, values[rows], asked.values)


def _column_answer(
    opened: OpenAudit,
    asked: AskedFrames,
    *,
    epochs: list[int] | None = None,
    labels_T: IntArray | None = None,
    weighted: bool | None,
) -> Response:
    """Mean losses of each column; each frame is one where no columns are asked for."""
    audit, scorer = opened.audit, opened.scorer(asked.scorer)
    trajectory = audit.log_probabilities(asked.video, scorer=scorer)
    epochs = epochs or trajectory.epochs
    rows = _rows(trajectory.epochs, epochs)
    span = asked_span(asked, trajectory.shape[1])
    firsts = column_starts(len(span), asked.columns or len(span))
    require_room(len(rows) * len(firsts))
    means_EW = shrunk_losses(
        audit,
        asked.video,
        span=span,
        max_columns=len(firsts),
        labels=labels_T,
        weighted=weighted,
        scorer=scorer,
    ).columns_EW
    frames = (span.start + firsts).tolist()
    return _packed(opened, asked, epochs, frames, means_EW[rows], Values.LOSS)


def _packed(
    opened: OpenAudit,
    asked: AskedFrames,
    epochs: Sequence[int],
    frames: Sequence[int],
    values: FloatArray,
    what: Values,
) -> Response:
    """Values (E, T, …) in the form that was asked for."""
    if asked.form is Form.NPY:
        return npy_answer(values)
    facts = {"video": asked.video, "scorer": opened.scorer(asked.scorer), "epochs": epochs}
    if asked.form is Form.ARROW:
        by_frame = np.moveaxis(values.astype(np.float32), 1, 0)
        columns = {"frame": np.array(frames), what.value: by_frame}
        return arrow_answer(columns, facts | {"classes": list(opened.audit.classes)})
    return json_answer(facts | {"frames": list(frames), what.value: plain(values)})


def _frames(asked: TrajectoryQuery, num_frames: int) -> range | list[int]:
    if asked.frame is None:
        span = asked_span(asked, num_frames)
        return range(span.start, span.stop)
    for frame in asked.frame:
        span_within(frame, frame + 1, num_frames, asked.video)
    return asked.frame


def _rows(epochs: list[int], wanted: list[int]) -> list[int]:
    """Which rows of a trajectory hold the wanted checkpoints."""
    places = {epoch: row for row, epoch in enumerate(epochs)}
    missing = [epoch for epoch in wanted if epoch not in places]
    if missing:
        raise DataError(
            f"there is no checkpoint {missing[0]}; they are {epochs[0]} to {epochs[-1]}"
        )
    return [places[epoch] for epoch in wanted]
