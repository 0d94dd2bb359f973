"""The run configuration: one frozen dataclass per section, and `load_config`.

Defaults stand here and nowhere else. Unknown keys and values of the wrong type are refused with the
key, the file and the nearest valid key. Where the paper gives a value, the field says so.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails

from csl_dist.errors import ConfigError
from csl_dist.measures import known_score
from csl_dist.strategies import Strategy, known_strategy

FORBID = ConfigDict(extra="forbid")

CNN = "cnn"
"""The scorer that an adapted encoder is, and the name its checkpoints go by."""
ENSEMBLE = "ensemble"
"""What stands for the framewise and the temporal scorer together, wherever a scorer is named."""
COMMITTEE = "committee"
"""What stands for all scorers together, as the rule `edits` asks them."""


def ascending(pair: tuple[int, int]) -> tuple[int, int]:
    if pair[0] > pair[1]:
        raise ValueError(f"{list(pair)} must name the shorter length first")
    return pair


def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError(
            f"{value} is even, but a window has a frame in its middle; take {value + 1}"
        )
    return value


def known_url(url: str) -> str:
    """Refuses what names no place: such a root would be the folder that one stands in."""
    scheme, separator, rest = url.partition("://")
    if not url.strip() or (separator and not (scheme and rest.strip("/"))):
        raise ValueError(f"{url!r} names no folder; expected a path, or a URL as s3://bucket/run")
    return url


MAX_SHOWN = 200
"""Characters of a wrong value that a sentence repeats."""

Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=100_000)]
"""Frames a second."""
Url = Annotated[str, AfterValidator(known_url)]
Share = Annotated[float, Field(gt=0, lt=1)]
Percent = Annotated[float, Field(gt=0, le=100)]
ScoreName = Annotated[str, AfterValidator(known_score)]
PlantableKind = Literal[
    "mislabel",
    "disorder",
    "reorder",
    "duplicate",
    "insert",
    "jitter",
    "rename",
    "occurrence",
    "merge",
    "missing",
    "boundary",
]
"""The first six as the paper and others plant them, the rest as people err: a boundary is off by a
second in the median and by more than 20 in one of ten."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SplitLists:
    """Ids of the videos of each split."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    train: tuple[str, ...] = ()
    val: tuple[str, ...] = ()
    audit: tuple[str, ...] = ()


def own_name(value: Any) -> Any:
    if value != "own":
        raise ValueError(
            f"{value!r} is neither `own` nor lists of ids (train, val, audit); the names paper, "
            "tecno and tmrnet belong to the layout cholec80"
        )
    return value


def preset_name(value: Any) -> Any:
    if value not in get_args(Preset):
        names = ", ".join(get_args(Preset))
        raise ValueError(
            f"{value!r} is neither one of {names} nor lists of ids (train, val, audit)"
        )
    return value


def form_of_splits(value: Any) -> str:
    return "lists" if isinstance(value, Mapping | SplitLists) else "name"


Preset = Literal["own", "paper", "tecno", "tmrnet"]
SplitListsForm = Annotated[SplitLists, Tag("lists")]
Splits = Annotated[
    Annotated[Literal["own"], BeforeValidator(own_name), Tag("name")] | SplitListsForm,
    Discriminator(form_of_splits),
]
Cholec80Splits = Annotated[
    Annotated[Preset, BeforeValidator(preset_name), Tag("name")] | SplitListsForm,
    Discriminator(form_of_splits),
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnyLayoutConfig:
    """Which videos and labels to audit: what every layout has."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    path: str
    """The folder; for `manifest` the CSV and for `activitynet` the JSON file."""
    fps: Rate | None = None
    """Frames per second to sample; None takes every frame or feature. Paper: 15."""
    source: Literal["auto", "video", "frames", "features"] = "auto"
    """What to read where a layout offers several; `auto` takes the first that is there."""
    labels_fps: Rate | None = None
    """Label entries per second; None: what the layout has, or the rate of the features."""
    features_fps: Rate = 15.0
    """Frames per second behind ready-made features."""
    frames_fps: Rate | None = None
    """Frames per second of frame folders; None: what the layout has."""
    group: str | None = None
    """Regular expression whose match in a video's id is its group, such as `^P[0-9]+`."""
    procedure: str | None = None
    """Regular expression whose match in a video's id is its procedure, such as `[a-z]+$`; lint
    compares a video with others of its procedure."""
    folds: Annotated[int, Field(ge=2)] | None = None
    """Audit the whole dataset with so many models, each video by the one that did not see it."""
    fold_seed: Seed = 0
    """Seed of the assignment of videos, or of their groups, to folds. A video's fold follows from
    its own group or id, so that new videos move no other; `csl init` finds a seed of even folds."""
    length_mismatch: Literal["error", "trim"] = "error"
    """`trim`: labels beyond the last frame are dropped, frames beyond the last label unlabelled."""
    truth: str | None = None
    """CSV of known errors, read by `evaluate` alone: video, kind, start, stop (half-open, in
    sampled frames), true_label."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ManifestConfig(AnyLayoutConfig):
    """A CSV that lists videos and label files."""

    layout: Literal["manifest"] = "manifest"
    splits: Splits = "own"
    """`own`: the column `split`. Or lists of ids."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cholec80Config(AnyLayoutConfig):
    """Cholec80, and M2CAI16 in the same form."""

    layout: Literal["cholec80"] = "cholec80"
    splits: Cholec80Splits = "own"
    """`own` and `paper`: 50/10/20 videos; `tecno`: 40/8/32; `tmrnet`: 40/0/40. Or lists of ids."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SegmentedConfig(AnyLayoutConfig):
    """What layouts have whose labels are segments with times."""

    overlap: Literal["error", "first", "last", "longest"] = "error"
    """Whose label a frame gets that lies in two segments: that of the one which starts `first` or
    `last`, or of the `longest`. `error` refuses such labels; `csl check` names the places."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EgoperConfig(SegmentedConfig):
    """EgoPER, one task a run."""

    layout: Literal["egoper"] = "egoper"
    task: str | None = None
    """coffee, oatmeal, pinwheels, quesadilla or tea."""
    splits: Splits = "own"
    """`own`: the task's training.txt, validation.txt and test.txt. Or lists of ids."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MstcnConfig(AnyLayoutConfig):
    """GTEA, 50Salads, Breakfast, in the form that MS-TCN gave them."""

    layout: Literal["mstcn"] = "mstcn"
    split: Count = 1
    """Number of the .bundle files."""
    splits: Splits = "own"
    """`own`: the .bundle files. Or lists of ids."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ActivityNetConfig(SegmentedConfig):
    """ActivityNet's JSON, as ActionFormer and others use it."""

    layout: Literal["activitynet"] = "activitynet"
    media: str | None = None
    """Folder of the videos, frame folders or features; None looks beside the JSON file."""
    splits: Splits = "own"
    """`own`: the file's subsets. Or lists of ids."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedConfig(SegmentedConfig):
    """Files as annotation tools and datasets have them; docs/formats.md says what each means."""

    layout: Literal[
        "elan",
        "boris",
        "label_studio",
        "cvat",
        "via",
        "anvil",
        "epic_kitchens",
        "captaincook4d",
        "assembly101",
        "jigsaws",
    ]
    track: str | None = None
    """The tier, subject or kind of label to audit, where files have several."""
    annotator: str | None = None
    """Whose labels to audit, where several people labelled a video; `csl lint` compares them."""
    media: str | None = None
    """Folder of the videos, frame folders or features; None looks beside the label files."""
    splits: Splits = "own"
    """`own`: all videos are audited, so that folds are needed. Or lists of ids."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LerobotConfig(SegmentedConfig):
    """LeRobot v3: episodes of robots as ranges of shared video files."""

    layout: Literal["lerobot"] = "lerobot"
    track: str | None = None
    """Which subtasks to audit: `dense`, `sparse`, `subtasks` or `language`."""
    camera: str | None = None
    """The video feature to look at; None takes the first."""
    splits: Splits = "own"
    """`own`: all episodes are audited, so that folds are needed. Or lists of ids."""


Column = str | int
"""A column's name, or its number from 0 in files without a header."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsConfig:
    """Which column of a table is what."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    start: Column
    stop: Column | None = None
    """Without this and `duration`, a segment ends where the next one of its video starts."""
    duration: Column | None = None
    label: Column | None = None
    video: Column | None = None
    """None: a file for each video, which has the file's name."""
    annotator: Column | None = None
    track: Column | None = None
    procedure: Column | None = None
    group: Column | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsConfig(SegmentedConfig):
    """Any CSV, TSV or text table of times and labels."""

    columns: ColumnsConfig
    """Which column is the start, the end, the label and so on."""
    layout: Literal["segments"] = "segments"
    unit: Literal["s", "ms", "frames", "clock"] = "s"
    """Of times; `frames` at `labels_fps`; `clock`: hh:mm:ss, with .fraction or :frame."""
    base: Literal[0, 1] = 0
    """The number of the first frame or millisecond."""
    inclusive: bool = False
    """Whether the end is the last frame, or millisecond, inside."""
    delimiter: str | None = None
    """Between columns; None finds out; a blank means any number of blanks."""
    track: str | None = None
    """The track to audit, where the table has several."""
    annotator: str | None = None
    """Whose labels to audit, where several people labelled a video."""
    media: str | None = None
    """Folder of the videos, frame folders or features; None looks beside the table."""
    splits: Splits = "own"
    """`own`: all videos are audited, so that folds are needed. Or lists of ids."""

    def __post_init__(self) -> None:
        if self.columns.label is None:
            raise ValueError("columns.label is missing: which column has the label?")
        if self.columns.stop is not None and self.columns.duration is not None:
            raise ValueError("columns.stop and columns.duration say the same; keep one")
        if self.unit == "frames" and self.labels_fps is None:
            raise ValueError("unit: frames needs labels_fps, the frames in a second")
        kinds = {isinstance(c, int) for c in dataclasses.astuple(self.columns) if c is not None}
        if len(kinds) > 1:
            raise ValueError("columns: give names, or numbers where there is no header, not both")


def with_layout(section: Any) -> Any:
    return {"layout": "manifest", **section} if isinstance(section, Mapping) else section


DatasetConfig = Annotated[
    ManifestConfig
    | Cholec80Config
    | EgoperConfig
    | MstcnConfig
    | ActivityNetConfig
    | LerobotConfig
    | AnnotatedConfig
    | SegmentsConfig,
    Field(discriminator="layout"),
    BeforeValidator(with_layout),
]
"""The dataset section: one of these, chosen by `layout`; `manifest` where that is left out."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CorruptConfig:
    """Errors to plant when labels and features are read; the user's files stay as they are."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    audit: dict[PlantableKind, Share | Literal[1]] = dataclasses.field(default_factory=dict)
    """Share of the audit videos that get each kind. Paper: {mislabel: 0.5, disorder: 0.5}."""
    train: dict[PlantableKind, Share | Literal[1]] = dataclasses.field(default_factory=dict)
    """Share of the training videos that get each kind. Paper: 0.1 and 0.2."""
    rate: Share = 0.1
    """Share of a video's frames that spans of a wrong label cover, in the mean."""
    lengths: Annotated[tuple[Count, Count], AfterValidator(ascending)] = (10, 100)
    """Shortest and longest of these spans, in frames; for `jitter`, how far a boundary moves."""
    seed: Seed = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdaptConfig:
    """How the last stages of the encoder are fine-tuned on each fold's training videos."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    trainable_stages: Literal[1, 2] = 1
    """How many of ResNet-18's four stages are trained, from the last one. Paper: 2."""
    fps: Positive | None = 5.0
    """Frames of a second of training video that are trained on; None: all that there are."""
    max_frames: Count = 1000
    """Most of these of one video, evenly spread. What is stored of each is 100 KB for one stage of
    224 pixels and 200 KB for two, before compression."""
    epochs: Count = 10
    """The features are those of the last epoch; the scorer `cnn` is audited with all of them."""
    learning_rate: Positive = 1e-4
    """Of AdamW, for the stages and the head."""
    batch_frames: Count = 256
    """Frames in one step, from many videos."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeaturesConfig:
    """How frames become feature vectors."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    store: str | None = None
    """URL of a feature store shared by runs; None keeps one in the run root."""
    weights: str = "imagenet"
    """`imagenet`, `random` (seeded), or the path of a torchvision ResNet-18 state dict."""
    seed: Seed = 0
    """Seed of `random` weights."""
    size: Count = 224
    """Side of the square that the encoder sees, in pixels. Paper: 224."""
    normalize: bool = True
    """Subtract ImageNet's mean and divide by its deviation; a local file may need False."""
    dtype: Literal["float16", "float32"] = "float16"
    """Type in the store."""
    batch_frames: Count = 64
    """Frames that the encoder takes at once on a GPU; on CPUs a few, which is faster there."""
    chunk_frames: Count = 256
    """Frames in one unit of extraction, and in one file of the store."""
    compile: bool = False
    """Let torch.compile optimise the encoder; costs a minute at the start of every worker."""
    on_bad_frame: Literal["error", "repeat_last"] = "error"
    """What to do with a frame that can't be decoded; `repeat_last` uses the one before it."""
    adapt: AdaptConfig | None = None
    """Fine-tune the encoder; None keeps it as it is. Paper: compared in Table A2."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScorerConfig:
    """One model family trained in the run."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    model: str | None = None
    """`transformer`, `framewise`, `mstcn`, or the import path `package.module:Class` of a
    torch.nn.Module; None takes the scorer's own name."""
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Keyword arguments of the model, `preset: vit_b` among them; of `transformer` also
    `pretrained`, the state dict of a vision Transformer whose blocks its training starts from."""
    train: bool = True
    """False: its checkpoints come from elsewhere, by `csl checkpoints import`."""
    max_frames: Count | None = None
    """Longer videos run in overlapping windows of so many frames; None: whole videos, as in the
    paper, or windows as long as a training worker's memory allows, which is told then."""


def share_of_percent(value: object) -> object:
    """`20%` as .2; anything else as it is."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return float(value.strip().removesuffix("%")) / 100
    return value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WhenGrown:
    """Train anew once the training set has grown."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    when_grown: Annotated[Positive, BeforeValidator(share_of_percent)]
    """By this share of the videos that the models were trained on; `20%` or 0.2."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How scorers are trained."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    epochs: Count = 200
    """Checkpoints of a training, one an epoch. Paper: 200."""
    steps: Count | None = None
    """Optimiser steps of an epoch, over as many passes as they take, or a part of one; None: one
    pass over the training videos. Paper: None."""
    learning_rate: Positive = 1e-4
    """Of AdamW. Paper: 1e-4."""
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.01
    """Of AdamW."""
    clip_norm: Positive = 1.0
    """Largest gradient norm."""
    schedule: Literal["constant", "cosine"] = "constant"
    """How the learning rate goes on after the warm-up; `cosine` falls to 0 at the last epoch."""
    warmup_epochs: Annotated[float, Field(ge=0)] = 0.0
    """Epochs over which the learning rate rises from 0."""
    batch_frames: Count | Literal["auto"] = "auto"
    """Most frames in one step, padding included; videos of like length share a batch. `auto`: few
    enough for some tens of steps in a pass, down to one video a step, and at most 8,192."""
    weighted: bool = True
    """Weight each class's loss by the inverse of its frequency. Paper: True."""
    seed: Seed = 0
    """Seed of weights, batch order and dropout."""
    workers: Count = 1
    """Data-parallel workers of one training."""
    trackers: tuple[Literal["tensorboard", "mlflow"], ...] = ()
    """Where metrics go beside metrics.jsonl: event files in the run root, or an MLflow server."""
    refresh: Literal["never", "always"] | WhenGrown = "never"
    """Whether models are trained anew when the training videos or their labels have changed since:
    `never`; `always`; or `when_grown: 20%`, once there are so many more videos. What is new is
    audited all the same, by models that did not see it."""
    max_failures: Annotated[int, Field(ge=0)] = 3
    """How often a training restarts from its last checkpoint after losing a worker."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PredictConfig:
    """How checkpoints are evaluated on the videos that they never saw."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    checkpoints: Annotated[Strategy, BeforeValidator(known_strategy)] = "full"
    """Which of them, as in `score.checkpoints`, which chooses among those. Paper: full."""
    dtype: Literal["float16", "float32"] = "float16"
    """Type of stored log-probabilities."""
    group_frames: Count = 32768
    """Most frames of the videos that one unit covers, unless one video alone has more."""
    batch_frames: Count = 8192
    """Most frames in one forward pass, padding included."""
    cpus_per_worker: Count = 1
    """CPU share, and threads, of an actor where there is no GPU."""
    compile: bool = False
    """Let torch.compile optimise the models; costs a minute at the start of every worker."""
    max_retries: Annotated[int, Field(ge=0)] = 3
    """How often a unit is tried again after its actor was lost."""
    on_bad_checkpoint: Literal["error", "skip"] = "error"
    """What to do with a checkpoint that is damaged, does not fit, or gives NaN; `skip` leaves it
    out of the trajectories and says so in audit.json."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsConfig:
    """Which weights stay in the run root."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    keep: Literal["all", "last", "selected"] = "all"
    """`last`: weights go once every held-out video has been run through them, but for the
    newest ones; `selected`: those that `score.checkpoints` picks stay as well."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScoreConfig:
    """How trajectories become scores."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    checkpoints: Annotated[Strategy, BeforeValidator(known_strategy)] = "full"
    """`full`, `every_2nd`, `every_5th`, `every_10th`, `hybrid` (every 2nd in the first quarter,
    every 5th after it), `last`, or a list of epochs. Paper: full."""
    window: Annotated[int, Field(ge=1), AfterValidator(odd)] = 9
    """Frames of the local mean that smooths a score, the frame itself in the middle; odd."""
    weighted: bool = True
    """Weight each class's loss as in training. Paper: True."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlagConfig:
    """Which spans go to a reviewer."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    scorer: str | None = None
    """Whose score decides, by rules other than `edits`: a scorer, or `ensemble`, the first that
    sees context and the first that does not. None: the ensemble, or whichever there is. Paper:
    transformer."""
    score: ScoreName = "aum_late_segment"
    """What decides by these rules: `csl`, `margin`, `aum` (each also `_late`) or `final`, as it is
    or with the ending `_smoothed` or `_segment`. Paper: csl_smoothed."""
    rule: Literal["edits", "validation", "validation_sd", "robust", "top", "top_video"] = "edits"
    """`edits`: the changes of the labels that explain most under all scorers, the order of steps
    and their durations, each with its fix and the probability of an error, as long as a flag is
    likelier right than wrong; of the other keys only its own count. The others flag frames whose
    score is high. `validation`: above a quantile of the validation videos' scores; `validation_sd`:
    above their mean by some deviations; `robust`: above the video's own median by some deviations,
    told from its median absolute deviation; `top`: the worst percent of all audit frames;
    `top_video`: of each video. Without validation videos `validation` and `validation_sd` are as
    `top`. Paper: top."""
    quantile: Share = 0.97
    """For `validation`: share of validation frames below the threshold."""
    deviations: Positive = 3.0
    """For `validation_sd` and `robust`."""
    percent: Percent = 5.0
    """For `top` and `top_video`."""
    min_frames: Count = 5
    """Shorter spans are dropped."""
    close_gap: Annotated[int, Field(ge=0)] = 5
    """Spans of one label that are at most this many frames apart become one."""
    tolerance_seconds: Annotated[float, Field(ge=0)] = 2.0
    """For `edits`: a boundary that is off by no more is none."""
    conventions: Literal["once", "flag"] = "once"
    """For `edits`: a disagreement that is the same in most videos, of all or of one group, is told
    `once`, as a question of definition; `flag` leaves every place of it among the flags."""
    expected_error_rate: Share | None = None
    """For `edits`: share of segments that are thought to be wrong; None: told from how many more
    findings score high than in labels without errors."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """What is audited."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    allow_in_sample: tuple[str, ...] = ()
    """Ids of videos that may be audited by checkpoints that were trained on them."""
    swapped_copies: Annotated[int, Field(ge=0)] = 10
    """By rules other than `edits`, which needs none: about so many validation videos (with folds:
    audited ones) are also predicted with two steps swapped, to tell how many such errors the flags
    find. Each costs as much as its video."""


def paper_scorers() -> dict[str, ScorerConfig]:
    return {"transformer": ScorerConfig(), "framewise": ScorerConfig()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One run: all that decides its results, and where they go."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    root: Url
    """URL of the folder that holds all that the run produces."""
    dataset: DatasetConfig
    corrupt: CorruptConfig = CorruptConfig()
    features: FeaturesConfig = FeaturesConfig()
    scorers: dict[str, ScorerConfig] = dataclasses.field(default_factory=paper_scorers)
    """The models to train, by name."""
    train: TrainConfig = TrainConfig()
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    predict: PredictConfig = PredictConfig()
    score: ScoreConfig = ScoreConfig()
    flag: FlagConfig = FlagConfig()
    audit: AuditConfig = AuditConfig()

    def __post_init__(self) -> None:
        if "" in self.scorers:
            raise ValueError("scorers: a scorer needs a name, such as `framewise: {}`")
        if not self.scorers:
            raise ValueError("scorers: at least one scorer is needed, such as `framewise: {}`")
        if self.train.warmup_epochs >= self.train.epochs:
            raise ValueError(
                f"train.warmup_epochs is {self.train.warmup_epochs:g}, which must be less than "
                f"train.epochs, {self.train.epochs}"
            )
        for name, scorer in self.scorers.items():
            if CNN in (name, scorer.model) and (name, scorer) != (CNN, ScorerConfig()):
                raise ValueError(
                    f"scorers.{name}: `cnn` is the encoder that features.adapt trains; write "
                    "`cnn: {}` and set its values there"
                )
        if CNN in self.scorers and self.features.adapt is None:
            raise ValueError("scorers.cnn: needs features.adapt, which trains it")
        for name in {ENSEMBLE, COMMITTEE} & set(self.scorers):
            raise ValueError(f"scorers: {name!r} is the name of several of them together")
        if self.flag.scorer not in (None, ENSEMBLE, *self.scorers):
            names = ", ".join([*self.scorers, ENSEMBLE])
            raise ValueError(f"flag.scorer is {self.flag.scorer!r}, but the scorers are {names}")


def num_swapped_copies(config: RunConfig) -> int:
    """About how many videos are predicted once more with two steps swapped."""
    return 0 if config.flag.rule == "edits" else config.audit.swapped_copies


def load_config(path: str | Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Reads a YAML config; `overrides` are `section.key=value` as in `--set`."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"can't read the config {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the config {path} is not UTF-8 text: {error}") from error
    try:
        data = yaml.safe_load(text)
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply to be a config") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys such as `root:` and `dataset:`")
    for override in overrides:
        set_value(data, override)
    return with_absolute_paths(parse_config(data, where=str(path)))


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """The config with local paths made absolute, so that it means the same in any folder."""

    def absolute(path: str) -> str:
        return path if "://" in path else str(Path(path).absolute())

    paths: dict[str, Any] = {
        name: absolute(path)
        for name in ("path", "truth", "media")
        if (path := getattr(config.dataset, name, None)) is not None
    }
    store, weights = config.features.store, config.features.weights
    named = weights in ("imagenet", "random")
    return dataclasses.replace(
        config,
        root=absolute(config.root),
        dataset=dataclasses.replace(config.dataset, **paths),
        features=dataclasses.replace(
            config.features,
            store=store and absolute(store),
            weights=weights if named else absolute(weights),
        ),
    )


def set_value(data: dict[str, Any], override: str) -> None:
    """Applies one `section.key=value` to a config's raw data; the value is read as YAML."""
    dotted, equals, value = override.partition("=")
    if not equals or not dotted:
        raise ConfigError(f"--set {override!r} must have the form section.key=value")
    *sections, key = dotted.split(".")
    for section in sections:
        inner = data.setdefault(section, {})
        if inner is None:
            inner = data[section] = {}
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {override}: {section} is a value, not a section")
        data = inner
    try:
        data[key] = yaml.safe_load(value)
    except RecursionError as error:
        raise ConfigError(f"--set {dotted}: the value is nested too deeply") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"--set {override}: the value is not valid YAML: {reason}") from error


def parse_config(data: Mapping[str, Any], *, where: str) -> RunConfig:
    """Checks raw data and makes the config of it; `where` names the source in errors."""
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        problems = "; ".join(_sentence(detail) for detail in error.errors())
        raise ConfigError(f"{where}: {problems}") from None


def config_as_dict(config: RunConfig) -> dict[str, Any]:
    """The resolved config as JSON-like data; `parse_config` reads it back."""
    data: dict[str, Any] = _ADAPTER.dump_python(config, mode="json")
    return data


_ADAPTER = TypeAdapter(RunConfig)


DATASET_SECTIONS: dict[str, Any] = {
    layout: section
    for section in get_args(get_args(DatasetConfig)[0])
    for field in dataclasses.fields(section)
    if field.name == "layout"
    for layout in get_args(field.type)
}
"""The class of the dataset section, by layout."""


def _sentence(detail: ErrorDetails) -> str:
    parts, layout = _without_tags([str(part) for part in detail["loc"]])
    key = ".".join(parts)
    match detail["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden" if parts == ["reduce"]:
            return "unknown key 'reduce'; it is `score` now, and what was `score` is `predict`"
        case "unexpected_keyword_argument" | "extra_forbidden":
            return _unknown_key(parts, layout)
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"{key!r} is missing"
        case "dataclass_type" | "dict_type" | "model_attributes_type":
            return f"{key!r} is {detail['input']!r}, but must be a section of keys"
        case "union_tag_invalid":
            names = ", ".join(DATASET_SECTIONS)
            return f"'{key}.layout' is {detail['ctx']['tag']!r}, but the layouts are {names}"
        case "value_error":
            return f"{key}: {detail['ctx']['error']}" if key else str(detail["ctx"]["error"])
        case _:
            return f"{key!r} is {_shown(detail['input'])}: {detail['msg'].lower()}"


def _shown(value: object) -> str:
    """A value as it stands in a config, or its beginning."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _without_tags(parts: list[str]) -> tuple[list[str], str]:
    """The keys of a path, without what says which member of a union was tried; and the layout."""
    match parts:
        case ["dataset", layout, "splits", _, *rest]:
            return ["dataset", "splits", *rest], layout
        case ["dataset", layout, *rest]:
            return ["dataset", *rest], layout
        case _:
            return parts, ""


def _unknown_key(parts: list[str], layout: str) -> str:
    *sections, name = parts
    if sections == ["dataset"]:
        owners = [other for other in DATASET_SECTIONS if name in _valid_keys(sections, other)]
        if owners:
            return f"dataset.{name} belongs to the layout {owners[0]}, but this is {layout}"
    valid = _valid_keys(sections, layout)
    near = difflib.get_close_matches(name, valid, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(valid)}"
    return f"unknown key {'.'.join(parts)!r}; {hint}"


def _valid_keys(sections: list[str], layout: str) -> list[str]:
    """Names of the fields of the section at a path from the top."""
    section: Any = RunConfig
    for name in sections:
        if section is RunConfig and name == "dataset":
            section = DATASET_SECTIONS[layout]
        elif section is RunConfig and name == "scorers":
            section = dict
        elif section is dict:
            section = ScorerConfig
        else:
            types = (field.type for field in dataclasses.fields(section) if field.name == name)
            section = _section_in(next(types))
    return [field.name for field in dataclasses.fields(section)]


def _section_in(annotation: Any) -> Any:
    """The dataclass in a field's type, such as `AdaptConfig | None`; None where there is none."""
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return annotation
    found = (_section_in(inner) for inner in get_args(annotation))
    return next((section for section in found if section is not None), None)
