"""What goes in and out over HTTP: forms of requests, and of answers as the API page shows them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from csl_dist.service.reviews import Decision
from csl_dist.service.settings import MAX_COLUMNS, MAX_COMMENT, MAX_FRAMES_LISTED, MAX_ID

MAX_FRAME = 100_000_000
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID)]
Frame = Annotated[int, Field(ge=0, le=MAX_FRAME)]


class Form(StrEnum):
    """How arrays are answered."""

    JSON = "json"
    NPY = "npy"
    ARROW = "arrow"


class Values(StrEnum):
    """What of a trajectory is meant."""

    LOSS = "loss"
    LOG_PROBABILITY = "log_probability"


class State(StrEnum):
    """How far the review of a flag is."""

    UNDECIDED = "undecided"
    DECIDED = "decided"
    DISPUTED = "disputed"


class Problem(BaseModel):
    """Why a request was refused."""

    error: str = Field(examples=["the run has no video 'v22'; did you mean 'v2'?"])


class Health(BaseModel):
    status: Literal["ok"]
    version: str


class AuditEntry(BaseModel):
    """One run that is served."""

    id: str = Field(examples=["cholec80"])
    root: str
    ready: bool = Field(description="Whether there is anything to read yet.")
    note: str | None = Field(default=None, description="Why it is not ready.")
    revision: int | None = None
    videos: int | None = None
    flags: int | None = Field(default=None, description="None as long as there are none yet.")


class ClassEntry(BaseModel):
    name: str
    colour: str


class AuditFacts(BaseModel):
    """What is needed to read one audit."""

    id: str
    root: str
    revision: int
    revisions: list[int]
    classes: list[ClassEntry]
    scorers: list[str]
    scorer: str = Field(description="The one that is meant where none is named.")
    score: str | None = Field(description="The score that decides on flags; None before that.")
    deciding_scorer: str | None
    num_videos: int
    num_flags: int | None
    missing: list[str] = Field(description="What an unfinished run lacks, a sentence each.")
    calibration: str | None


class StageLine(BaseModel):
    stage: str
    done: int
    total: int


class VideoRow(BaseModel):
    video: str
    frames: int | None
    seconds: float | None
    flags: int
    worst: float | None
    mean: float | None


class VideoPage(BaseModel):
    total: int
    offset: int
    videos: list[VideoRow]


class VideoFacts(BaseModel):
    """One video's labels and how it can be shown."""

    video: str
    num_frames: int
    duration: float
    fps: float
    media: Literal["video", "frames", "features", "missing"]
    note: str | None = Field(description="Why there is no picture, or why it is shown by frames.")
    labels: list[list[int]] = Field(
        description="Runs of equal labels: start, stop, class id; -1 is unlabelled."
    )
    times: list[float] | None = Field(
        description="Seconds of all frames, where they are not evenly spaced."
    )
    threshold: float | None
    flags: list[dict[str, Any]]
    known_errors: list[dict[str, Any]]


class ReviewForm(BaseModel):
    """A decision on a flagged span."""

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
                }
            ]
        },
    )

    key: Annotated[str, StringConstraints(min_length=8, max_length=64)] = Field(
        description="Chosen by the sender; a decision that is sent twice counts once."
    )
    video: Name
    start: Frame
    stop: Frame
    decision: Decision
    label: Name | None = Field(default=None, description="The right one, if wrong or moved.")
    new_start: Frame | None = None
    new_stop: Frame | None = None
    reviewer: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
    comment: Annotated[str, StringConstraints(max_length=MAX_COMMENT)] = ""

    @model_validator(mode="after")
    def _fits_the_decision(self) -> "ReviewForm":
        if "\0" in self.key + self.reviewer + self.comment:
            raise ValueError("key, reviewer and comment must not hold the character NUL")
        changes = self.decision in (Decision.WRONG, Decision.BOUNDARY)
        if changes != (self.label is not None):
            raise ValueError(
                f"a decision {self.decision.value!r} "
                + ("needs the right label" if changes else "has no label")
            )
        moved = self.new_start is not None or self.new_stop is not None
        if moved != (self.decision is Decision.BOUNDARY):
            raise ValueError("new_start and new_stop belong to the decision 'boundary', both")
        if self.start >= self.stop:
            raise ValueError("stop must be above start")
        if moved and (
            self.new_start is None or self.new_stop is None or self.new_start >= self.new_stop
        ):
            raise ValueError("new_stop must be above new_start")
        return self


class ReviewRow(BaseModel):
    """A decision on record."""

    number: int
    when: datetime
    revision: int
    video: str
    start: int
    stop: int
    decision: Decision
    label: str | None
    new_start: int | None
    new_stop: int | None
    reviewer: str
    comment: str


class ReviewPage(BaseModel):
    reviews: list[ReviewRow]
    last: int = Field(description="Ask for what comes after this number next time.")


class FlagRow(BaseModel):
    rank: int
    video: str
    start: int
    stop: int
    start_seconds: float
    stop_seconds: float
    score: float
    kind: str
    kind_confidence: float | None
    label: str
    suggested: str
    suggested_probability: float
    why: str
    state: State
    reviews: list[ReviewRow] = Field(description="Decisions that hold, one a reviewer.")


class FlagPage(BaseModel):
    total: int
    offset: int
    flags: list[FlagRow]


class Progress(BaseModel):
    """How far the review is, and how often flags proved right so far."""

    total: int
    decided: int
    disputed: int
    correct: int = Field(description="Flags whose label is right after all.")
    wrong: int = Field(description="Flags whose label was wrong, boundaries included.")
    unsure: int
    precision: float | None = Field(description="Wrong of wrong and correct.")
    precision_low: float | None = Field(description="95 % interval (Wilson), lower end.")
    precision_high: float | None
    reviewers: dict[str, int] = Field(description="Decisions that hold, by reviewer.")


class Edit(BaseModel):
    """A span that is given another label."""

    model_config = ConfigDict(extra="forbid")
    start: Frame
    stop: Frame
    label: Annotated[str, StringConstraints(max_length=MAX_ID)] = Field(
        description="A class, or empty for no label."
    )


class UnderLabels(BaseModel):
    """Labels other than the annotated ones: all of them, or spans that differ."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "video": "video41",
                    "edits": [{"start": 1200, "stop": 1290, "label": "ClippingCutting"}],
                    "names": ["deciding", "csl"],
                    "of": [1200, 1290],
                }
            ]
        },
    )
    video: Name
    labels: Annotated[list[str] | list[int], Field(max_length=2_000_000)] | None = None
    edits: Annotated[list[Edit], Field(max_length=10_000)] = []
    scorer: Name | None = None
    start: Frame = 0
    stop: Frame | None = None
    columns: Annotated[int, Field(ge=1, le=MAX_COLUMNS)] | None = None
    form: Form = Form.JSON


class ScoresUnderLabels(UnderLabels):
    names: Annotated[list[Name], Field(min_length=1, max_length=20)] = ["deciding", "csl"]
    of: Annotated[list[Frame], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="Start and stop of a span whose mean score is told."
    )


class TrajectoryUnderLabels(UnderLabels):
    weighted: bool | None = None


class TrajectoryQuery(BaseModel):
    """Which trajectory, and how to answer it."""

    video: Name = Field(description="Id of a video.", examples=["v2"])
    frame: Annotated[list[Frame], Field(max_length=MAX_FRAMES_LISTED)] | None = Field(
        default=None, description="Single frames, instead of a range."
    )
    start: Frame = Field(default=0, description="First frame.")
    stop: Frame | None = Field(default=None, description="The frame after the last.")
    epoch: Annotated[list[int], Field(max_length=10_000)] | None = Field(
        default=None, description="These checkpoints alone."
    )
    values: Values = Values.LOSS
    weighted: bool | None = Field(default=None, description="As the run has it if left out.")
    scorer: Name | None = None
    columns: Annotated[int, Field(ge=1, le=MAX_COLUMNS)] | None = Field(
        default=None, description="Put frames together in so many."
    )
    form: Form = Form.JSON
    revision: Annotated[int, Field(ge=0, le=9999)] | None = Field(
        default=None, description="Number of the audit; the newest if left out."
    )


class Change(BaseModel):
    """The mean deciding score of a span under the annotated labels, and under those given."""

    before: float | None
    after: float | None
    threshold: float | None


class Scores(BaseModel):
    video: str
    start: int
    stop: int
    threshold: float | None
    scores: dict[str, list[float | None]] = Field(
        description="By name; the highest of each column where columns are asked for."
    )
    change: Change | None = None


class TrajectoryAnswer(BaseModel):
    video: str
    scorer: str
    epochs: list[int]
    frames: list[int] = Field(description="Frames, or the first frame of each column.")
    loss: list[list[float | None]] | None = Field(
        default=None, description="A list of frames for each checkpoint."
    )
    log_probability: list[list[list[float]]] | None = None


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
    config: dict[str, Any] = Field(description="What a config file holds.")
    stage: Literal["run", "extract", "train", "audit", "evaluate"] = "run"


class Submitted(BaseModel):
    audit: str
    job: str
