"""Checkpoints that were trained elsewhere: a folder of state dicts becomes a training of ours.

They are read without unpickling code, must fit the scorer's model exactly, and say which videos
they were trained on, since an audit is refused for those.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from csl_dist.errors import CheckpointError, ConfigError
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore, State
from csl_dist.training.inputs import Inputs
from csl_dist.training.models import ModelSpec, Scorer, build_scorer
from csl_dist.training.train import class_counts, class_weights
from csl_dist.types import FloatArray, Split, fingerprint

SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors")
WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Keys under which training scripts keep the state dict beside other things."""
PREFIXES = ("module.", "model.", "_orig_mod.")
"""What DistributedDataParallel, Lightning and torch.compile put before a parameter's name."""


def epoch_files(pattern: str) -> dict[int, Path]:
    """Files of a folder or glob by epoch, the last number in their names; from 1 on, ascending."""
    folder = Path(pattern)
    paths = list(folder.iterdir()) if folder.is_dir() else [Path(name) for name in glob(pattern)]
    paths = sorted(path for path in paths if path.suffix in SUFFIXES)
    if not paths:
        raise CheckpointError(
            f"{pattern} names no checkpoint; expected files that end in {', '.join(SUFFIXES)}"
        )
    files: dict[int, Path] = {}
    for path in paths:
        numbers = re.findall(r"\d+", path.stem)
        if not numbers:
            raise CheckpointError(f"{path} has no epoch in its name; name it epoch_007.pt")
        epoch = int(numbers[-1])
        if epoch in files:
            raise CheckpointError(f"{path} and {files[epoch]} are both of epoch {epoch}")
        files[epoch] = path
    shift = 1 if 0 in files else 0
    return {epoch + shift: files[epoch] for epoch in sorted(files)}


def import_checkpoints(
    store: CheckpointStore,
    files: Mapping[int, Path],
    *,
    scorer: str,
    fold: int,
    model: ModelSpec,
    classes: tuple[str, ...],
    class_weights: Sequence[float],
    train_ids: Sequence[str],
    encoder: str,
    training: str,
) -> Iterator[CheckpointInfo]:
    """Saves every file as a checkpoint of ours, after all of them have been found to fit."""
    for path in files.values():
        fitted_scorer(model, path)
    for epoch, path in files.items():
        info = CheckpointInfo(
            scorer=scorer,
            fold=fold,
            epoch=epoch,
            model=model,
            classes=classes,
            class_weights=tuple(class_weights),
            train_ids=tuple(train_ids),
            encoder=encoder,
            training=training,
            metrics={},
        )
        weights = {k: v.contiguous() for k, v in fitted_scorer(model, path).state_dict().items()}
        yield store.save(info, weights, resume_state={})


def fitted_scorer(model: ModelSpec, path: Path) -> Scorer:
    """A scorer with the weights of a file; its features are taken as they are."""
    scorer = build_scorer(model)
    state = read_state(path)
    own = scorer.model.state_dict()
    missing = sorted(own.keys() - state.keys())
    unknown = sorted(state.keys() - own.keys())
    misfits = sorted(k for k in own.keys() & state.keys() if own[k].shape != state[k].shape)
    if missing or unknown or misfits:
        wrong = [*(f"{k} missing" for k in missing), *(f"{k} unknown" for k in unknown)]
        wrong += [f"{k} is {tuple(state[k].shape)}, not {tuple(own[k].shape)}" for k in misfits]
        raise CheckpointError(
            f"{path} does not fit model {model.name!r}: {'; '.join(wrong[:3])}"
            f"{f' and {len(wrong) - 3} more' if wrong[3:] else ''}; are the scorer's arguments "
            "those of its training?"
        )
    scorer.model.load_state_dict(state)
    return scorer


def read_state(path: Path) -> State:
    """The state dict in a file, without what training scripts wrap around it."""
    try:
        content: Any
        if path.suffix == ".safetensors":
            content = safetensors.torch.load(path.read_bytes())
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler raises anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} can't be read as plain weights: {reason}") from error
    for key in WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in content.items()
    ):
        raise CheckpointError(f"{path} holds no state dict: expected names with tensors")
    odd = [
        n for n, v in content.items() if v.layout != torch.strided or v.is_meta or v.is_quantized
    ]
    if odd:
        raise CheckpointError(
            f"{path}: {odd[0]} is sparse, quantised or without numbers; save plain dense weights"
        )
    for prefix in PREFIXES:
        if content and all(name.startswith(prefix) for name in content):
            content = {name.removeprefix(prefix): tensor for name, tensor in content.items()}
    return dict(content)


def import_training(
    inputs: Inputs, scorer: str, fold: int, pattern: str, train_ids: Sequence[str]
) -> list[CheckpointInfo]:
    """Makes state dicts the checkpoints that audits of a scorer and fold use from now on."""
    run = inputs.run
    if scorer not in run.config.scorers:
        names = ", ".join(run.config.scorers)
        raise ConfigError(f"the config has no scorer {scorer!r}; its scorers are {names}")
    if run.config.scorers[scorer].train:
        raise ConfigError(
            f"scorer {scorer!r} is trained by `csl train`, which would replace what is imported; "
            f"set scorers.{scorer}.train: false"
        )
    if fold >= len(run.dataset.folds):
        raise ConfigError(f"there is no fold {fold}; the run has {len(run.dataset.folds)}, from 0")
    files = epoch_files(pattern)
    model = inputs.model_spec(scorer)
    contents = {e: hashlib.sha256(path.read_bytes()).hexdigest() for e, path in files.items()}
    training = fingerprint("imported", model, run.dataset.classes, contents, sorted(train_ids))
    store = CheckpointStore(run.paths.checkpoints(scorer, fold, training))
    imported = import_checkpoints(
        store,
        files,
        scorer=scorer,
        fold=fold,
        model=model,
        classes=run.dataset.classes,
        class_weights=_class_weights(inputs, train_ids).tolist(),
        train_ids=train_ids,
        encoder=inputs.features.of(scorer, fold).encoder,
        training=training,
    )
    infos = list(imported)
    inputs.checkpoints.use(scorer, fold, training)
    return infos


def _class_weights(inputs: Inputs, train_ids: Sequence[str]) -> FloatArray:
    """Weights by the labels of the training videos; ones where the dataset does not have them."""
    run = inputs.run
    if not train_ids or not set(train_ids) <= {video.id for video in run.dataset.videos}:
        return np.ones(len(run.dataset.classes))
    annotations = inputs.labels.of(train_ids, Split.TRAIN)
    return class_weights(class_counts(annotations, len(run.dataset.classes)))
