"""FiftyOne: a FiftyOneTemporalDetectionDataset of the flagged videos.

`labels.json`, and a folder `data` with links to the videos, so that nothing is copied. A support is
in frames counted from 1, both ends included.
"""

import json
from pathlib import Path
from typing import Any

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import LabelledSpan, confidence, flagged_videos, without_video, written
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.url import key_part
from csl_dist.types import Media


def write_fiftyone(audit: Audit, folder: OutputFolder, name: str) -> str:
    found = list(flagged_videos(audit))
    (folder.path / "data").mkdir(parents=True, exist_ok=True)
    labels = {}
    for one in found:
        own = key_part(one.video.id)
        labels[own] = [
            _detection(labelled, audit.classes, flag)
            for flag in one.flags
            for labelled in one.labelled_spans(flag)
        ]
        if one.video.media is Media.VIDEO:
            suffix = Path(one.video.source).suffix
            folder.link(f"data/{own}{suffix}", one.video.source)
    content = {"classes": list(audit.classes), "labels": labels}
    text = json.dumps(content, indent=2) + "\n"
    folder.file("labels.json").write_text(text, encoding="utf-8")
    words = written(sum(len(one.flags) for one in found), len(found), folder.path)
    return words + without_video(audit, found)


def _detection(
    labelled: LabelledSpan, classes: tuple[str, ...], flag: dict[str, Any]
) -> dict[str, Any]:
    return {
        "label": classes.index(labelled.label),
        "support": [labelled.span.start + 1, labelled.span.stop],
        "confidence": confidence(flag, flag["suggested_probability"]),
        "attributes": {
            "annotated": flag["label"],
            "kind": flag["kind"],
            "score": flag["score"],
            "why": flag["why"],
        },
    }


FIFTYONE = Format(name="fiftyone", suffix="", inside=".json", write=write_fiftyone)
