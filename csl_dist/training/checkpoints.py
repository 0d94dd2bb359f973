"""CheckpointStore: the weights after every epoch of one training.

A checkpoint is a folder `epoch-0001` with `model.safetensors` and `meta.json`; `meta.json` is
written last, and a folder without it does not count. Loading never unpickles. Only the newest
checkpoint also holds the optimiser's state, from which training goes on. Weights may go once they
are scored; a checkpoint that could not be scored has a `bad.json` that says why.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from csl_dist.errors import (
    CheckpointError,
    DamagedCheckpointError,
    DamagedError,
    NotReadyError,
    damaged,
)
from csl_dist.storage.url import Storage
from csl_dist.strategies import Strategy, selected_epochs
from csl_dist.training.models import ModelSpec
from csl_dist.training.record import META, epoch_name, epochs_with

State = dict[str, Tensor]

WEIGHTS = "model.safetensors"
RESUME = "resume.safetensors"
BAD = "bad.json"
METRICS = "metrics.jsonl"


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
    resume_hash: str = ""
    """The same of the optimiser's state, from which only an unfinished training goes on."""

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
        resume = safetensors.torch.save(resume_state)
        info = dataclasses.replace(info, content_hash=_sha256(data), resume_hash=_sha256(resume))
        self._storage.put(f"{info.name}/{WEIGHTS}", data)
        self._storage.delete(f"{info.name}/{BAD}")
        self._storage.put(f"{info.name}/{RESUME}", resume)
        self._put_metrics(info)
        self._storage.put_json(f"{info.name}/{META}", dataclasses.asdict(info))
        self._infos[info.epoch] = info
        self._storage.delete(f"{epoch_name(info.epoch - 1)}/{RESUME}")
        return info

    def _put_metrics(self, info: CheckpointInfo) -> None:
        """Writes `metrics.jsonl` anew, for people: nothing in csl_dist reads it."""
        infos = [*self.infos(info.epoch - 1), info]
        lines = [json.dumps({"epoch": one.epoch, **one.metrics}) for one in infos]
        self._storage.put(METRICS, ("\n".join(lines) + "\n").encode())

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
            self._infos[epoch] = self._read_info(f"{epoch_name(epoch)}/{META}")
        return self._infos[epoch]

    def select(self, strategy: Strategy, num_epochs: int | None = None) -> list[CheckpointInfo]:
        """The published checkpoints, up to an epoch, that a strategy picks."""
        infos = {info.epoch: info for info in self.infos(num_epochs)}
        return [infos[epoch] for epoch in selected_epochs(list(infos), strategy)]

    def published_epochs(self) -> list[int]:
        """Epochs that are published, in order; a single listing."""
        return epochs_with(self._storage)

    def loadable_epochs(self) -> list[int]:
        """Epochs whose weights are there, in order; a single listing."""
        return epochs_with(self._storage, WEIGHTS)

    def drop_weights(self, epochs: Iterable[int]) -> None:
        """Deletes weights that nobody will need again; what the checkpoint says of itself stays."""
        for epoch in epochs:
            self._storage.delete(f"{epoch_name(epoch)}/{WEIGHTS}")

    def mark_bad(self, info: CheckpointInfo, reason: str) -> None:
        """Records that a checkpoint could not be scored, until it is saved again."""
        self._storage.put_json(f"{info.name}/{BAD}", {"reason": reason})

    def bad(self) -> dict[int, str]:
        """Why checkpoints could not be scored, by epoch."""
        epochs = epochs_with(self._storage, BAD)
        return {
            epoch: self._storage.read_json(f"{epoch_name(epoch)}/{BAD}", lambda bad: bad["reason"])
            for epoch in epochs
        }

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
        if _sha256(data) != info.content_hash:
            raise self._damaged(key, "it does not match its meta.json: truncated or changed")
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
        resumable = whole and self._storage.exists(f"{epoch_name(whole)}/{RESUME}")
        return whole if resumable else 0

    def load_resume_state(self, epoch: int) -> State:
        """The optimiser's state after an epoch, which must be the newest."""
        key = f"{epoch_name(epoch)}/{RESUME}"
        data = self._storage.read(key)
        # Checkpoints of an earlier csl_dist do not tell the hash.
        if self._info(epoch).resume_hash not in ("", _sha256(data)):
            raise self._damaged(key, "it does not match its meta.json: truncated or changed")
        try:
            return safetensors.torch.load(data)
        except SafetensorError as error:
            raise self._damaged(key, error) from error

    def damages(self) -> Iterator[tuple[int, str]]:
        """Epochs of which a file is not as it was written, and what is wrong; reads everything."""
        loadable, published = self.loadable_epochs(), self.published_epochs()
        for epoch in published:
            try:
                info = self._info(epoch)
                if epoch in loadable:
                    self.load(info)
                if self._storage.exists(f"{info.name}/{RESUME}"):
                    self.load_resume_state(epoch)
            except (DamagedError, NotReadyError) as error:
                yield epoch, str(error)

    def unneeded(self) -> dict[str, int]:
        """Bytes by key of what a kill left: of epochs that are not published, and optimiser states
        of epochs before another."""
        published = set(self.published_epochs())
        found = {}
        for key, size in self._storage.list_sizes():
            name, _, file = key.partition("/")
            if not re.fullmatch(r"epoch-\d+", name):
                continue
            epoch = int(name.removeprefix("epoch-"))
            if epoch not in published or (file == RESUME and epoch + 1 in published):
                found[key] = size
        return found

    def remove(self, epoch: int) -> None:
        """Deletes an epoch; what says that it is published goes first."""
        self._infos.pop(epoch, None)
        self._storage.delete(f"{epoch_name(epoch)}/{META}")
        self._storage.delete_folder(epoch_name(epoch))

    def _damaged(self, key: str, reason: object) -> DamagedCheckpointError:
        place = f"{self._storage.url}/{key}"
        return DamagedCheckpointError(str(damaged(place, reason)), place)

    def _read_info(self, key: str) -> CheckpointInfo:
        try:
            return self._storage.read_json(key, _info_of)
        except DamagedError as error:
            raise DamagedCheckpointError(str(error), error.place) from error


def _info_of(content: dict[str, Any]) -> CheckpointInfo:
    model = ModelSpec(**content.pop("model"))
    sequences: dict[str, Any] = {name: tuple(content.pop(name)) for name in SEQUENCES}
    return CheckpointInfo(model=model, **sequences, **content)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


SEQUENCES = ("classes", "class_weights", "train_ids")
"""Fields that JSON turns from tuples to lists."""


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
