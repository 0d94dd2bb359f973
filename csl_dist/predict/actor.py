"""PredictActor: evaluates checkpoints on one GPU, or on its share of CPUs."""

import sys
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import dropwhile

import numpy as np
import numpy.typing as npt
import torch

from csl_dist.config import PredictConfig
from csl_dist.errors import CheckpointError
from csl_dist.features.node_cache import NodeFeatures, node_folder
from csl_dist.features.source import DerivedFeatures, FeatureReader, FeatureSource
from csl_dist.predict.forward import (
    cpu_batch_frames,
    group_log_probabilities,
    load_weights,
    require_finite,
    within_memory,
)
from csl_dist.predict.trajectories import Group, Rows, TrajectoryStore
from csl_dist.predict.units import PredictSlice, PredictUnit
from csl_dist.storage.paths import RunPaths
from csl_dist.training.checkpoints import CheckpointStore
from csl_dist.training.models import ModelSpec, Scorer, build_scorer
from csl_dist.types import DerivedFrames

ROWS_AHEAD = 4
"""Rows that may wait to be written while the next ones are computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """What the driver should know of a slice that an actor has ended."""

    batch_frames: int | None = None
    """Frames of a forward pass, where memory did not suffice for those asked for."""
    bad: str | None = None
    """Why the checkpoint can't be used, where the config says to skip such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Videos of a group whose rows are all there."""

    scorer: str
    group: Group
    rows: dict[str, Rows]
    """What each of them is made of."""


class PredictActor:
    """Takes two slices at once: while one is computed, the other's checkpoint is read."""

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
            place: DerivedFeatures(NodeFeatures(source, folder), derived)
            for place, source in sources.items()
        }
        self._reader: FeatureReader | None = None
        self._model: tuple[ModelSpec, Scorer] | None = None
        self._turn = threading.Lock()
        self._most_frames = sys.maxsize
        """Frames of a forward pass that memory suffices for, as far as is known."""
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self._device.type == "cpu":
            torch.set_num_threads(config.cpus_per_worker)

    def work(self, task: PredictSlice) -> SliceResult:
        """Predicts a checkpoint's units, writing each as it is done."""
        before = self._most_frames
        try:
            self._predict(task)
        except CheckpointError as error:
            if self._config.on_bad_checkpoint == "error":
                raise
            return SliceResult(bad=str(error))
        return SliceResult(batch_frames=self._most_frames if self._most_frames < before else None)

    def publish(self, task: Publication) -> None:
        """Turns the rows of some videos into trajectories."""
        store = TrajectoryStore(self._paths.scorer(task.scorer))
        store.publish(task.group, task.rows)

    def _predict(self, task: PredictSlice) -> None:
        checkpoint = task.checkpoint
        trajectories = TrajectoryStore(self._paths.scorer(task.scorer))
        weights = CheckpointStore(
            self._paths.checkpoints(task.scorer, checkpoint.fold, checkpoint.training)
        ).load(checkpoint)
        # Of a slice whose actor was lost, the first units may be done.
        units = dropwhile(lambda unit: trajectories.has_row(unit.unit), task.units)
        rows: deque[Future[None]] = deque()
        with ThreadPoolExecutor(ROWS_AHEAD) as writers:
            with self._turn:
                scorer = self._scorer(checkpoint.model)
                load_weights(scorer, weights, checkpoint)
                reader = self._reader_of(task.scorer, checkpoint.fold)
                for unit in units:
                    logp_NC = self._log_probabilities(scorer, unit, reader, task.batch_frames)
                    require_finite(logp_NC, checkpoint)
                    if len(rows) == ROWS_AHEAD:
                        rows.popleft().result()
                    arguments = unit.group, checkpoint.epoch, unit.unit, logp_NC
                    rows.append(writers.submit(trajectories.write_row, *arguments))
            for row in rows:
                row.result()

    def _log_probabilities(
        self, scorer: Scorer, unit: PredictUnit, reader: FeatureReader, batch_frames: int
    ) -> npt.NDArray[np.float32]:
        model = unit.checkpoint.model
        wanted = min(batch_frames, self._most_frames)
        if self._device.type == "cpu":
            wanted = min(wanted, cpu_batch_frames(model))
        logp_NC, sufficient = within_memory(
            lambda frames: group_log_probabilities(
                scorer,
                unit.group,
                reader.read,
                model=model,
                batch_frames=frames,
                device=self._device,
            ),
            wanted,
        )
        if sufficient < wanted:
            self._most_frames = sufficient
        return logp_NC

    def _scorer(self, model: ModelSpec) -> Scorer:
        """The model to fill with weights; made once, which also means compiled once."""
        if self._model is None or self._model[0] != model:
            scorer = build_scorer(model).eval().to(self._device)
            if self._config.compile:
                scorer.compile(dynamic=True)
            self._model = model, scorer
        return self._model[1]

    def _reader_of(self, scorer: str, fold: int) -> FeatureReader:
        """The reader of a source; that of the last source is kept, with what it holds."""
        source = self._sources[scorer, fold]
        if self._reader is None or self._reader.source is not source:
            self._reader = FeatureReader(source)
        return self._reader
