"""The scorers of a run: which there are, how each is built and trained, and what each is for."""

from dataclasses import replace

import torch

from csl_dist.config import CNN, COMMITTEE, ENSEMBLE, RunConfig, ScorerConfig, TrainConfig
from csl_dist.errors import ConfigError
from csl_dist.features.encoders import encoder_spec
from csl_dist.storage.paths import RunPaths
from csl_dist.training.models import ModelSpec, build_scorer, sees_context

CNN_WINDOW_FRAMES = 16
"""Frames that lie together in a batch of `cnn`: few, so that a batch shows many videos."""


def model_name(scorer: str, config: ScorerConfig) -> str:
    return config.model or scorer


def model_spec(config: RunConfig, scorer: str, *, num_features: int, num_classes: int) -> ModelSpec:
    """How a scorer is built; `num_features` is the width of the run's base features."""
    adapt = config.features.adapt
    if adapt is not None and scorer == CNN:
        encoder = config.features.encoder
        own_encoder = {} if encoder == "resnet18" else {"encoder": encoder}
        return ModelSpec(
            name=CNN,
            arguments={"trainable_stages": adapt.trainable_stages} | own_encoder,
            num_features=num_features,
            num_classes=num_classes,
            max_frames=CNN_WINDOW_FRAMES,
        )
    own = config.scorers[scorer]
    return ModelSpec(
        name=model_name(scorer, own),
        arguments=own.arguments,
        num_features=num_features if adapt is None else encoder_spec(config.features).width,
        num_classes=num_classes,
        max_frames=own.max_frames,
    )


def train_config(config: RunConfig, scorer: str) -> TrainConfig:
    """How a scorer is trained; `cnn` as features.adapt says."""
    adapt = config.features.adapt
    if scorer != CNN or adapt is None:
        return config.train
    return replace(
        config.train,
        epochs=adapt.epochs,
        learning_rate=adapt.learning_rate,
        batch_frames=adapt.batch_frames,
        warmup_epochs=0.0,
        steps=None,
    )


def num_epochs(config: RunConfig, scorer: str) -> int | None:
    """Epochs that a scorer is to be trained for; None where its checkpoints are imported."""
    is_trained = scorer == CNN or config.scorers[scorer].train
    return train_config(config, scorer).epochs if is_trained else None


def flag_scorer(config: RunConfig) -> str:
    """Whose scores decide on flags: all scorers' by the rule `edits`; by another one the named
    scorer's, or else the ensemble's, where the run has one."""
    if config.flag.by_edits:
        return COMMITTEE
    default = ENSEMBLE if has_ensemble(config) else temporal_scorer(config)
    return config.flag.scorer or default


def has_ensemble(config: RunConfig) -> bool:
    """Whether the run has both a scorer that sees context and one that does not."""
    return framewise_scorer(config) not in (None, temporal_scorer(config))


def temporal_scorer(config: RunConfig) -> str:
    """The scorer that explains flags: the one that decides, or the first with context."""
    if config.flag.scorer in config.scorers:
        return config.flag.scorer
    temporal = [n for n, c in config.scorers.items() if sees_context(model_name(n, c))]
    return (temporal or list(config.scorers))[0]


def framewise_scorer(config: RunConfig) -> str | None:
    """A scorer that sees single frames only, if the run has one."""
    blind = [n for n, c in config.scorers.items() if not sees_context(model_name(n, c))]
    return blind[0] if blind else None


def refuse_unbuildable(scorer: str, spec: ModelSpec) -> None:
    """Builds a scorer without memory for its weights, so that a mistake shows before any work."""
    if scorer in RunPaths.RESERVED:
        raise ConfigError(f"scorers: {scorer!r} is a name that the run root needs itself")
    with torch.device("meta"):
        build_scorer(spec)
