"""Routes that read audits: lists, flags, scores, trajectories, exports."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from csl_dist.errors import CslError, DataError, NotReadyError
from csl_dist.export import FORMATS, export
from csl_dist.query import Audit
from csl_dist.records import Annotation, ErrorKind, FloatArray, IntArray, Span, Split, runs_of
from csl_dist.report.drawing import class_colour
from csl_dist.report.page import calibration_sentence
from csl_dist.report.shrink import column_starts
from csl_dist.score_names import SCORE_NAMES
from csl_dist.service.audits import AuditPool, NotFoundError, OpenAudit
from csl_dist.service.forms import (
    AuditEntry,
    AuditFacts,
    FlagPage,
    Form,
    Frame,
    Name,
    Scores,
    ScoresUnderLabels,
    StageLine,
    State,
    TrajectoryAnswer,
    TrajectoryQuery,
    TrajectoryUnderLabels,
    UnderLabels,
    Values,
    VideoFacts,
    VideoPage,
)
from csl_dist.service.media import shown_as
from csl_dist.service.packing import (
    ARRAYS,
    arrow_answer,
    json_answer,
    npy_answer,
    plain,
    require_room,
)
from csl_dist.service.reviewing import review_row, state_of
from csl_dist.service.settings import (
    MAX_COLUMNS,
    MAX_EXPORT_BYTES,
    MAX_ID,
    MAX_PAGE,
)

DECIDING = "deciding"
"""Names the score that is compared with the threshold."""
BLOCK_FRAMES = 8192
COPY_BYTES = 1 << 20

Video = Annotated[Name, Query(description="Id of a video.", examples=["v2"])]
Revision = Annotated[
    int | None, Query(ge=0, le=9999, description="Number of the audit; the newest if left out.")
]
Scorer = Annotated[Name | None, Query(description="Another scorer's view.")]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Columns = Annotated[
    int | None, Query(ge=1, le=MAX_COLUMNS, description="Put frames together in so many.")
]
Start = Annotated[Frame, Query(description="First frame.")]
Stop = Annotated[Frame | None, Query(description="The frame after the last.")]


def reading_routes(pool: AuditPool) -> APIRouter:
    """All routes below /api/audits that read."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])

    @routes.get("", response_model=list[AuditEntry])
    def list_audits() -> Response:
        """All runs that are served."""
        return json_answer([_entry(pool, audit, root) for audit, root in pool.ids().items()])

    @routes.get("/{audit}", response_model=AuditFacts)
    def describe_audit(audit: str, revision: Revision = None) -> Response:
        """Classes, scorers, revisions, and what an unfinished run still lacks."""
        return json_answer(pool.read(audit, revision, lambda opened: _facts(audit, opened)))

    @routes.get("/{audit}/status", response_model=list[StageLine])
    def show_status(audit: str) -> Response:
        """Units done of all, by stage."""
        from csl_dist.status import run_status  # takes torch along

        lines = run_status(pool.root(audit))
        return json_answer([{"stage": s.stage, "done": s.done, "total": s.total} for s in lines])

    @routes.get("/{audit}/videos", response_model=VideoPage)
    def list_videos(
        audit: str, offset: Offset = 0, limit: Limit = 100, revision: Revision = None
    ) -> Response:
        """Audited videos with their worst score, worst first."""
        table = pool.read(audit, revision, lambda opened: opened.videos())
        rows = table.iloc[offset : offset + limit].to_dict("records")
        return json_answer({"total": len(table), "offset": offset, "videos": _clean(rows)})

    @routes.get("/{audit}/video", response_model=VideoFacts)
    def describe_video(audit: str, video: Video, revision: Revision = None) -> Response:
        """A video's labels, times and flags, and whether it can be shown."""
        return json_answer(pool.read(audit, revision, lambda opened: _video(opened, video)))

    @routes.get("/{audit}/flags", response_model=FlagPage)
    def list_flags(
        audit: str,
        video: Annotated[str | None, Query(max_length=MAX_ID)] = None,
        label: Annotated[
            str | None, Query(max_length=MAX_ID, description="Annotated or suggested.")
        ] = None,
        kind: ErrorKind | None = None,
        min_score: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        from_seconds: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        to_seconds: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        text: Annotated[
            str, Query(max_length=MAX_ID, description="Words of the video's id, labels or reason.")
        ] = "",
        state: State | None = None,
        offset: Offset = 0,
        limit: Limit = 100,
        revision: Revision = None,
    ) -> Response:
        """Flagged spans, worst first, with the decisions on them."""

        def page(opened: OpenAudit) -> dict[str, Any]:
            if video is not None:
                opened.video(video)
            table = opened.audit.flags(
                video=video,
                label=label,
                kind=kind,
                min_score=min_score,
                from_seconds=from_seconds,
                to_seconds=to_seconds,
            )
            return _flag_page(opened, _with_words(table, text), state, offset, limit)

        return json_answer(pool.read(audit, revision, page))

    @routes.get("/{audit}/scores", response_model=Scores, responses=ARRAYS)
    def read_scores(
        audit: str,
        video: Video,
        name: Annotated[
            list[Name] | None,
            Query(max_length=20, description="`deciding`, csl, margin, csl_smoothed and others."),
        ] = None,
        scorer: Scorer = None,
        start: Start = 0,
        stop: Stop = None,
        columns: Columns = None,
        form: Form = Form.JSON,
        revision: Revision = None,
    ) -> Response:
        """Scores of a video's frames; higher is more suspicious."""
        asked = ScoresUnderLabels(
            video=video,
            names=name or ["csl"],
            scorer=scorer,
            start=start,
            stop=stop,
            columns=columns,
            form=form,
        )
        return pool.read(audit, revision, lambda opened: _scores(opened, asked))

    @routes.post("/{audit}/scores", response_model=Scores, responses=ARRAYS)
    def score_under_labels(
        audit: str, asked: ScoresUnderLabels, revision: Revision = None
    ) -> Response:
        """The same under labels that the request gives: no model is needed for that."""
        return pool.read(audit, revision, lambda opened: _scores(opened, asked))

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
            scorer = _scorer(opened.audit, asked.scorer)
            epochs = opened.audit.log_probabilities(asked.video, scorer=scorer).epochs
            rows, chosen = _rows(epochs, None)
            return _column_losses(opened, asked, rows, chosen)

        return pool.read(audit, revision, answer)

    @routes.get("/{audit}/export", response_class=StreamingResponse)
    def download_export(
        audit: str,
        format: Annotated[str, Query(max_length=40, examples=["csv"])],
        revision: Revision = None,
    ) -> Response:
        """Flags for other tools, as `csl export` writes them; several files come as a zip."""
        if format not in FORMATS:
            raise DataError(f"format is {format!r}, expected one of {', '.join(FORMATS)}")
        return pool.read(audit, revision, lambda opened: _export(opened.audit, audit, format))

    return routes


def _entry(pool: AuditPool, audit_id: str, root: str) -> dict[str, Any]:
    try:
        return pool.read(audit_id, None, lambda opened: _ready(opened.audit, audit_id, root))
    except CslError as error:
        return {"id": audit_id, "root": root, "ready": False, "note": str(error)}


def _ready(audit: Audit, audit_id: str, root: str) -> dict[str, Any]:
    return {
        "id": audit_id,
        "root": root,
        "ready": True,
        "revision": audit.revision,
        "videos": sum(video.split is Split.AUDIT for video in audit.scored_videos()),
        "flags": len(audit.flags()) if audit.has_flags else None,
    }


def _facts(audit_id: str, opened: OpenAudit) -> dict[str, Any]:
    audit = opened.audit
    ready = _ready(audit, audit_id, audit.layout.root.url)
    return {
        "id": audit_id,
        "root": audit.layout.root.url,
        "revision": audit.revision,
        "revisions": audit.revisions,
        "classes": [{"name": n, "colour": class_colour(i)} for i, n in enumerate(audit.classes)],
        "scorers": audit.scorers,
        "scorer": audit.scorer,
        "score": audit.verdict.score if audit.has_flags else None,
        "deciding_scorer": audit.verdict.scorer if audit.has_flags else None,
        "num_videos": ready["videos"],
        "num_flags": ready["flags"],
        "missing": audit.missing(),
        "calibration": calibration_sentence(audit),
    }


def _video(opened: OpenAudit, video_id: str) -> dict[str, Any]:
    video, audit = opened.video(video_id), opened.audit
    annotation = audit.annotation(video_id)
    media, note = shown_as(video, annotation)
    intervals = np.diff(annotation.times_T)
    fps = float(1 / np.median(intervals)) if len(intervals) else annotation.source_fps or 1.0
    even_T = np.arange(annotation.num_frames) / fps
    is_even = np.abs(annotation.times_T - even_T).max(initial=0.0) < 0.25 / fps
    if not is_even:
        require_room(annotation.num_frames)
    flags = audit.flags(video=video_id) if audit.has_flags else pd.DataFrame()
    known = audit.known_errors if audit.has_flags else ()
    return {
        "video": video_id,
        "num_frames": annotation.num_frames,
        "duration": annotation.duration or float(annotation.times_T[-1]) + 1 / fps,
        "fps": fps,
        "media": media,
        "note": note,
        "labels": [
            (run.start, run.stop, int(annotation.labels_T[run.start]))
            for run in runs_of(annotation.labels_T)
        ],
        "times": None if is_even else plain(annotation.times_T),
        "threshold": audit.verdict.thresholds.get(video_id) if audit.has_flags else None,
        "flags": _clean(flags.to_dict("records")),
        "known_errors": [
            {"start": e.span.start, "stop": e.span.stop, "kind": e.kind, "label": e.true_label}
            for e in known
            if e.video == video_id
        ],
    }


def _flag_page(
    opened: OpenAudit, table: pd.DataFrame, state: State | None, offset: int, limit: int
) -> dict[str, Any]:
    current = opened.board.current()
    spans = list(zip(table.video, table.start, table.stop, strict=True))
    states = [state_of(current.get(span, [])) for span in spans]
    chosen = [i for i, own in enumerate(states) if state in (None, own)]
    shown = chosen[offset : offset + limit]
    rows = _clean(table.iloc[shown].to_dict("records"))
    for row, i in zip(rows, shown, strict=True):
        row |= {
            "state": states[i],
            "reviews": [review_row(review) for review in current.get(spans[i], [])],
        }
    return {"total": len(chosen), "offset": offset, "flags": rows}


def _with_words(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """Rows whose video, labels and reason hold all words of a text."""
    words = text.lower().split()
    if not words:
        return table
    joined = (table.video + " " + table.label + " " + table.suggested + " " + table.why).str.lower()
    fits = np.ones(len(table), dtype=bool)
    for word in words:
        fits &= joined.str.contains(word, regex=False).to_numpy(dtype=bool)
    return table[fits]


def _scores(opened: OpenAudit, asked: ScoresUnderLabels) -> Response:
    opened.video(asked.video)
    audit = opened.audit
    annotation = audit.annotation(asked.video, scorer=_scorer(audit, asked.scorer))
    span = _span(asked.start, asked.stop, annotation.num_frames, asked.video)
    labels_T = _labels(audit, annotation, asked)
    num_shown = min(len(span), asked.columns or len(span))
    require_room(num_shown * len(asked.names))
    scores = {name: _score(audit, asked, name, labels_T) for name in asked.names}
    shown = {
        name: _highest(score_T[span.start : span.stop], asked.columns)
        for name, score_T in scores.items()
    }
    threshold = audit.verdict.thresholds.get(asked.video) if audit.has_flags else None
    if asked.form is Form.NPY:
        return npy_answer(np.stack(list(shown.values())))
    if asked.form is Form.ARROW:
        firsts = span.start + column_starts(len(span), num_shown)
        columns = {"frame": firsts, "seconds": annotation.times_T[firsts], **shown}
        return arrow_answer(columns, {"video": asked.video, "threshold": threshold})
    return json_answer(
        {
            "video": asked.video,
            "start": span.start,
            "stop": span.stop,
            "threshold": threshold,
            "scores": {name: plain(score) for name, score in shown.items()},
            "change": _change(audit, asked, labels_T, threshold),
        }
    )


def _score(
    audit: Audit, asked: ScoresUnderLabels, name: str, labels_T: IntArray | None
) -> FloatArray:
    if name == DECIDING:
        return audit.deciding_score(asked.video, labels=labels_T)
    scorer = _scorer(audit, asked.scorer)
    if name not in SCORE_NAMES:
        raise NotFoundError(
            f"there is no score {name!r}; there are {DECIDING}, {', '.join(SCORE_NAMES)}"
        )
    return audit.score(asked.video, name, labels=labels_T, scorer=scorer)


def _change(
    audit: Audit, asked: ScoresUnderLabels, labels_T: IntArray | None, threshold: float | None
) -> dict[str, float | None] | None:
    """How the mean deciding score of a span moves."""
    if asked.of is None:
        return None
    num_frames = audit.annotation(asked.video).num_frames
    span = _span(asked.of[0], asked.of[1], num_frames, asked.video)

    def mean(labels: IntArray | None) -> float | None:
        score_T = audit.deciding_score(asked.video, labels=labels)[span.start : span.stop]
        known_T = score_T[~np.isnan(score_T)]
        return float(known_T.mean()) if len(known_T) else None

    return {"before": mean(None), "after": mean(labels_T), "threshold": threshold}


def _labels(audit: Audit, annotation: Annotation, asked: UnderLabels) -> IntArray | None:
    """The class ids (T,) that a request means; None for the annotated ones."""
    if asked.labels is None and not asked.edits:
        return None
    ids = {name: i for i, name in enumerate(audit.classes)} | {"": -1}
    labels_T = annotation.labels_T.copy()
    if asked.labels is not None:
        labels_T = audit.label_ids(asked.labels, asked.video).copy()
    for edit in asked.edits:
        span = _span(edit.start, edit.stop, len(labels_T), asked.video)
        if edit.label not in ids:
            names = ", ".join(audit.classes)
            raise DataError(f"there is no class {edit.label!r}; the classes are {names}")
        labels_T[span.start : span.stop] = ids[edit.label]
    return labels_T


def trajectory_answer(opened: OpenAudit, asked: TrajectoryQuery) -> Response:
    """What a request for a trajectory gets."""
    opened.video(asked.video)
    audit, scorer = opened.audit, _scorer(opened.audit, asked.scorer)
    trajectory = audit.log_probabilities(asked.video, scorer=scorer)
    rows, epochs = _rows(trajectory.epochs, asked.epoch)
    if asked.columns is not None:
        if asked.values is not Values.LOSS or asked.frame is not None:
            raise DataError("only losses of a range of frames are put together in columns")
        under = TrajectoryUnderLabels(
            video=asked.video,
            start=asked.start,
            stop=asked.stop,
            scorer=scorer,
            columns=asked.columns,
            weighted=asked.weighted,
            form=asked.form,
        )
        return _column_losses(opened, under, rows, epochs)
    frames = _frames(asked, trajectory.shape[1])
    width = len(audit.classes) if asked.values is Values.LOG_PROBABILITY else 1
    require_room(len(epochs) * len(frames) * width)

    def read(start: int, stop: int) -> FloatArray:
        if asked.values is Values.LOG_PROBABILITY:
            return trajectory.read(start, stop)
        span = slice(start, stop)
        return audit.trajectory(asked.video, frames=span, weighted=asked.weighted, scorer=scorer)

    if isinstance(frames, range):
        values = read(frames.start, frames.stop)
    else:
        values = np.concatenate([read(frame, frame + 1) for frame in frames], axis=1)
    facts = {"video": asked.video, "scorer": scorer, "epochs": epochs}
    return _packed(audit, facts, frames, values[rows], asked.values, asked.form)


def _column_losses(
    opened: OpenAudit, asked: TrajectoryUnderLabels, rows: slice | list[int], epochs: list[int]
) -> Response:
    """Mean losses (E, columns) of a range of frames, read block by block."""
    audit, video = opened.audit, asked.video
    scorer = _scorer(audit, asked.scorer)
    annotation = audit.annotation(video, scorer=scorer)
    span = _span(asked.start, asked.stop, annotation.num_frames, video)
    firsts = column_starts(len(span), asked.columns or len(span))
    require_room(len(epochs) * len(firsts))
    labels_T = _labels(audit, annotation, asked)
    totals = np.zeros((len(epochs), len(firsts)))
    counts = np.zeros(len(firsts))
    column_T = np.repeat(np.arange(len(firsts)), np.diff([*firsts, len(span)]))
    for a in range(0, len(span), BLOCK_FRAMES):
        b = min(len(span), a + BLOCK_FRAMES)
        losses_ET = audit.trajectory(
            video,
            frames=slice(span.start + a, span.start + b),
            labels=labels_T,
            weighted=asked.weighted,
            scorer=scorer,
        )[rows]
        known_T = ~np.isnan(losses_ET[0])
        columns, starts = np.unique(column_T[a:b], return_index=True)
        totals[:, columns] += np.add.reduceat(np.where(known_T, losses_ET, 0.0), starts, axis=1)
        counts[columns] += np.add.reduceat(known_T.astype(int), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals / counts
    frames = (span.start + firsts).tolist()
    facts = {"video": video, "scorer": scorer, "epochs": epochs}
    return _packed(audit, facts, frames, means, Values.LOSS, asked.form)


def _packed(
    audit: Audit,
    facts: dict[str, Any],
    frames: list[int] | range,
    values: FloatArray,
    what: Values,
    form: Form,
) -> Response:
    if form is Form.NPY:
        return npy_answer(values)
    if form is Form.ARROW:
        by_frame = np.moveaxis(values.astype(np.float32), 1, 0)
        columns = {"frame": np.array(frames), what.value: by_frame}
        return arrow_answer(columns, facts | {"classes": list(audit.classes)})
    return json_answer(facts | {"frames": list(frames), what.value: plain(values)})


def _frames(asked: TrajectoryQuery, num_frames: int) -> range | list[int]:
    if asked.frame is None:
        span = _span(asked.start, asked.stop, num_frames, asked.video)
        return range(span.start, span.stop)
    for frame in asked.frame:
        _span(frame, frame + 1, num_frames, asked.video)
    return asked.frame


def _rows(epochs: list[int], wanted: list[int] | None) -> tuple[slice | list[int], list[int]]:
    """Which rows of a trajectory hold the wanted checkpoints."""
    if wanted is None:
        return slice(None), epochs
    places = {epoch: row for row, epoch in enumerate(epochs)}
    missing = [epoch for epoch in wanted if epoch not in places]
    if missing:
        raise DataError(
            f"there is no checkpoint {missing[0]}; they are {epochs[0]} to {epochs[-1]}"
        )
    return [places[epoch] for epoch in wanted], wanted


def _span(start: int, stop: int | None, num_frames: int, video: str) -> Span:
    stop = num_frames if stop is None else stop
    if not 0 <= start < stop <= num_frames:
        raise DataError(
            f"frames {start} to {stop} are not a range within the {num_frames:,} of {video!r}"
        )
    return Span(start, stop)


def _scorer(audit: Audit, scorer: str | None) -> str:
    if scorer is not None and scorer not in audit.scorers:
        raise NotFoundError(
            f"there is no scorer {scorer!r}; the run has {', '.join(audit.scorers)}"
        )
    return scorer or audit.scorer


def _highest(score_T: FloatArray, columns: int | None) -> FloatArray:
    """The highest score of each column, so that no peak is lost; NaN where there is none."""
    if columns is None or columns >= len(score_T):
        return score_T
    filled_T = np.where(np.isnan(score_T), -np.inf, score_T)
    highest = np.maximum.reduceat(filled_T, column_starts(len(score_T), columns))
    return np.where(np.isinf(highest), np.nan, highest)


def _export(audit: Audit, audit_id: str, name: str) -> Response:
    """Writes an export to a temporary folder and hands it out from there."""
    if not audit.has_flags:
        raise NotReadyError(f"audit {audit_id!r} has no flags yet")
    if name == "hdf5":
        _require_export_room(audit)
    folder = tempfile.mkdtemp(prefix="csl-export-")
    try:
        suffix = {"label-studio": ".json", "activitynet": ".json", "hdf5": ".h5"}.get(name, "")
        suffix = suffix or (f".{name}" if name in ("csv", "parquet") else "")
        export(audit, name, Path(folder, "made", f"{audit_id}-{name}{suffix}"))
        made = sorted(Path(folder, "made").iterdir())
        path = made[0]
        if len(made) > 1 or path.is_dir():
            inside = Path(folder, "made") if len(made) > 1 else path
            path = _zipped(inside, Path(folder, f"{audit_id}-{name}.zip"))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise

    def content() -> Iterator[bytes]:
        try:
            with path.open("rb") as file:
                while block := file.read(COPY_BYTES):
                    yield block
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return StreamingResponse(
        content(),
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{path.name}"'},
    )


def _zipped(folder: Path, path: Path) -> Path:
    """The files below a folder; links to videos stay out, whose owners have them."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                archive.write(file, file.relative_to(folder))
    return path


def _require_export_room(audit: Audit) -> None:
    num_bytes = 0
    for video in audit.scored_videos():
        if video.split is Split.AUDIT:
            for scorer in audit.scorers:
                shape = audit.log_probabilities(video.id, scorer=scorer).shape
                num_bytes += 2 * int(np.prod(shape))
        if num_bytes > MAX_EXPORT_BYTES:
            raise DataError(
                f"the trajectories take more than {MAX_EXPORT_BYTES >> 20} MiB; write them with "
                "`csl export --format hdf5` where the run is"
            )


def _clean(rows: list[dict[Any, Any]]) -> list[dict[str, Any]]:
    """Rows of a table with null where a number is missing."""
    return [
        {name: None if isinstance(v, float) and np.isnan(v) else v for name, v in row.items()}
        for row in rows
    ]
