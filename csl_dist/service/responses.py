"""Forms of responses, for the OpenAPI document."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from csl_dist.review.store import Decision, State


class Problem(BaseModel):
    """Why a request was refused."""

    error: str = Field(examples=["the run has no video 'v22'; did you mean 'v2'?"])


class Health(BaseModel):
    status: Literal["ok"]
    version: str


class Me(BaseModel):
    """Who asks."""

    name: str | None = Field(
        description="By the token or the proxy; None where reviewers name themselves."
    )
    may_see_annotators: bool


class AuditEntry(BaseModel):
    """One run that is served."""

    id: str = Field(examples=["cholec80"])
    root: str
    ready: bool = Field(description="Whether it can be read already.")
    note: str | None = Field(default=None, description="Why it is not ready.")
    revision: int | None = None
    videos: int | None = None
    flags: int | None = Field(default=None, description="None as long as the run is not flagged.")


class EditRow(BaseModel):
    """Frames that get another label."""

    start: int
    stop: int
    label: str
    start_seconds: float | None = None
    stop_seconds: float | None = None


class ClassEntry(BaseModel):
    name: str
    colour: str


class AuditFacts(BaseModel):
    """Facts of one audit."""

    id: str
    root: str
    revision: int
    revisions: list[int]
    classes: list[ClassEntry] = Field(description="By class id.")
    class_order: list[int] = Field(description="Class ids in the order of the procedure.")
    kinds: list[str] = Field(description="Kinds of flags that there are.")
    annotators: list[str]
    procedures: list[str]
    scorers: list[str]
    scorer: str = Field(description="The default scorer of requests.")
    score: str | None = Field(
        description="The score that decides on flags; None as long as there are none."
    )
    deciding_scorer: str | None
    num_videos: int
    num_flags: int | None
    num_sampled: int = Field(description="Segments that a certificate drew; 0 without one.")
    missing: list[str] = Field(description="What is not finished, one sentence each.")
    rests_on: str | None = Field(
        description="How much an early audit rests on; None where it is all checkpoints."
    )
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


class CameraFacts(BaseModel):
    name: str
    start_seconds: float = Field(description="Where in its file the video begins.")


class VideoFacts(BaseModel):
    """Labels and flags of one video, and how it can be shown."""

    video: str
    num_frames: int
    duration: float
    fps: float
    source_fps: float = Field(description="Frames per second of the file itself.")
    start_seconds: float = Field(description="Where in its file the video begins.")
    media: Literal["video", "frames", "features", "missing"]
    cameras: list[CameraFacts] = Field(
        description="Where there are several; the audited one first."
    )
    note: str | None = Field(description="Why there is no picture, or why single frames are shown.")
    preparing: bool = Field(description="Whether a file that browsers play is being made.")
    labels: list[list[int]] = Field(
        description="Runs of equal labels: start, stop, class id; -1 is unlabelled."
    )
    times: list[float] | None = Field(
        description="Seconds of all frames, if they are not evenly spaced."
    )
    threshold: float | None
    flags: list[dict[str, Any]] = Field(description="As /flags lists them, without reviews.")
    known_errors: list[dict[str, Any]]


class ReviewRow(BaseModel):
    """A saved decision."""

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
    edits: list[EditRow] = Field(description="What the decision changes; empty if nothing.")
    reviewer: str
    comment: str


class ReviewPage(BaseModel):
    reviews: list[ReviewRow]
    newest: int = Field(description="The newest audit; a page that shows another is outdated.")
    last: int = Field(description="Give it as `after` in the next request.")


class FlagRow(BaseModel):
    rank: int
    video: str
    start: int
    stop: int
    start_seconds: float
    stop_seconds: float
    score: float | None = Field(description="None of an error that was marked without a flag.")
    kind: str
    kind_confidence: float | None
    label: str
    suggested: str
    suggested_probability: float | None
    why: str
    probability: float | None = Field(description="That it is an error, where that is known.")
    fix: str | None = Field(description="An edit and its frames, such as `rename 10 20`.")
    fix_label: str | None
    fix_start: int | None
    fix_stop: int | None
    proposal: list[EditRow] = Field(
        description="What the fix changes, and `accept` saves; empty if it only says where to look."
    )
    expected: float | None = Field(
        description="The same after the decisions so far, on this flag and on others."
    )
    assigned: tuple[str, ...] = Field(description="Who is to review it.")
    state: State
    reviews: list[ReviewRow] = Field(description="The last decision of each reviewer.")
    # The last, as the name hides the type.
    list: str | None = Field(description="`steps`, `boundaries` or `order`, by the rule `edits`.")


class FlagPage(BaseModel):
    total: int
    offset: int
    flags: list[FlagRow]


class Progress(BaseModel):
    """How far the review is, and how many flags were right so far."""

    total: int
    decided: int
    disputed: int
    correct: int = Field(description="Flags whose label is right.")
    wrong: int = Field(description="Flags whose label was wrong, boundaries included.")
    unsure: int
    precision: float | None = Field(description="wrong / (wrong + correct).")
    precision_low: float | None = Field(description="95 % interval (Wilson), lower end.")
    precision_high: float | None
    reviewers: dict[str, int] = Field(description="Number of decided flags by reviewer.")
    missed: int = Field(description="Errors that reviewers marked where there is no flag.")
    next_flags: int = Field(description="Flags that are looked at next, the likeliest errors.")
    next_errors: float = Field(description="How many of these are expected to be errors.")
    pairs: int = Field(description="Pairs of decisions of two people on the same span.")
    agree: float | None = Field(description="Share of these that say the same.")
    kappa: float | None = Field(description="Cohen's kappa of these: error or not.")
    last: int = Field(description="The number of the newest decision; 0 before the first.")


class EffortPoint(BaseModel):
    """What it brings to review all findings that are at least so likely an error."""

    min_expected: float | None = Field(description="None: the flags as they are.")
    flags: int
    below: int = Field(description="Of these, below the line.")
    minutes: float
    errors: float


class Group(BaseModel):
    """Open flags that say the same of different places."""

    kind: str
    label: str
    suggested: str
    flags: int
    expected: float = Field(description="Mean probability of an error.")


class AnnotatorPart(BaseModel):
    """Decisions on the labels of one class, or on one boundary."""

    name: str = Field(description="A class, or `a → b` for a boundary.")
    decided: int
    against: int


class AnnotatorRow(BaseModel):
    """How often decisions went against the labels of one annotator."""

    annotator: str
    videos: int
    decided: int = Field(description="Spans of their videos on which reviewers were sure.")
    against: int = Field(description="Of these, those whose label was wrong.")
    disputed: int
    classes: list[AnnotatorPart]
    boundaries: list[AnnotatorPart]


class AssignmentFacts(BaseModel):
    """Who reviews which flags, and how far everybody is."""

    reviewers: list[str]
    by: str | None
    double: float
    counts: dict[str, int] = Field(description="Flags by reviewer.")
    done: dict[str, int]


class CertificateFacts(BaseModel):
    """What a certificate says so far."""

    sampled: int
    judged: int
    right: float = Field(description="Share of seconds whose label is right.")
    right_low: float
    right_high: float
    confidence: float
    claim: float
    still_needed: int | None = Field(description="Reviews until the claim holds; None: never.")
    sentence: str


class LintFinding(BaseModel):
    """What labels alone tell."""

    title: str
    video: str | None
    start_seconds: float | None
    stop_seconds: float | None
    label: str | None
    probability: float | None
    sentence: str


class FlaggedAnnotator(BaseModel):
    name: str
    videos: int
    hours: float
    flags: int


class ReliabilityRow(BaseModel):
    """Decided findings of similar probability."""

    predicted: float
    found: float
    low: float
    high: float
    decided: int


class OverviewFacts(BaseModel):
    """What is said of the dataset as a whole."""

    exchanges: list[str]
    conventions: list[str]
    findings: list[LintFinding]
    num_findings: int
    annotators: list[FlaggedAnnotator]
    reliability: list[ReliabilityRow]


class FrameOf(BaseModel):
    video: str
    frame: int


class Prediction(BaseModel):
    runs: list[list[int]] = Field(description="What models predict: start, stop, class id.")


class Change(BaseModel):
    """The mean deciding score of a span, under the annotated labels and under the given ones."""

    before: float | None
    after: float | None
    threshold: float | None


class Scores(BaseModel):
    video: str
    start: int
    stop: int
    threshold: float | None
    scores: dict[str, list[float | None]] = Field(
        description="By name; with columns, the highest score of each column."
    )
    change: Change | None = None


class Trajectory(BaseModel):
    video: str
    scorer: str
    epochs: list[int]
    frames: list[int] = Field(description="Frames, or the first frame of each column.")
    loss: list[list[float | None]] | None = Field(
        default=None, description="A list of frames for each checkpoint."
    )
    log_probability: list[list[list[float]]] | None = None


class Submitted(BaseModel):
    audit: str
    job: str
