"""PredictActor: evaluates checkpoints on one GPU, or on its share of CPUs."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import dropwhile, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from csl_dist.config import CNN, PredictConfig
from csl_dist.errors import CheckpointError
from csl_dist.features.node_cache import kept_on_node, node_folder
from csl_dist.features.source import DerivedFeatures, FeatureReader, FeatureSource
from csl_dist.predict.arithmetic import arithmetic_of
from csl_dist.predict.forward import (
    CPU_BATCH_FRAMES,
    each_log_probabilities,
    require_finite,
    within_memory,
)
from csl_dist.predict.trajectories import Group, Rows, TrajectoryStore
from csl_dist.predict.units import PredictSlice, PredictUnit
from csl_dist.storage.paths import RunPaths
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore, State
from csl_dist.training.models import ModelSpec, Scorer
from csl_dist.types import DerivedFrames

ROWS_AHEAD = 4
"""Rows that may wait to be written while the next ones are computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """What the driver should know of a slice that an actor has ended."""

    batch_frames: int | None = None
    """Frames of a forward pass, where memory did not suffice for those asked for."""
    bad: str | None = None
    """Why a checkpoint can't be used, where the config says to skip such."""
    bad_epoch: int = 0
    """Which of the slice's checkpoints that is."""


class _UnusableError(Exception):
    """Which checkpoint can't be used, and why."""

    def __init__(self, epoch: int, reason: CheckpointError):
        self.epoch = epoch
        self.reason = reason
        super().__init__(epoch, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Videos of a group whose rows are all there."""

    scorer: str
    group: Group
    rows: dict[str, Rows]
    """What each of them is made of."""


class PredictActor:
    """Takes two slices at once: while one is computed, the other's checkpoints are read."""

    def __init__(
        self,
        config: PredictConfig,
        paths: RunPaths,
        sources: Mapping[tuple[str, int], FeatureSource],
        derived: Mapping[str, DerivedFrames],
    ):
        self._config = config
        self._paths = paths
        folder = node_folder(paths.root.url)
        self._sources = {
            place: DerivedFeatures(kept_on_node(source, folder), derived)
            for place, source in sources.items()
        }
        self._reader: FeatureReader | None = None
        self._models: tuple[ModelSpec, list[Scorer]] | None = None
        self._computing = ThreadPoolExecutor(1)
        """One slice at a time, and always in one thread, which CUDA graphs belong to."""
        self._most_frames = sys.maxsize
        """Frames of a forward pass that memory suffices for, as far as is known."""
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self._device.type == "cpu":
            torch.set_num_threads(config.cpus_per_worker)
        self._arithmetic = arithmetic_of(config, self._device)

    def work(self, task: PredictSlice) -> SliceResult:
        """Predicts a slice's units, writing each as it is done."""
        before = self._most_frames
        try:
            self._predict(task)
        except _UnusableError as error:
            if self._config.on_bad_checkpoint == "error":
                raise error.reason from None
            return SliceResult(bad=str(error.reason), bad_epoch=error.epoch)
        return SliceResult(batch_frames=self._most_frames if self._most_frames < before else None)

    def publish(self, task: Publication) -> None:
        """Turns the rows of some videos into trajectories."""
        store = TrajectoryStore(self._paths.scorer(task.scorer))
        store.publish(task.group, task.rows)

    def _predict(self, task: PredictSlice) -> None:
        trajectories = TrajectoryStore(self._paths.scorer(task.scorer))
        # Of a slice whose actor was lost, the first units may be done.
        left = list(dropwhile(lambda unit: trajectories.has_row(unit.unit), task.units))
        if not left:
            return
        checkpoints = {unit.checkpoint.epoch: unit.checkpoint for unit in left}
        weights = {epoch: self._weights(task, info) for epoch, info in checkpoints.items()}
        with ThreadPoolExecutor(ROWS_AHEAD) as writers:
            for row in self._computing.submit(
                self._compute, task, left, weights, trajectories, writers
            ).result():
                row.result()

    def _compute(
        self,
        task: PredictSlice,
        left: list[PredictUnit],
        weights: dict[int, State],
        trajectories: TrajectoryStore,
        writers: ThreadPoolExecutor,
    ) -> Iterable[Future[None]]:
        """Predicts units; what is still being written of them."""
        checkpoints = {unit.checkpoint.epoch: unit.checkpoint for unit in left}
        models = self._empty_scorers(left[0].checkpoint.model, len(checkpoints))
        scorers = dict(zip(checkpoints, models, strict=True))
        for epoch, info in checkpoints.items():
            with _blamed(info):
                scorers[epoch] = self._arithmetic.filled(scorers[epoch], weights.pop(epoch), info)
        reader = self._reader_of(task.scorer, left[0].checkpoint.fold)
        rows: deque[Future[None]] = deque()
        for group, units in groupby(left, key=lambda unit: unit.group):
            own = list(units)
            filled = [scorers[unit.checkpoint.epoch] for unit in own]
            found = self._log_probabilities(filled, group, reader, task)
            for unit, logp_NC in zip(own, found, strict=True):
                with _blamed(unit.checkpoint):
                    require_finite(logp_NC, unit.checkpoint)
                if len(rows) == ROWS_AHEAD:
                    rows.popleft().result()
                row_NC = _rounded(logp_NC, self._config.dtype)
                arguments = unit.group, unit.checkpoint.epoch, unit.unit, row_NC
                rows.append(writers.submit(trajectories.write_row, *arguments))
        return rows

    def _weights(self, task: PredictSlice, checkpoint: CheckpointInfo) -> State:
        store = CheckpointStore(
            self._paths.checkpoints(task.scorer, checkpoint.fold, checkpoint.training)
        )
        with _blamed(checkpoint):
            return store.load(checkpoint)

    def _log_probabilities(
        self, scorers: list[Scorer], group: Group, reader: FeatureReader, task: PredictSlice
    ) -> list[npt.NDArray[np.float32]]:
        """Those of a group under each of some checkpoints."""
        model = task.checkpoint.model
        wanted = min(task.batch_frames, self._most_frames)
        if self._device.type == "cpu":
            wanted = min(wanted, CPU_BATCH_FRAMES)
        found, sufficient = within_memory(
            lambda frames: each_log_probabilities(
                scorers,
                group,
                reader.read,
                model=model,
                batch_frames=frames,
                device=self._device,
            ),
            wanted,
        )
        if sufficient < wanted:
            self._most_frames = sufficient
        return found

    def _empty_scorers(self, model: ModelSpec, count: int) -> list[Scorer]:
        """Models to fill with weights; made once, which also means compiled once."""
        if self._models is None or self._models[0] != model:
            self._models = model, []
        made = self._models[1]
        while len(made) < count:
            made.append(self._arithmetic.empty(model))
        return made[:count]

    def _reader_of(self, scorer: str, fold: int) -> FeatureReader:
        """The reader of a source; that of the last source is kept, with what it holds."""
        source = self._sources[scorer, fold]
        if self._reader is None or self._reader.source is not source:
            # Activations that are decoded for all checkpoints together are not asked for again.
            self._reader = FeatureReader(source, 0) if scorer == CNN else FeatureReader(source)
        return self._reader


def _rounded(logp_NC: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[np.floating[Any]]:
    """Numbers as they are stored; NumPy takes ten times as long as torch for float16."""
    rounded_NC: npt.NDArray[np.floating[Any]] = (
        torch.from_numpy(logp_NC).to(getattr(torch, dtype)).numpy()
    )
    return rounded_NC


@contextmanager
def _blamed(checkpoint: CheckpointInfo) -> Iterator[None]:
    """Notes which checkpoint it is that can't be used."""
    try:
        yield
    except CheckpointError as error:
        raise _UnusableError(checkpoint.epoch, error) from error
