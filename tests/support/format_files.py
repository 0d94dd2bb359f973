"""A small truthful file in every format of label documents, and the segments that it holds.

All hold the same labels of two videos at 10 frames a second, as far as the format allows.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from layout_files import touch

from csl_dist.config import AnnotatedConfig, ColumnsConfig, SegmentsConfig
from csl_dist.data.documents.edits import Edge, Renaming

FPS = 10
DRAWN = {
    "v1": ((0.0, 1.2, "cut"), (1.2, 2.0, "stir"), (2.5, 4.0, "serve")),
    "v2": ((0.0, 1.0, "stir"), (1.0, 3.0, "cut")),
}
"""Start, stop and label of every segment, by video."""

NUM_FRAMES = 40
TIMES_T = np.arange(NUM_FRAMES) / FPS


def edge(frame: int) -> Edge:
    """Before a frame of a video of 40 frames."""
    if frame == 0:
        return Edge(after=-np.inf, at=0.0, middle=-np.inf)
    if frame == NUM_FRAMES:
        return Edge(after=TIMES_T[-1], at=NUM_FRAMES / FPS, middle=np.inf)
    return Edge(after=TIMES_T[frame - 1], at=TIMES_T[frame], middle=(frame - 0.5) / FPS)


def renaming(start: int, stop: int, label: str) -> Renaming:
    return Renaming(start=edge(start), stop=edge(stop), label=label)


Config = AnnotatedConfig | SegmentsConfig


def elan_text(video: str = "v1") -> str:
    times = sorted({s for a, b, _ in DRAWN[video] for s in (a, b)})
    slots = {s: f"ts{i}" for i, s in enumerate(times, start=1)}
    order = "\n".join(
        f'        <TIME_SLOT TIME_SLOT_ID="{name}" TIME_VALUE="{round(s * 1000)}"/>'
        for s, name in slots.items()
    )
    annotations = "\n".join(
        f"""        <ANNOTATION>
            <ALIGNABLE_ANNOTATION ANNOTATION_ID="a{i}" TIME_SLOT_REF1="{slots[a]}" \
TIME_SLOT_REF2="{slots[b]}">
                <ANNOTATION_VALUE>{label}</ANNOTATION_VALUE>
            </ALIGNABLE_ANNOTATION>
        </ANNOTATION>"""
        for i, (a, b, label) in enumerate(DRAWN[video], start=1)
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="Zoë" DATE="2024-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0">
    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
        <MEDIA_DESCRIPTOR MEDIA_URL="file:///c:/videos/{video}.mp4" MIME_TYPE="video/mp4"/>
        <PROPERTY NAME="lastUsedAnnotationId">{len(DRAWN[video])}</PROPERTY>
    </HEADER>
    <TIME_ORDER>
{order}
    </TIME_ORDER>
    <TIER LINGUISTIC_TYPE_REF="steps" TIER_ID="steps">
{annotations}
    </TIER>
    <LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="steps" TIME_ALIGNABLE="true"/>
</ANNOTATION_DOCUMENT>
"""


def anvil_text(video: str = "v1") -> str:
    elements = "\n".join(
        f"""      <el index="{i}" start="{a}" end="{b}">
        <attribute name="step">{label}</attribute>
      </el>"""
        for i, (a, b, label) in enumerate(DRAWN[video])
    )
    return f"""<?xml version="1.0" encoding="ISO-8859-1"?>
<annotation>
  <head>
    <video src="{video}.mp4" master="true" />
    <info key="coder" type="String">JM</info>
  </head>
  <body>
    <track name="steps" type="primary">
{elements}
    </track>
  </body>
</annotation>
"""


def boris_text() -> str:
    observations = {
        f"observation of {video}": {
            "file": {"1": [f"videos/{video}.mp4"], "2": []},
            "type": "MEDIA",
            "time offset": 0.0,
            "events": sorted(
                ([t, "cook", label, "", ""] for a, b, label in own for t in (a, b)),
                key=lambda event: event[0],
            ),
            "media_info": {"length": {f"videos/{video}.mp4": 4.0}},
        }
        for video, own in DRAWN.items()
    }
    labels = ("cut", "stir", "serve")
    behaviors = {str(i): {"type": "State event", "code": n} for i, n in enumerate(labels)}
    project = {"project_name": "x", "behaviors_conf": behaviors, "observations": observations}
    return json.dumps(project, indent=1)


def boris_table_text() -> str:
    header = ("Observation id", "Media file", "Total length", "FPS", "Subject", "Behavior")
    rows = ["\t".join([*header, "Behavior type", "Start (s)", "Stop (s)"])]
    for video, own in DRAWN.items():
        rows += [
            f"of {video}\t{video}.mp4\t4.000\t10.0\tcook\t{label}\tSTATE\t{a:.3f}\t{b:.3f}"
            for a, b, label in own
        ]
        rows.append(f"of {video}\t{video}.mp4\t4.000\t10.0\tcook\tlook\tPOINT\t0.500\t0.500")
    return "\r\n".join([*rows, ""])


def frames(start: float, stop: float, *, base: int = 0, inclusive: bool = False) -> tuple[int, int]:
    return round(start * FPS) + base, round(stop * FPS) + base - inclusive


def label_studio_text() -> str:
    tasks = []
    for number, (video, own) in enumerate(DRAWN.items(), start=1):
        results = []
        for i, (a, b, label) in enumerate(own):
            start, end = frames(a, b, base=1, inclusive=True)
            results.append(
                {
                    "value": {"ranges": [{"start": start, "end": end}], "timelinelabels": [label]},
                    "id": f"r{number}{i}",
                    "from_name": "steps",
                    "to_name": "video",
                    "type": "timelinelabels",
                    "origin": "manual",
                }
            )
        tasks.append(
            {
                "id": number,
                "annotations": [
                    {"id": number, "completed_by": 7, "result": results, "was_cancelled": False}
                ],
                "data": {"video": f"/data/upload/1/{video}.mp4"},
            }
        )
    return json.dumps(tasks)


def cvat_text(video: str = "v1") -> str:
    def box(frame: int, outside: int) -> str:
        return (
            f'    <box frame="{frame}" outside="{outside}" occluded="0" keyframe="1" '
            'xtl="1.00" ytl="1.00" xbr="9.00" ybr="9.00" z_order="0">\n    </box>'
        )

    tracks = "\n".join(
        f'  <track id="{i}" label="{label}" source="manual">\n'
        f"{box(frames(a, b)[0], 0)}\n{box(frames(a, b)[1], 1)}\n  </track>"
        for i, (a, b, label) in enumerate(DRAWN[video])
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task>
      <size>40</size>
      <mode>interpolation</mode>
      <frame_filter></frame_filter>
      <source>{video}.mp4</source>
    </task>
  </meta>
{tracks}
</annotations>
"""


def via_text() -> str:
    options = {"1": "cut", "2": "stir", "3": "serve"}
    numbers = {label: number for number, label in options.items()}
    metadata = {
        f"{v}_{i:08d}": {
            "vid": str(v),
            "flg": 0,
            "z": [a, b],
            "xy": [],
            "av": {"1": numbers[label]},
        }
        for v, own in enumerate(DRAWN.values(), start=1)
        for i, (a, b, label) in enumerate(own)
    }
    anchor = {"aname": "step", "anchor_id": "FILE1_Z2_XY0", "type": 4, "options": options}
    project = {
        "project": {"pid": "__VIA_PROJECT_ID__", "vid_list": ["1", "2"]},
        "config": {},
        "attribute": {"1": anchor},
        "file": {
            str(v): {"fid": str(v), "fname": f"{video}.mp4", "type": 4, "src": ""}
            for v, video in enumerate(DRAWN, start=1)
        },
        "metadata": metadata,
        "view": {str(v): {"fid_list": [str(v)]} for v in (1, 2)},
    }
    return json.dumps(project, separators=(",", ":"))


def epic_kitchens_text() -> str:
    rows = [
        "narration_id,participant_id,video_id,narration_timestamp,start_timestamp,stop_timestamp,"
        "start_frame,stop_frame,narration,verb,verb_class,noun,noun_class,all_nouns,all_noun_classes"
    ]
    for video, own in DRAWN.items():
        for i, (a, b, label) in enumerate(own):
            rows.append(
                f"{video}_{i},P0{video[1]},{video},00:00:00.500,00:00:{a:05.2f},00:00:{b:05.2f},"
                f"1,2,{label} it,{label},{label},pan,3,\"['pan', 'lid']\",\"[3, 4]\""
            )
    return "\n".join([*rows, ""])


def captaincook4d_text() -> str:
    ids = {"cut": 1, "stir": 2, "serve": 3}
    recordings = []
    for video, own in DRAWN.items():
        steps = [
            {"description": label, "step_id": ids[label], "start_time": a, "end_time": b}
            for a, b, label in own
        ]
        omitted = {"description": "wash", "step_id": 9, "start_time": -1.0, "end_time": -1.0}
        recordings.append(
            {
                "recording_id": video,
                "activity_id": 4,
                "is_error": True,
                "step_annotations": [*steps, omitted],
            }
        )
    return json.dumps(recordings, indent=2)


def assembly101_text(video: str = "v1") -> str:
    rows = (f"{round(a * 30)}\t{round(b * 30)}\t{label}\n" for a, b, label in DRAWN[video])
    return "".join(rows)


GESTURES = {"cut": "G1", "stir": "G2", "serve": "G3"}


def jigsaws_text(video: str = "v1") -> str:
    rows = (
        f"{round(a * 30) + 1} {round(b * 30)} {GESTURES[label]} \r\n"
        for a, b, label in DRAWN[video]
    )
    return "".join(rows)


def segments_text() -> str:
    rows = [f"{video},{a},{b},{label}\n" for video, own in DRAWN.items() for a, b, label in own]
    return "".join(["clip,begin,end,step\n", *rows])


@dataclass(frozen=True)
class Sample:
    """A format's files, by name; those with a file a video have `{video}` in theirs."""

    name: str
    text: Callable[..., str]
    config: Callable[[str], Config]


def annotated(layout: str, **more: object) -> Callable[[str], Config]:
    return lambda path: AnnotatedConfig(layout=layout, path=path, folds=2, **more)  # type: ignore[arg-type]


SAMPLES = {
    "elan": Sample("{video}.eaf", elan_text, annotated("elan")),
    "boris": Sample("project.boris", boris_text, annotated("boris")),
    "label_studio": Sample(
        "export.json", label_studio_text, annotated("label_studio", labels_fps=FPS)
    ),
    "cvat": Sample("{video}.xml", cvat_text, annotated("cvat", labels_fps=FPS)),
    "via": Sample("via.json", via_text, annotated("via")),
    "anvil": Sample("{video}.anvil", anvil_text, annotated("anvil")),
    "epic_kitchens": Sample(
        "EPIC_100_validation.csv", epic_kitchens_text, annotated("epic_kitchens", track="verb")
    ),
    "captaincook4d": Sample(
        "error_annotations.json", captaincook4d_text, annotated("captaincook4d")
    ),
    "assembly101": Sample("coarse_labels/{video}.txt", assembly101_text, annotated("assembly101")),
    "jigsaws": Sample("transcriptions/{video}.txt", jigsaws_text, annotated("jigsaws")),
    "segments": Sample(
        "labels.csv",
        segments_text,
        lambda path: SegmentsConfig(
            path=path,
            folds=2,
            columns=ColumnsConfig(video="clip", start="begin", stop="end", label="step"),
        ),
    ),
}
"""Of every format of label documents."""


def write_sample(layout: str, root: Path) -> Config:
    """A dataset of the two videos, with media that are empty files."""
    sample = SAMPLES[layout]
    for video in DRAWN:
        if "{video}" in sample.name:
            touch(root / sample.name.format(video=video), sample.text(video))
        touch(root / f"videos/{video}.mp4")
    if "{video}" not in sample.name:
        touch(root / sample.name, sample.text())
    return sample.config(str(root))


def drawn(layout: str, video: str) -> tuple[tuple[float, float, str], ...]:
    """The segments of a video, with the names that the format has for them."""
    if layout != "jigsaws":
        return DRAWN[video]
    return tuple((a, b, GESTURES[label]) for a, b, label in DRAWN[video])
