"""Routes of trajectories: losses and log-probabilities of frames under checkpoints."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response

from csl_dist.errors import DataError
from csl_dist.report.shrink import column_starts, shrunk_losses
from csl_dist.service.audits import OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import (
    ARRAYS,
    arrow_response,
    check_size,
    json_response,
    npy_response,
    rounded_lists,
)
from csl_dist.service.forms import (
    Form,
    FramesQuery,
    Revision,
    TrajectoryQuery,
    TrajectoryUnderLabels,
    Values,
)
from csl_dist.service.responses import Trajectory
from csl_dist.service.selection import requested_labels, requested_span, span_within
from csl_dist.types import FloatArray, IntArray


def trajectory_routes(context: ServiceContext) -> APIRouter:
    """Trajectories of frames, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

    @routes.get("/{audit}/trajectory", response_model=Trajectory, responses=ARRAYS)
    def read_trajectory(audit: str, query: Annotated[TrajectoryQuery, Query()]) -> Response:
        """Losses of any frames under any checkpoints, or log-probabilities of all classes."""
        return pool.read(audit, query.revision, lambda opened: _trajectory(opened, query))

    @routes.post("/{audit}/trajectory", response_model=Trajectory, responses=ARRAYS)
    def trajectory_under_labels(
        audit: str, query: TrajectoryUnderLabels, revision: Revision = None
    ) -> Response:
        """Losses under labels that the request gives, the mean of each column."""

        def columns(opened: OpenAudit) -> Response:
            opened.video(query.video)
            annotation = opened.audit.annotation(query.video, scorer=opened.scorer(query.scorer))
            labels_T = requested_labels(opened.audit, annotation, query)
            return _columns(opened, query, labels_T=labels_T, weighted=query.weighted)

        return pool.read(audit, revision, columns)

    return routes


def _trajectory(opened: OpenAudit, query: TrajectoryQuery) -> Response:
    """Losses or log-probabilities of the requested frames under the requested checkpoints."""
    opened.video(query.video)
    if query.columns is not None:
        if query.values is not Values.LOSS or query.frame is not None:
            raise DataError(
                "columns need losses of a range of frames, not single frames or log-probabilities"
            )
        return _columns(opened, query, epochs=query.epoch, weighted=query.weighted)
    audit, scorer = opened.audit, opened.scorer(query.scorer)
    trajectory = audit.log_probabilities(query.video, scorer=scorer)
    epochs = query.epoch or trajectory.epochs
    rows = _rows(trajectory.epochs, epochs)
    frames = _frames(query, trajectory.shape[1])
    width = len(audit.classes) if query.values is Values.LOG_PROBABILITY else 1
    check_size(len(rows) * len(frames) * width)

    def read(start: int, stop: int) -> FloatArray:
        if query.values is Values.LOG_PROBABILITY:
            return trajectory.read(start, stop)
        span = slice(start, stop)
        return audit.trajectory(query.video, frames=span, weighted=query.weighted, scorer=scorer)

    if isinstance(frames, range):
        values = read(frames.start, frames.stop)
    else:
        values = np.concatenate([read(frame, frame + 1) for frame in frames], axis=1)
    return _encoded(opened, query, epochs, frames, values[rows], query.values)


def _columns(
    opened: OpenAudit,
    query: FramesQuery,
    *,
    epochs: list[int] | None = None,
    labels_T: IntArray | None = None,
    weighted: bool | None,
) -> Response:
    """Mean losses of each column; without columns, each frame is one."""
    audit, scorer = opened.audit, opened.scorer(query.scorer)
    trajectory = audit.log_probabilities(query.video, scorer=scorer)
    epochs = epochs or trajectory.epochs
    rows = _rows(trajectory.epochs, epochs)
    span = requested_span(query, trajectory.shape[1])
    firsts = column_starts(len(span), query.columns or len(span))
    check_size(len(rows) * len(firsts))
    means_EW = shrunk_losses(
        audit,
        query.video,
        span=span,
        max_columns=len(firsts),
        labels=labels_T,
        weighted=weighted,
        scorer=scorer,
    ).columns_EW
    frames = (span.start + firsts).tolist()
    return _encoded(opened, query, epochs, frames, means_EW[rows], Values.LOSS)


def _encoded(
    opened: OpenAudit,
    query: FramesQuery,
    epochs: Sequence[int],
    frames: Sequence[int],
    values: FloatArray,
    kind: Values,
) -> Response:
    """Values (E, T, …) in the requested form."""
    if query.form is Form.NPY:
        return npy_response(values)
    facts = {"video": query.video, "scorer": opened.scorer(query.scorer), "epochs": epochs}
    if query.form is Form.ARROW:
        by_frame = np.moveaxis(values.astype(np.float32), 1, 0)
        columns = {"frame": np.array(frames), kind.value: by_frame}
        return arrow_response(columns, facts | {"classes": list(opened.audit.classes)})
    return json_response(facts | {"frames": list(frames), kind.value: rounded_lists(values)})


def _frames(query: TrajectoryQuery, num_frames: int) -> range | list[int]:
    if query.frame is None:
        span = requested_span(query, num_frames)
        return range(span.start, span.stop)
    for frame in query.frame:
        span_within(frame, frame + 1, num_frames, query.video)
    return query.frame


def _rows(epochs: list[int], wanted: list[int]) -> list[int]:
    """Which rows of a trajectory hold the wanted checkpoints."""
    row_of = {epoch: row for row, epoch in enumerate(epochs)}
    missing = [epoch for epoch in wanted if epoch not in row_of]
    if missing:
        raise DataError(
            f"there is no checkpoint {missing[0]}; they are {epochs[0]} to {epochs[-1]}"
        )
    return [row_of[epoch] for epoch in wanted]
