"""RunConfig: the whole config, and what its sections demand of each other."""

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from pydantic import (
    ConfigDict,
)

from csl_dist.config.dataset import DatasetConfig
from csl_dist.config.stages import (
    CNN,
    COMMITTEE,
    ENSEMBLE,
    NAMED_WEIGHTS,
    AuditConfig,
    CheckpointsConfig,
    CorruptConfig,
    EncoderConfig,
    FeaturesConfig,
    FlagConfig,
    PredictConfig,
    ScoreConfig,
    ScorerConfig,
    TrainConfig,
)
from csl_dist.config.values import (
    FORBID,
    Url,
)
from csl_dist.errors import ConfigError

MAX_NAME_BYTES = 255
"""Of one part of a path; no file system takes more."""


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
        if self.features.adapt is not None and not self.features.encoder.startswith("resnet"):
            raise ValueError(
                f"features.adapt: {self.features.encoder} can't be adapted, only torchvision's "
                "ResNets can; remove it, or take an encoder such as resnet50"
            )
        if self.features.adapt is not None and self.features.beside:
            raise ValueError("features.adapt and features.beside exclude each other; remove one")
        if self.predict.in_sweeps and not isinstance(self.score.checkpoints, str):
            raise ValueError(
                "score.checkpoints is a list of epochs, which the first sweeps of predict.sweeps "
                "lack; give the list as predict.checkpoints, or remove one of them"
            )
        for name in {ENSEMBLE, COMMITTEE} & set(self.scorers):
            raise ValueError(f"scorers: {name!r} is the name of several of them together")
        if self.flag.scorer not in (None, ENSEMBLE, *self.scorers):
            names = ", ".join([*self.scorers, ENSEMBLE])
            raise ValueError(f"flag.scorer is {self.flag.scorer!r}, but the scorers are {names}")


def num_swapped_copies(config: RunConfig) -> int:
    """About how many videos are predicted once more with two steps swapped."""
    return 0 if config.flag.by_edits else config.audit.swapped_copies


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """The config with local paths made absolute, so that it means the same in any folder."""

    def absolute(path: str) -> str:
        if "://" in path:
            return path
        parts = (part.encode(errors="replace") for part in path.split("/"))
        if "\0" in path or max(map(len, parts)) > MAX_NAME_BYTES:
            raise ConfigError(
                f"{path[:80]!r} can't be a path: a name in it is longer than "
                f"{MAX_NAME_BYTES} bytes, or has a NUL; give another one"
            )
        return str(Path(path).absolute())

    paths: dict[str, Any] = {
        name: absolute(path)
        for name in ("path", "truth", "media")
        if (path := getattr(config.dataset, name, None)) is not None
    }

    def weights(encoder: EncoderConfig) -> str:
        return encoder.weights if encoder.weights in NAMED_WEIGHTS else absolute(encoder.weights)

    store, beside = config.features.store, config.features.beside
    return dataclasses.replace(
        config,
        root=absolute(config.root),
        dataset=dataclasses.replace(config.dataset, **paths),
        features=dataclasses.replace(
            config.features,
            store=store and absolute(store),
            weights=weights(config.features),
            beside=tuple(
                dataclasses.replace(
                    other, weights=weights(other), files=other.files and absolute(other.files)
                )
                for other in beside
            ),
        ),
    )
