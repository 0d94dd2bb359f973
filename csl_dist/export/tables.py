"""Flags as CSV or Parquet: every column, and the span in frames of the source."""

import pandas as pd

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import counted, flagged_videos
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.tables import csv_bytes, table_bytes


def write_csv(audit: Audit, folder: OutputFolder, name: str) -> str:
    out, table = folder.file(name), flag_table(audit)
    out.write_bytes(csv_bytes(table))
    return counted(len(table), table.video.nunique(), out)


def write_parquet(audit: Audit, folder: OutputFolder, name: str) -> str:
    out, table = folder.file(name), flag_table(audit)
    out.write_bytes(table_bytes(table))
    return counted(len(table), table.video.nunique(), out)


def flag_table(audit: Audit) -> pd.DataFrame:
    """All flags, worst first; source_start and source_stop are half-open, from 0."""
    spans = {
        flag["rank"]: found.source_span(flag)
        for found in flagged_videos(audit)
        for flag in found.flags
    }
    table = audit.flags()
    return table.assign(
        source=[audit.videos_by_id[video].source for video in table.video],
        source_start=[spans[rank].start for rank in table["rank"]],
        source_stop=[spans[rank].stop for rank in table["rank"]],
    )


CSV = Format(name="csv", suffix=".csv", write=write_csv)
PARQUET = Format(name="parquet", suffix=".parquet", write=write_parquet)
