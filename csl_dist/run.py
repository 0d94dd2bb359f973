"""Run: a configuration with its dataset and stores; what every stage starts from."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from csl_dist.checkpoints import CheckpointStore
from csl_dist.config import RunConfig, ScorerConfig, config_as_dict, parse_config
from csl_dist.datasets import Dataset, open_dataset
from csl_dist.encoder import encoder_fingerprint
from csl_dist.errors import ConfigError, NotReadyError, StorageError
from csl_dist.extract import SourceVideo, source_videos
from csl_dist.features import FeatureEntry, FeatureStore
from csl_dist.layout import FORMAT_VERSION, RunLayout
from csl_dist.models import ModelSpec, sees_context
from csl_dist.records import Annotation, Split, Video
from csl_dist.scores import ScoreStore
from csl_dist.storage import Storage
from csl_dist.trajectories import TrajectoryStore

SCORED_SPLITS = (Split.AUDIT, Split.VAL)
"""Videos that no training sees: those to audit, and those that set the threshold."""


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration with all that it reads and produces."""

    config: RunConfig
    layout: RunLayout
    dataset: Dataset
    sources: dict[str, SourceVideo] = field(repr=False)
    """By video id."""
    features: FeatureStore

    @property
    def entries(self) -> dict[str, FeatureEntry]:
        return {video: source.entry for video, source in self.sources.items()}

    def checkpoints(self, scorer: str, fold: int = 0) -> CheckpointStore:
        return CheckpointStore(self.layout.checkpoints(scorer, fold))

    def trajectories(self, scorer: str) -> TrajectoryStore:
        return TrajectoryStore(self.layout.scorer(scorer))

    @property
    def scores(self) -> ScoreStore:
        return ScoreStore(self.layout.scores)

    def annotations(self, videos: Sequence[Video]) -> list[Annotation]:
        """Labels at the times of each video's features, which must be extracted."""
        finished = self.features.finished()
        missing = [v.id for v in videos if not self.features.has(self.entries[v.id], finished)]
        if missing:
            raise NotReadyError(
                f"{len(missing)} videos have no features yet ({', '.join(missing[:5])}); "
                "run `csl extract`"
            )
        return [self._annotation(video) for video in videos]

    def _annotation(self, video: Video) -> Annotation:
        times_T = self.features.times(self.entries[video.id])
        labels_T = self.dataset.labels(video, times_T)
        return Annotation(video=video.id, labels_T=labels_T, times_T=times_T)

    def model_spec(self, scorer: str, num_features: int) -> ModelSpec:
        config = self.config.scorers[scorer]
        return ModelSpec(
            name=model_name(scorer, config),
            arguments=config.arguments,
            num_features=num_features,
            num_classes=len(self.dataset.classes),
        )

    def temporal_scorer(self) -> str:
        """The scorer whose scores decide on flags."""
        if self.config.flag.scorer is not None:
            return self.config.flag.scorer
        scorers = self.config.scorers
        temporal = [n for n, c in scorers.items() if sees_context(model_name(n, c))]
        return (temporal or list(scorers))[0]

    def framewise_scorer(self) -> str | None:
        """A scorer that sees single frames only, if the run has one."""
        scorers = self.config.scorers
        blind = [n for n, c in scorers.items() if not sees_context(model_name(n, c))]
        return blind[0] if blind else None


def model_name(scorer: str, config: ScorerConfig) -> str:
    return config.model or scorer


def open_run(config: RunConfig) -> Run:
    """Opens the dataset and stores of a config; writes nothing."""
    dataset = open_dataset(config.dataset)
    layout = RunLayout(Storage(config.root))
    for name, scorer in config.scorers.items():
        sees_context(model_name(name, scorer))  # refuses an unknown model before any work
        if name in {"features.zarr", "scores.zarr", "ray"}:
            raise ConfigError(f"scorers: {name!r} is a name that the run root needs itself")
    sources = {s.video.id: s for s in source_videos(dataset.videos, config)}
    storage = Storage(config.features.store) if config.features.store else layout.features
    encoder = encoder_fingerprint(config.features)
    return Run(config, layout, dataset, sources, FeatureStore(storage, encoder))


def write_run_file(run: Run) -> None:
    """Writes `run.json`: the resolved config and the versions that produced the run."""
    packages = ("csl_dist", "numpy", "ray", "torch", "torchvision", "zarr")
    content = {
        "format_version": FORMAT_VERSION,
        "config": config_as_dict(run.config),
        "classes": list(run.dataset.classes),
        "num_videos": {split: len(run.dataset.in_split(split)) for split in Split},
        "versions": {"python": platform.python_version()} | {p: version(p) for p in packages},
    }
    root = run.layout.root
    if not root.exists(RunLayout.RUN) or root.read_json(RunLayout.RUN) != content:
        root.put_json(RunLayout.RUN, content)


def read_run_config(root: str) -> RunConfig:
    """The config of a run from its root alone."""
    storage = Storage(root)
    try:
        content = storage.read_json(RunLayout.RUN)
    except StorageError as error:
        raise NotReadyError(
            f"{root} is not a run root: it has no {RunLayout.RUN}; give the folder that "
            "`root:` in the config names"
        ) from error
    if content["format_version"] != FORMAT_VERSION:
        raise StorageError(
            f"{root} has format version {content['format_version']}, but this csl_dist reads "
            f"{FORMAT_VERSION}; use the version of csl_dist that wrote it"
        )
    return parse_config(content["config"], where=f"{root}/{RunLayout.RUN}")
