"""ActivityNet's JSON of segments in seconds, with the flags instead of annotations.

A flag is what its fix would label: a swap is two segments. The annotated label and the reason of
the flag are in extra fields, which readers of the format ignore.
"""

import json
from typing import Any

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import (
    SECONDS_DIGITS,
    FlaggedVideo,
    confidence,
    flagged_videos,
    written,
)
from csl_dist.storage.output import OutputFolder


def write_activitynet(audit: Audit, folder: OutputFolder, name: str) -> str:
    out = folder.file(name)
    found = list(flagged_videos(audit))
    database = {one.video.id: _entry(one, audit.classes) for one in found}
    content = {"version": "csl_dist flags", "taxonomy": [], "database": database}
    out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return written(sum(len(one.flags) for one in found), len(found), out)


def _entry(found: FlaggedVideo, classes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "subset": "testing",
        "fps": found.fps,
        "duration": found.duration,
        # A video may be a range of a file; segments count from the start of the video.
        "source": found.video.source,
        "source_start": round(found.video.start_seconds, SECONDS_DIGITS),
        "annotations": [
            {
                "segment": [one.start_seconds, one.stop_seconds],
                "label": one.label,
                "label_id": classes.index(one.label),
                "score": confidence(flag, flag["score"]),
                "annotated": flag["label"],
                "kind": flag["kind"],
                "why": flag["why"],
            }
            for flag in found.flags
            for one in found.labelled_spans(flag)
        ],
    }


ACTIVITYNET = Format(name="activitynet", suffix=".json", write=write_activitynet)
