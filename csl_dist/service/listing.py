"""Spans in a list: flags, all segments, a certificate's sample, or errors that flags missed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.certify.sample import sample_of
from csl_dist.flag.rules import with_all_columns
from csl_dist.review.store import ERRORS, Review, SpanKey, state_of
from csl_dist.service.audits import OpenAudit
from csl_dist.service.encoding import review_row
from csl_dist.service.forms import FlagsQuery, Sort, Source
from csl_dist.storage.tables import table_rows
from csl_dist.types import BoolArray

MISSED = "missed"
"""The kind of an error that a reviewer marked where there is no flag."""


def page_of_spans(opened: OpenAudit, query: FlagsQuery) -> dict[str, Any]:
    """The spans that a request asks for, with the decisions on them."""
    if query.video is not None:
        opened.video(query.video)
    current = opened.decisions.by_span()
    table = _table(opened, query.source, current)
    table = table[_matches(opened, table, query)]
    spans = list(zip(table.video, table.start, table.stop, strict=True))
    states = [state_of(current.get(span, ())) for span in spans]
    chosen = [
        i
        for i, span in enumerate(spans)
        if query.state in (None, states[i])
        and (
            query.reviewer is None
            or any(review.reviewer == query.reviewer for review in current.get(span, ()))
        )
    ]
    chosen = _sorted(table, chosen, query.sort)
    shown = chosen[query.offset : query.offset + query.limit]
    rows = table_rows(table.iloc[shown].drop(columns=["flagged", "is_flag"], errors="ignore"))
    for row, i in zip(rows, shown, strict=True):
        row |= {
            "proposal": [edit.as_json() for edit in opened.proposal(row)],
            "state": states[i],
            "reviews": [review_row(review) for review in current.get(spans[i], ())],
        }
    return {"total": len(chosen), "offset": query.offset, "flags": rows}


def with_expected(opened: OpenAudit) -> pd.DataFrame:
    """All findings with how likely each is an error, and who is to review it."""
    assigned = pd.Series(opened.dealt(), dtype=object)
    return opened.findings.assign(expected=opened.expected()[1], assigned=assigned)


def _table(
    opened: OpenAudit, source: Source, current: Mapping[SpanKey, Sequence[Review]]
) -> pd.DataFrame:
    audit = opened.audit
    match source:
        case Source.FLAGS:
            table = with_expected(opened)
            return table[table.is_flag]
        case Source.FINDINGS:
            return with_expected(opened)
        case Source.SEGMENTS:
            table = opened.segments()
        case Source.SAMPLE:
            table = sample_of(audit).rows_of(opened.segments())
        case Source.MISSED:
            table = missed_errors(opened, current)
    return table.assign(expected=np.nan, assigned=pd.Series([()] * len(table), dtype=object))


def missed_errors(opened: OpenAudit, current: Mapping[SpanKey, Sequence[Review]]) -> pd.DataFrame:
    """Errors that reviewers found where there is no flag, in the order of videos and frames."""
    audit = opened.audit
    flags = audit.flags()
    flagged = set(zip(flags.video, flags.start, flags.stop, strict=True))
    rows: list[dict[str, Any]] = []
    for video, start, stop in sorted(set(current) - flagged):
        last = current[video, start, stop][-1]
        if last.decision not in ERRORS:
            continue
        annotation = audit.annotation(video)
        label = int(annotation.labels_T[start])
        name = audit.classes[label] if label >= 0 else ""
        start_seconds, stop_seconds = annotation.seconds_of(start, stop)
        rows.append(
            {
                "rank": len(rows) + 1,
                "video": video,
                "start": start,
                "stop": stop,
                "start_seconds": start_seconds,
                "stop_seconds": stop_seconds,
                "score": np.nan,
                "kind": MISSED,
                "label": name,
                "suggested": last.changes[0].label if last.changes else name,
                "why": f"marked by {last.reviewer}",
            }
        )
    return with_all_columns(pd.DataFrame(rows))


def _matches(opened: OpenAudit, table: pd.DataFrame, query: FlagsQuery) -> BoolArray:
    """Which rows (N,) fit all that is asked for."""
    fits_N = np.ones(len(table), dtype=bool)
    for column, wanted in (
        ("video", query.video),
        ("label", query.annotated),
        ("suggested", query.suggested),
        ("kind", query.kind),
    ):
        if wanted is not None:
            fits_N &= (table[column] == wanted).to_numpy(dtype=bool)
    if query.label is not None:
        is_either = (table.label == query.label) | (table.suggested == query.label)
        fits_N &= is_either.to_numpy(dtype=bool)
    for column, least in (("score", query.min_score), ("expected", query.min_expected)):
        if least is not None:
            fits_N &= (table[column] >= least).to_numpy(dtype=bool)
    if query.from_seconds is not None:
        fits_N &= (table.stop_seconds > query.from_seconds).to_numpy(dtype=bool)
    if query.to_seconds is not None:
        fits_N &= (table.start_seconds < query.to_seconds).to_numpy(dtype=bool)
    if query.assigned is not None:
        fits_N &= np.array([query.assigned in names for names in table.assigned], dtype=bool)
    for name, wanted in (("annotator", query.annotator), ("procedure", query.procedure)):
        if wanted is not None:
            videos = opened.audit.videos_by_id
            own = {video for video, facts in videos.items() if getattr(facts, name) == wanted}
            fits_N &= table.video.isin(own).to_numpy(dtype=bool)
    words = query.text.lower().split()
    if words:
        # Row by row: columns of an empty table are numbers to pandas, and texts can't be added.
        columns = table[["video", "label", "suggested", "why"]].fillna("").astype(str)
        texts = (" ".join(row).lower() for row in columns.itertuples(index=False))
        fits_N &= np.array([all(word in text for word in words) for text in texts], dtype=bool)
    return fits_N


def _sorted(table: pd.DataFrame, rows: Sequence[int], sort: Sort) -> list[int]:
    """Rows in the wanted order; equal ones by rank."""
    chosen = list(rows)
    match sort:
        case Sort.RANK:
            return chosen
        case Sort.EXPECTED:
            key_N = -table.expected.fillna(0.0).to_numpy(dtype=float)
        case Sort.LENGTH:
            key_N = -(table.stop_seconds - table.start_seconds).to_numpy(dtype=float)
        case Sort.VIDEO:
            return sorted(chosen, key=lambda i: (table.video.iloc[i], table.start.iloc[i]))
    return sorted(chosen, key=lambda i: key_N[i])
