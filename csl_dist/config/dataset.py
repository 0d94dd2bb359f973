"""The dataset section: which videos and labels to audit, one class for each layout on disk."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from csl_dist.config.values import (
    FORBID,
    Count,
    Rate,
    Seed,
)


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
    features_fps: Rate | None = None
    """Frames per second behind ready-made features; None: what the layout has, else 15. Beside
    labels with times, such as ActivityNet's, files of annotation tools and tables, it must be set
    unless these count frames."""
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

    @property
    def counted_fps(self) -> float:
        """Rate of features beside labels that are counted, which depend on it in nothing but what
        seconds are shown."""
        return self.features_fps or 15.0


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


DATASET_SECTIONS: dict[str, Any] = {
    layout: section
    for section in get_args(get_args(DatasetConfig)[0])
    for field in dataclasses.fields(section)
    if field.name == "layout"
    for layout in get_args(field.type)
}
"""The class of the dataset section, by layout."""
