"""ActivityNet's JSON of segments in seconds, with the flags instead of annotations.

The label of a segment is the suggested one. The annotated label and the reason of the flag are in
extra fields, which readers of the format ignore.
"""

import json
from typing import Any

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import FlaggedVideo, counted, flagged_videos
from csl_dist.storage.output import OutputFolder


def write_activitynet(audit: Audit, folder: OutputFolder, name: str) -> str:
    out = folder.file(name)
    found = list(flagged_videos(audit))
    database = {one.video.id: _entry(one, audit.classes) for one in found}
    content = {"version": "csl_dist flags", "taxonomy": [], "database": database}
    out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return counted(sum(len(one.flags) for one in found), len(found), out)


def _entry(found: FlaggedVideo, classes: tuple[str, ...]) -> dict[str, Any]:
    return {
        "subset": "testing",
        "fps": found.annotation.source_fps,
        "duration": found.annotation.duration,
        # A video may be a range of a file; segments count from the start of the video.
        "source": found.video.source,
        "source_start": found.video.start_seconds,
        "annotations": [
            {
                "segment": [flag["start_seconds"], flag["stop_seconds"]],
                "label": flag["suggested"],
                "label_id": classes.index(flag["suggested"]),
                "score": flag["score"],
                "annotated": flag["label"],
                "kind": flag["kind"],
                "why": flag["why"],
            }
            for flag in found.flags
        ],
    }


ACTIVITYNET = Format(name="activitynet", suffix=".json", write=write_activitynet)
