"""The sections of the stages: what is planted, extracted, trained, predicted, scored, flagged."""

import dataclasses
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
)

from csl_dist.config.values import (
    FORBID,
    Count,
    Percent,
    Positive,
    ScoreName,
    Seed,
    Share,
    ascending,
    known_database,
    odd,
)
from csl_dist.strategies import Strategy, known_strategy

NAMED_WEIGHTS = ("pretrained", "imagenet", "random")
"""Words for an encoder's weights; anything else is the path of a file."""
CNN = "cnn"
"""The scorer that an adapted encoder is, and the name its checkpoints go by."""
ENSEMBLE = "ensemble"
"""What stands for the framewise and the temporal scorer together, wherever a scorer is named."""
COMMITTEE = "committee"
"""What stands for all scorers together, as the rule `edits` asks them."""

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
    """How many of the ResNet's four stages are trained, from the last one. Paper: 2."""
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
class EncoderConfig:
    """What turns a frame into a vector."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    encoder: str = "resnet18"
    """`resnet18`, `resnet34`, `resnet50`, `resnet101`, `resnet152`; a model of timm
    (`timm/vit_small_patch14_dinov2`); or the import path `package.module:Class` of a
    torch.nn.Module that maps frames (T, 3, H, W) to features (T, width). Paper: ResNet-18."""
    weights: str = "imagenet"
    """`pretrained` (or `imagenet`): those that its library publishes; `random` (seeded); or the
    path of a state dict."""
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Keyword arguments of an encoder by import path, or of timm.create_model."""
    seed: Seed = 0
    """Seed of `random` weights."""
    size: Annotated[int, Field(ge=1, le=4096)] = 224
    """Side of the square that the encoder sees, in pixels. Paper: 224."""
    normalize: bool = True
    """Subtract the mean of the pictures that the encoder was trained with, and divide by their
    deviation; a local file may need False."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BesideConfig(EncoderConfig):
    """One more set of features."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    files: str | None = None
    """Folder of ready-made features, a file named like each video, for a dataset whose own features
    are ready-made too; None: of the encoder."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeaturesConfig(EncoderConfig):
    """How frames become feature vectors."""

    __pydantic_config__: ClassVar[ConfigDict] = FORBID

    beside: tuple[BesideConfig, ...] = ()
    """More encoders, or files, whose features stand beside the first ones: a frame's vectors are
    put end to end. Each is extracted once and kept in the store by itself."""
    store: str | None = None
    """URL of a feature store shared by runs; None keeps one in the run root."""
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
    """Fine-tune the encoder, a ResNet; None keeps it as it is. Paper: compared in Table A2."""

    def sets(self) -> "tuple[FeaturesConfig, ...]":
        """One config for each encoder, in the order in which their features stand."""
        own = dataclasses.replace(self, beside=())
        names = [field.name for field in dataclasses.fields(EncoderConfig)]
        return (
            own,
            *(
                dataclasses.replace(own, **{name: getattr(other, name) for name in names})
                for other in self.beside
            ),
        )


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
    weighted: bool = False
    """Weight each class's loss by the inverse of its frequency; without, more errors are found.
    Paper: True."""
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
    precision: Literal["exact", "fast"] = "exact"
    """`fast`: products of large layers but the first in 8 bits. On CPUs in integers, which takes
    half the time where the CPU has VNNI instructions; small models are as `exact`. On GPUs in
    floats, where the GPU has them and torchao is installed, and by CUDA graphs; not yet tried on
    any GPU."""
    sweeps: bool = False
    """Predict in sweeps, all videos in each, with an audit after each: every 10th checkpoint and
    the last, every 5th, every 2nd, all. The last audit is the same as without."""
    stop: Literal["full", "settled"] = "full"
    """`settled`: in sweeps, until the top of the list is settled: when at most a tenth of the
    first 50 flags of either of two sweeps in a row, or two flags, have no like in the other's;
    flags that are about as likely right as wrong may come and go."""
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

    @property
    def in_sweeps(self) -> bool:
        return self.sweeps or self.stop == "settled"

    @property
    def numbers(self) -> str:
        """What tells log-probabilities from others of the same checkpoint and frames."""
        # Its third form: of the first, the layer that sees the features was rounded, too; the
        # second was `exact` on GPUs.
        return self.dtype if self.precision == "exact" else f"{self.dtype} {self.precision} 3"


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
    """Weight each class's loss as in training, where `train.weighted` is set. Paper: True."""


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
    """For `edits`: share of steps that are thought to be wrong, which boundaries and order do not
    count in; None: told from how many more findings score high than in labels without errors."""

    @property
    def by_edits(self) -> bool:
        """Whether the rule is `edits`; all others compare a score of frames with a threshold."""
        return self.rule == "edits"


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
    reviews: Annotated[str, AfterValidator(known_database)] | None = None
    """By `edits`: the database that `csl serve --database` keeps decisions of reviewers in, from
    which the next audit learns: postgresql://USER@HOST/NAME or sqlite:////FILE. None: `reviews.db`
    of a root on this machine. Without a password, which all who read the root would see: it belongs
    into PGPASSWORD or .pgpass."""
