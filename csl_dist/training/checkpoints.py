"""CheckpointStore: the weights after every epoch of one training.

A checkpoint is a folder `epoch-0001` with `model.safetensors` and `meta.json`; `meta.json` is
written last, and a folder without it does not count. Loading never unpickles. Only the newest
checkpoint also holds the optimiser's state, from which training goes on. Weights may go once they
are scored; a checkpoint that could not be scored has a `bad.json` that says why.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from csl_dist.errors import CheckpointError, NotReadyError
from csl_dist.storage.url import Storage
from csl_dist.strategies import Strategy, selected_epochs
from csl_dist.training.models import ModelSpec

State = dict[str, Tensor]

METRICS = "metrics.jsonl"
WEIGHTS = "model.safetensors"
BAD = "bad.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """What a checkpoint says of itself."""

    scorer: str
    fold: int
    epoch: int
    model: ModelSpec
    classes: tuple[str, ...]
    class_weights: tuple[float, ...]
    """Weight of each class's loss, inverse to its frequency in training."""
    train_ids: tuple[str, ...]
    """Videos that the model, or the encoder under it, was trained on."""
    encoder: str
    """Fingerprint of the encoder of its features."""
    training: str
    """Fingerprint of all that the training depends on."""
    metrics: dict[str, float]
    content_hash: str = ""
    """SHA-256 of the weights file; filled in by `save`."""

    @property
    def name(self) -> str:
        return epoch_name(self.epoch)

    @property
    def place(self) -> str:
        """Which one it is of all in a run."""
        return f"{self.scorer}/fold-{self.fold}/{self.name}"


class CheckpointStore:
    """The checkpoints of one scorer and fold."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._infos: dict[int, CheckpointInfo] = {}
        """What published checkpoints say of themselves, as far as it was read or written here."""

    def __repr__(self) -> str:
        return f"CheckpointStore({self._storage.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckpointStore) and self._storage == other._storage

    def __hash__(self) -> int:
        return hash(self._storage)

    def save(self, info: CheckpointInfo, weights: State, resume_state: State) -> CheckpointInfo:
        """Publishes a checkpoint, then drops the optimiser state of the one before."""
        data = safetensors.torch.save(weights)
        info = dataclasses.replace(info, content_hash=hashlib.sha256(data).hexdigest())
        self._storage.put(f"{info.name}/{WEIGHTS}", data)
        self._storage.delete(f"{info.name}/{BAD}")
        self._storage.put(f"{info.name}/resume.safetensors", safetensors.torch.save(resume_state))
        self._put_metrics(info)
        self._storage.put_json(f"{info.name}/meta.json", dataclasses.asdict(info))
        self._infos[info.epoch] = info
        self._storage.delete(f"{epoch_name(info.epoch - 1)}/resume.safetensors")
        return info

    def _put_metrics(self, info: CheckpointInfo) -> None:
        """Adds an epoch's line to `metrics.jsonl`; lines of epochs that are done again go."""
        kept = [line for line in self.metrics() if line["epoch"] < info.epoch]
        lines = [json.dumps(line) for line in [*kept, {"epoch": info.epoch, **info.metrics}]]
        self._storage.put(METRICS, ("\n".join(lines) + "\n").encode())

    def metrics(self) -> list[dict[str, float]]:
        """What was measured in every epoch, in order."""
        if not self._storage.exists(METRICS):
            return []
        return [json.loads(line) for line in self._storage.read(METRICS).splitlines()]

    def infos(self, num_epochs: int | None = None) -> list[CheckpointInfo]:
        """The published checkpoints, up to an epoch, in order."""
        epochs = [e for e in self.published_epochs() if num_epochs is None or e <= num_epochs]
        return [self._info(epoch) for epoch in epochs]

    def first(self) -> CheckpointInfo | None:
        """The first published checkpoint, which says what all of its training share."""
        epochs = self.published_epochs()
        return self._info(epochs[0]) if epochs else None

    def _info(self, epoch: int) -> CheckpointInfo:
        if epoch not in self._infos:
            self._infos[epoch] = self._read_info(f"{epoch_name(epoch)}/meta.json")
        return self._infos[epoch]

    def select(self, strategy: Strategy, num_epochs: int | None = None) -> list[CheckpointInfo]:
        """The published checkpoints, up to an epoch, that a strategy picks."""
        infos = {info.epoch: info for info in self.infos(num_epochs)}
        return [infos[epoch] for epoch in selected_epochs(list(infos), strategy)]

    def published_epochs(self) -> list[int]:
        """Epochs that are published, in order; a single listing."""
        return self._epochs_with("meta.json")

    def loadable_epochs(self) -> list[int]:
        """Epochs whose weights are there, in order; a single listing."""
        return self._epochs_with(WEIGHTS)

    def _epochs_with(self, file: str) -> list[int]:
        names = (key for key in self._storage.list_keys() if key.endswith(f"/{file}"))
        return sorted(int(name.split("/")[0].removeprefix("epoch-")) for name in names)

    def drop_weights(self, epochs: Iterable[int]) -> None:
        """Deletes weights that nobody will need again; what the checkpoint says of itself stays."""
        for epoch in epochs:
            self._storage.delete(f"{epoch_name(epoch)}/{WEIGHTS}")

    def mark_bad(self, info: CheckpointInfo, reason: str) -> None:
        """Records that a checkpoint could not be scored, until it is saved again."""
        self._storage.put_json(f"{info.name}/{BAD}", {"reason": reason})

    def bad(self) -> dict[int, str]:
        """Why checkpoints could not be scored, by epoch."""
        epochs = self._epochs_with(BAD)
        return {e: self._storage.read_json(f"{epoch_name(e)}/{BAD}")["reason"] for e in epochs}

    def load(self, info: CheckpointInfo) -> State:
        """The weights, checked against the hash in the checkpoint's own description."""
        key = f"{info.name}/{WEIGHTS}"
        if not self._storage.exists(key):
            raise NotReadyError(
                f"{self._storage.url}/{key} is gone: checkpoints.keep deletes weights that are "
                f"scored; to score more with them, delete {self._storage.url} and run `csl train` "
                "(only for copies whose labels changed? Then set audit.swapped_copies: 0)"
            )
        data = self._storage.read(key)
        if hashlib.sha256(data).hexdigest() != info.content_hash:
            raise CheckpointError(
                f"{self._storage.url}/{key} does not match its meta.json: "
                "truncated or changed; delete the folder and run `csl train`"
            )
        return safetensors.torch.load(data)

    def resume_point(self, num_epochs: int) -> int:
        """The epoch to go on after: `num_epochs` where all are there, 0 to start anew.

        Checkpoints without a gap count; going on also takes the optimiser's state, which only the
        newest has.
        """
        epochs = self.published_epochs()
        whole = next((n for n in range(len(epochs)) if epochs[n] != n + 1), len(epochs))
        if whole >= num_epochs:
            return num_epochs
        resumable = whole and self._storage.exists(f"{epoch_name(whole)}/resume.safetensors")
        return whole if resumable else 0

    def load_resume_state(self, epoch: int) -> State:
        """The optimiser's state after an epoch, which must be the newest."""
        data = self._storage.read(f"{epoch_name(epoch)}/resume.safetensors")
        try:
            return safetensors.torch.load(data)
        except SafetensorError as error:
            raise CheckpointError(
                f"{self._storage.url}/{epoch_name(epoch)}/resume.safetensors is broken ({error}); "
                "delete the folder and run `csl train`"
            ) from error

    def _read_info(self, key: str) -> CheckpointInfo:
        data: dict[str, Any] = self._storage.read_json(key)
        try:
            model = ModelSpec(**data.pop("model"))
            sequences: dict[str, Any] = {name: tuple(data.pop(name)) for name in SEQUENCES}
            return CheckpointInfo(model=model, **sequences, **data)
        except (KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self._storage.url}/{key} is not a checkpoint description ({error})"
            ) from error


SEQUENCES = ("classes", "class_weights", "train_ids")
"""Fields that JSON turns from tuples to lists."""


def epoch_name(epoch: int) -> str:
    return f"epoch-{epoch:04d}"


def require_fit(
    infos: list[CheckpointInfo], scorer: str, *, encoder: str, classes: tuple[str, ...]
) -> None:
    """Refuses checkpoints that are missing, or were trained on other features or classes."""
    if not infos:
        raise NotReadyError(f"scorer {scorer!r} has no checkpoints yet; run `csl train`")
    if infos[0].encoder != encoder:
        raise CheckpointError(
            f"the checkpoints of scorer {scorer!r} were trained on features of encoder "
            f"{infos[0].encoder}, but the config has {encoder}; run `csl train`"
        )
    if infos[0].classes != classes:
        raise CheckpointError(
            f"the checkpoints of scorer {scorer!r} know the classes {', '.join(infos[0].classes)}, "
            f"but the dataset has {', '.join(classes)}; run `csl train`"
        )
