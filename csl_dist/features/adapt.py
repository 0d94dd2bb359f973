"""Adaptation on Ray: fine-tune the encoder's last stages for every fold, then encode with them.

Training reads the sample of frames that extraction has stored. Then every video is decoded once,
for the encoders of all folds together.
"""

from collections.abc import Mapping

from torch import Tensor

from csl_dist.cluster.stage import Stage
from csl_dist.config import CNN
from csl_dist.features.stage import Target, write_features
from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.training.inputs import Inputs
from csl_dist.training.stage import fit_trainings, training_of

STAGES = "model.stages."
"""What the names of the last stages' weights begin with in a checkpoint of `cnn`."""


def adapt(stage: Stage) -> None:
    """Adapts the encoder to every fold, and encodes every video with each of them."""
    inputs = stage.inputs
    base, adapted = inputs.features.base, inputs.features.adapted
    if adapted is None:
        return
    folds = stage.run.dataset.folds
    trainings = [training_of(inputs, CNN, fold) for fold in folds]
    fit_trainings(stage, trainings, title="adapt: epochs")
    stores = {fold.index: adapted(fold.index) for fold in folds}
    if not any(store.missing() for store in stores.values()):
        total = len(inputs.features.to_extract) * len(stores)
        stage.say(f"features: all {total} videos are encoded by the adapted encoder")
        return
    targets = [
        Target(store=store, adapted=_stages(inputs, inputs.checkpoints.adapted_encoder(fold, base)))
        for fold, store in stores.items()
    ]
    write_features(stage, inputs.features.sets[0], targets, title="adapt: chunks")


def _stages(inputs: Inputs, encoder: CheckpointInfo) -> Mapping[str, Tensor]:
    """The weights of the last stages of an adapted encoder."""
    weights = inputs.checkpoints.store(CNN, encoder.fold).load(encoder)
    return {
        name.removeprefix(STAGES): tensor
        for name, tensor in weights.items()
        if name.startswith(STAGES)
    }
