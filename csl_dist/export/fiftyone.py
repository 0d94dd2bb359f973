"""FiftyOne: a FiftyOneTemporalDetectionDataset of the flagged videos.

`labels.json`, and a folder `data` with links to the videos, so that nothing is copied. A support is
in frames counted from 1, both ends included.
"""

import json
from pathlib import Path
from typing import Any

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import FlaggedVideo, counted, flagged_videos
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.url import key_part
from csl_dist.types import Media


def write_fiftyone(audit: Audit, folder: OutputFolder, name: str) -> str:
    found = list(flagged_videos(audit))
    (folder.path / "data").mkdir(parents=True, exist_ok=True)
    labels = {}
    for one in found:
        own = key_part(one.video.id)
        labels[own] = [_detection(one, audit.classes, flag) for flag in one.flags]
        if one.video.media is Media.VIDEO:
            suffix = Path(one.video.source).suffix
            folder.link(f"data/{own}{suffix}", one.video.source)
    content = {"classes": list(audit.classes), "labels": labels}
    text = json.dumps(content, indent=2) + "\n"
    folder.file("labels.json").write_text(text, encoding="utf-8")
    return counted(sum(len(rows) for rows in labels.values()), len(found), folder.path)


def _detection(
    found: FlaggedVideo, classes: tuple[str, ...], flag: dict[str, Any]
) -> dict[str, Any]:
    span = found.source_span(flag)
    return {
        "label": classes.index(flag["suggested"]),
        "support": [span.start + 1, span.stop],
        "confidence": flag["suggested_probability"],
        "attributes": {
            "annotated": flag["label"],
            "kind": flag["kind"],
            "score": flag["score"],
            "why": flag["why"],
        },
    }


FIFTYONE = Format(name="fiftyone", suffix="", write=write_fiftyone)
