"""Label Studio: one task per video, whose prediction has a region for each span that a fix labels.

Frames are counted from 1, and a range includes its last frame. The labelling interface that the
tasks need is written to a second file.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import (
    FlaggedVideo,
    LabelledSpan,
    confidence,
    flagged_videos,
    without_video,
    written,
)
from csl_dist.storage.output import OutputFolder

FROM_NAME, TO_NAME = "steps", "video"


def write_label_studio(audit: Audit, folder: OutputFolder, name: str) -> str:
    """Tasks as JSON, and the labelling interface as XML with the same name."""
    out, interface = folder.file(name), folder.file(Path(name).with_suffix(".xml"))
    num_flags = len(audit.flags())
    found = list(flagged_videos(audit))
    tasks = [_task(one, num_flags) for one in found]
    out.write_text(json.dumps(tasks, indent=2) + "\n", encoding="utf-8")
    interface.write_text(labelling_interface(audit.classes), encoding="utf-8")
    words = written(num_flags, len(tasks), out)
    words = f"{words}; the project's labelling interface is {interface}"
    return words + without_video(audit, found)


def labelling_interface(classes: tuple[str, ...]) -> str:
    labels = "\n".join(f'    <Label value="{escape(name)}"/>' for name in classes)
    return f"""<View>
  <TimelineLabels name="{FROM_NAME}" toName="{TO_NAME}">
{labels}
  </TimelineLabels>
  <Video name="{TO_NAME}" value="$video" timelineHeight="120" frameRate="$fps"/>
</View>
"""


def _task(found: FlaggedVideo, num_flags: int) -> dict[str, Any]:
    """A video's task; tasks sorted by the score of their predictions are worst first.

    Label Studio needs scores from 0 to 1: the probability of the likeliest error, or, of rules that
    give none, the share of flags that are not worse.
    """
    return {
        "data": {
            "video": found.video.source,
            "fps": f"{found.fps:g}",
            "video_id": found.video.id,
        },
        "predictions": [
            {
                "model_version": "csl_dist",
                "score": max(
                    confidence(flag, 1 - (flag["rank"] - 1) / num_flags) for flag in found.flags
                ),
                "result": [
                    _region(labelled, flag, number)
                    for flag in found.flags
                    for number, labelled in enumerate(found.labelled_spans(flag), 1)
                ],
            }
        ],
    }


def _region(labelled: LabelledSpan, flag: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": f"csl-{flag['rank']}-{number}",
        "type": "timelinelabels",
        "from_name": FROM_NAME,
        "to_name": TO_NAME,
        "value": {
            "ranges": [{"start": labelled.span.start + 1, "end": labelled.span.stop}],
            "timelinelabels": [labelled.label],
        },
        "score": confidence(flag, flag["suggested_probability"]),
        "meta": {"text": [f"labelled {flag['label']}; {flag['why']}"]},
    }


LABEL_STUDIO = Format(name="label-studio", suffix=".json", write=write_label_studio)
