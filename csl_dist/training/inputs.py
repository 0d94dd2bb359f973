"""Inputs: what the stages of a run read, each opened and read once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from csl_dist.config import CNN, RunConfig
from csl_dist.data.annotations import Annotations
from csl_dist.data.content import Contents, read_contents
from csl_dist.features.opened import RunFeatures, open_base
from csl_dist.features.source import DerivedFeatures, FeatureSource, timelines
from csl_dist.features.store import FeatureStore
from csl_dist.run import Run, open_run
from csl_dist.training.models import ModelSpec
from csl_dist.training.opened import RunCheckpoints
from csl_dist.training.scorers import model_spec, refuse_unbuildable
from csl_dist.types import Annotation, Split


@dataclass(frozen=True, slots=True)
class Inputs:
    """A run with its features, its labels and its checkpoints."""

    run: Run
    features: RunFeatures
    labels: Annotations
    checkpoints: RunCheckpoints
    contents: Contents

    def model_spec(self, scorer: str) -> ModelSpec:
        """How a scorer of the run is built."""
        return model_spec(
            self.run.config,
            scorer,
            num_features=self.features.base.width(),
            num_classes=len(self.run.dataset.classes),
        )

    def seen_features(self, scorer: str, fold: int, use: Split) -> FeatureSource:
        """What a scorer sees of the videos of one use, derived ones among them."""
        if self._is_sampled(scorer, use):
            return self.features.base
        return DerivedFeatures(self.features.of(scorer, fold), self.labels.derived(use))

    def trained_labels(self, scorer: str, videos: Sequence[str]) -> list[Annotation]:
        """Labels of the frames that a scorer is trained on."""
        annotations = self.labels.of(videos, Split.TRAIN)
        if not self._is_sampled(scorer, Split.TRAIN):
            return annotations
        sample, derived = self.features.sample, self.labels.derived(Split.TRAIN)
        assert sample is not None
        return [sample.annotation(a, derived.get(a.video)) for a in annotations]

    def _is_sampled(self, scorer: str, use: Split) -> bool:
        """Whether a scorer sees the sample of frames alone, by their places in it."""
        return scorer == CNN and use is Split.TRAIN and self.features.sample is not None


def open_inputs(config: RunConfig) -> Inputs:
    """Opens the dataset and stores of a config, and refuses what no stage could work with."""
    run = open_run(config)
    contents = read_contents(run.paths)
    base, sets, sample = open_base(run, contents)
    checkpoints = RunCheckpoints(run)
    adapted = None
    if config.features.adapt is not None and isinstance(base, FeatureStore):
        adapted = partial(checkpoints.adapted_features, base=base)
    features = RunFeatures(
        base=base, config=config.features, sets=sets, adapted=adapted, sample=sample
    )
    labels = Annotations(run.dataset, config, partial(timelines, base))
    inputs = Inputs(run, features, labels, checkpoints, contents)
    for scorer in config.scorers:
        refuse_unbuildable(scorer, inputs.model_spec(scorer))
    return inputs
