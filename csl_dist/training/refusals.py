"""What a run would refuse, found before it starts: scorers, weights, trackers, workers."""

from collections.abc import Callable, Iterator
from functools import partial

from csl_dist.config import CNN, RunConfig
from csl_dist.errors import CslError
from csl_dist.features.encoders import output_width, require_weights
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.scorers import model_spec, refuse_unbuildable
from csl_dist.training.trackers import require_trackers


def refusals(
    config: RunConfig, *, num_classes: int, brought_width: int | None, cores: int | None
) -> list[str]:
    """One sentence each; `brought_width` is that of ready features, None where there are none.

    `cores` are those of this machine, None where the run goes to a cluster.
    """
    return [str(error) for error in _errors(config, num_classes, brought_width, cores)]


def _errors(
    config: RunConfig, num_classes: int, brought_width: int | None, cores: int | None
) -> Iterator[CslError | str]:
    try:
        width = brought_width if brought_width is not None else output_width(config.features)
    except CslError as error:  # there is no such encoder; nothing else can be built
        yield error
        return
    for scorer in config.scorers:
        if scorer != CNN:
            spec = model_spec(config, scorer, num_features=width, num_classes=num_classes)
            yield from _raised(partial(refuse_unbuildable, scorer, spec))
    if brought_width is None:
        yield from _raised(partial(require_weights, config.features))
    elif config.features.adapt is not None:
        yield "features.adapt: ready-made features have no pixels to adapt an encoder to; remove it"
    tensorboard = RunPaths(Storage(config.root)).tensorboard.url
    yield from _raised(partial(require_trackers, config.train.trackers, tensorboard))
    if cores is not None and config.train.workers > cores:
        workers = config.train.workers
        yield f"train.workers is {workers}, but this machine has {cores} cores; lower it"


def _raised(work: Callable[[], None]) -> Iterator[CslError]:
    try:
        work()
    except CslError as error:
        yield error
