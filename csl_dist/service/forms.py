"""Forms of requests: their parameters and bodies, with limits."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from csl_dist.review.assignment import DealtBy
from csl_dist.review.store import Decision, State
from csl_dist.service.settings import MAX_COLUMNS, MAX_COMMENT, MAX_FRAMES_LISTED, MAX_ID, MAX_PAGE

MAX_FRAME = 100_000_000
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID)]
Frame = Annotated[int, Field(ge=0, le=MAX_FRAME)]
AuditNumber = Annotated[int, Field(ge=0, le=9999)]

VideoId = Annotated[Name, Query(description="Id of a video.", examples=["v2"])]
Revision = Annotated[
    AuditNumber | None, Query(description="Number of the audit; by default the newest.")
]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]


class Form(StrEnum):
    """Encoding of arrays."""

    JSON = "json"
    NPY = "npy"
    ARROW = "arrow"


class Values(StrEnum):
    """Which values of a trajectory."""

    LOSS = "loss"
    LOG_PROBABILITY = "log_probability"


class Source(StrEnum):
    """Which spans."""

    FLAGS = "flags"
    FINDINGS = "findings"
    """Flags, and after them what lies below the line."""
    SEGMENTS = "segments"
    """All segments, flagged or not, the most suspicious first."""
    SAMPLE = "sample"
    """Segments that a certificate drew."""
    MISSED = "missed"
    """Errors that reviewers marked where there is no flag."""


class Sort(StrEnum):
    RANK = "rank"
    EXPECTED = "expected"
    """By the probability of an error that the decisions so far suggest."""
    LENGTH = "length"
    VIDEO = "video"


class FlagsQuery(BaseModel):
    """Which spans, in which order."""

    model_config = ConfigDict(extra="forbid")
    source: Source = Source.FLAGS
    video: Annotated[str, Field(max_length=MAX_ID)] | None = None
    label: Annotated[str, Field(max_length=MAX_ID)] | None = Field(
        default=None, description="Annotated or suggested."
    )
    annotated: Annotated[str, Field(max_length=MAX_ID)] | None = None
    suggested: Annotated[str, Field(max_length=MAX_ID)] | None = None
    kind: Annotated[str, Field(max_length=40)] | None = None
    annotator: Annotated[str, Field(max_length=MAX_ID)] | None = Field(
        default=None, description="Who labelled the video."
    )
    procedure: Annotated[str, Field(max_length=MAX_ID)] | None = None
    reviewer: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="Who reviewed it."
    )
    assigned: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="Who is to review it."
    )
    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    min_expected: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="Least probability of an error; of flags only."
    )
    from_seconds: Annotated[float, Field(allow_inf_nan=False)] | None = None
    to_seconds: Annotated[float, Field(allow_inf_nan=False)] | None = None
    text: Annotated[str, Field(max_length=MAX_ID)] = Field(
        default="", description="Words of the video's id, labels or reason."
    )
    state: State | None = None
    sort: Sort = Sort.RANK
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 100
    revision: Revision = None


class ReviewEdit(BaseModel):
    """A span that gets another label by a decision."""

    model_config = ConfigDict(extra="forbid")
    start: Frame
    stop: Frame
    label: Name
    start_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="The exact time of the edge, between two frames."
    )
    stop_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _check_span(self) -> "ReviewEdit":
        if self.start >= self.stop:
            raise ValueError("stop must be above start")
        return self


class AssignmentForm(BaseModel):
    """Who reviews which flags."""

    model_config = ConfigDict(extra="forbid")
    reviewers: Annotated[
        list[
            Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
        ],
        Field(min_length=1, max_length=100),
    ]
    by: DealtBy = DealtBy.SHARE
    double: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0, description="Share of the flags that two people review."
    )


class SampleForm(BaseModel):
    """Segments to draw for a certificate."""

    model_config = ConfigDict(extra="forbid")
    reviews: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=100, description="Segments to draw, about; to add, where there is a sample."
    )
    within_seconds: Annotated[float, Field(ge=0, le=60)] = Field(
        default=2.0, description="A boundary counts as right within so many seconds."
    )
    confidence: Annotated[float, Field(ge=0.5, le=0.999)] = 0.95
    claim: Annotated[float, Field(gt=0, lt=1)] = 0.97
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class ReviewForm(BaseModel):
    """A decision on a span: a flag, a segment, or any other."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "key": "6f9c2b7e-6a0e-4a8b-9f0e-2b8d5b0f7c11",
                    "video": "video41",
                    "start": 1200,
                    "stop": 1290,
                    "decision": "wrong",
                    "label": "ClippingCutting",
                    "reviewer": "Ada",
                },
                {
                    "key": "0b1d1c52-7a39-4a0d-8f0b-94d0a7f6b3e8",
                    "video": "video41",
                    "start": 1200,
                    "stop": 1290,
                    "accept": True,
                    "reviewer": "Ada",
                },
            ]
        },
    )

    revision: AuditNumber | None = Field(
        default=None,
        description="The audit that the reviewer saw; refused if it is not the newest.",
    )
    key: Annotated[str, StringConstraints(min_length=8, max_length=64)] = Field(
        description="Chosen by the sender, so that a decision sent twice counts once."
    )
    video: Name
    start: Frame
    stop: Frame
    accept: bool = Field(
        default=False,
        description="The span is a flag, and its `proposal` is right: in place of a decision.",
    )
    decision: Decision | None = Field(default=None, description="Needed without `accept`.")
    label: Name | None = Field(
        default=None, description="The right label, for `wrong` and `boundary`."
    )
    new_start: Frame | None = None
    new_stop: Frame | None = None
    edits: Annotated[list[ReviewEdit], Field(min_length=1, max_length=50)] | None = Field(
        default=None, description="What changes, for `edited`; later ones overwrite earlier ones."
    )
    reviewer: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
    comment: Annotated[str, StringConstraints(max_length=MAX_COMMENT)] = ""

    @model_validator(mode="after")
    def _check_fields(self) -> "ReviewForm":
        if "\0" in self.key + self.reviewer + self.comment:
            raise ValueError("key, reviewer and comment must not contain the character NUL")
        if self.accept == (self.decision is not None):
            raise ValueError("give a decision, or accept: true, and not both")
        changes = self.decision in (Decision.WRONG, Decision.BOUNDARY)
        if changes != (self.label is not None):
            raise ValueError(
                f"{'accept' if self.decision is None else f'a decision {self.decision.value!r}'} "
                + ("needs the right label" if changes else "must not have a label")
            )
        moved = self.new_start is not None or self.new_stop is not None
        if moved != (self.decision is Decision.BOUNDARY):
            raise ValueError(
                "the decision 'boundary', and no other, needs both new_start and new_stop"
            )
        if (self.edits is not None) != (self.decision is Decision.EDITED):
            raise ValueError("the decision 'edited', and no other, needs edits")
        if self.start >= self.stop:
            raise ValueError("stop must be above start")
        if moved and (
            self.new_start is None or self.new_stop is None or self.new_start >= self.new_stop
        ):
            raise ValueError("new_stop must be above new_start")
        return self


class FramesQuery(BaseModel):
    """Frames of a video, and the encoding of the response."""

    video: Name = Field(description="Id of a video.", examples=["v2"])
    scorer: Name | None = Field(
        default=None, description="By default the scorer that explains flags."
    )
    start: Frame = Field(default=0, description="First frame.")
    stop: Frame | None = Field(default=None, description="The frame after the last.")
    columns: Annotated[int, Field(ge=1, le=MAX_COLUMNS)] | None = Field(
        default=None, description="Group frames into this many columns."
    )
    form: Form = Form.JSON


class ScoresQuery(FramesQuery):
    """Which scores, of which frames."""

    name: Annotated[list[Name], Field(min_length=1, max_length=20)] = Field(
        default=["csl"],
        description="`deciding` (the score of the flags), csl, margin, csl_smoothed and others.",
    )
    revision: Revision = None


class TrajectoryQuery(FramesQuery):
    """Which values, of which frames, under which checkpoints."""

    frame: Annotated[list[Frame], Field(max_length=MAX_FRAMES_LISTED)] | None = Field(
        default=None, description="Single frames, instead of a range."
    )
    epoch: Annotated[list[int], Field(max_length=10_000)] | None = Field(
        default=None, description="Only these checkpoints."
    )
    values: Values = Values.LOSS
    weighted: bool | None = Field(default=None, description="By default as in the run.")
    revision: Revision = None


class Edit(BaseModel):
    """A span that gets another label."""

    model_config = ConfigDict(extra="forbid")
    start: Frame
    stop: Frame
    label: Annotated[str, StringConstraints(max_length=MAX_ID)] = Field(
        description="A class, or empty for no label."
    )


EXAMPLE_EDIT: dict[str, Any] = {
    "video": "video41",
    "edits": [{"start": 1200, "stop": 1290, "label": "ClippingCutting"}],
}


class UnderLabels(FramesQuery):
    """Labels to use instead of the annotated ones: of all frames, or of single spans."""

    model_config = ConfigDict(extra="forbid")
    labels: Annotated[list[str] | list[int], Field(max_length=2_000_000)] | None = None
    edits: Annotated[list[Edit], Field(max_length=10_000)] = []


class ScoresUnderLabels(UnderLabels):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [EXAMPLE_EDIT | {"names": ["deciding", "csl"], "of": [1200, 1290]}]
        }
    )
    names: Annotated[list[Name], Field(min_length=1, max_length=20)] = ["deciding", "csl"]
    of: Annotated[list[Frame], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="Start and stop of a span; its mean score is returned."
    )


class TrajectoryUnderLabels(UnderLabels):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_EDIT | {"columns": 600}]})
    weighted: bool | None = None


class SubmitForm(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "config": {
                        "root": "s3://bucket/runs/cholec80",
                        "dataset": {"layout": "cholec80", "path": "/data/cholec80"},
                    },
                    "stage": "run",
                }
            ]
        },
    )
    config: dict[str, Any] = Field(description="The contents of a config file.")
    stage: Literal["run", "extract", "train", "audit", "evaluate"] = "run"
