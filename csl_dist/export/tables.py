"""Flags as CSV or Parquet: every column, the span in frames of the source, and what is proposed."""

import json
from typing import Any

import pandas as pd

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import SECONDS_DIGITS, FlaggedVideo, flagged_videos, written
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.tables import csv_bytes, table_bytes

ADDED = ("source", "source_start", "source_stop", "proposal")
"""Columns beside those of the flags."""


def write_csv(audit: Audit, folder: OutputFolder, name: str) -> str:
    out, table = folder.file(name), flag_table(audit)
    out.write_bytes(csv_bytes(table))
    return written(len(table), table.video.nunique(), out)


def write_parquet(audit: Audit, folder: OutputFolder, name: str) -> str:
    out, table = folder.file(name), flag_table(audit)
    out.write_bytes(table_bytes(table))
    return written(len(table), table.video.nunique(), out)


def flag_table(audit: Audit) -> pd.DataFrame:
    """All flags, worst first; source_start and source_stop are half-open, from 0.

    `proposal` is JSON: the spans, in frames of the run, that get another label by the flag's fix.
    """
    added = {
        flag["rank"]: _added_columns(found, flag)
        for found in flagged_videos(audit)
        for flag in found.flags
    }
    table = audit.flags()
    table = table.assign(
        start_seconds=table.start_seconds.round(SECONDS_DIGITS),
        stop_seconds=table.stop_seconds.round(SECONDS_DIGITS),
    )
    columns = pd.DataFrame([added[rank] for rank in table["rank"]], columns=list(ADDED))
    return pd.concat([table, columns], axis=1)


def _added_columns(found: FlaggedVideo, flag: dict[str, Any]) -> tuple[str, int, int, str]:
    span = found.source_span(flag["start"], flag["stop"])
    edits = json.dumps([edit.as_json() for edit in found.proposal(flag)])
    return found.video.source, span.start, span.stop, edits


CSV = Format(name="csv", suffix=".csv", write=write_csv)
PARQUET = Format(name="parquet", suffix=".parquet", write=write_parquet)
