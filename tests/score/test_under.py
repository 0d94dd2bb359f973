"""What a trajectory says under labels, beside loops over single frames."""

from pathlib import Path

import made_run
import numpy as np
import pytest

import csl_dist
from csl_dist.audit.reader import Audit

FRAMES = slice(110, 130)
EPOCHS = (2, 5)
LABELS = np.random.default_rng(0).integers(-1, 3, size=made_run.NUM_FRAMES)


@pytest.fixture(scope="module")
def audit(made_folder: Path) -> Audit:
    return csl_dist.open_audit(str(made_folder / "run"))


def naive(name: str) -> np.ndarray:
    """One number for each chosen checkpoint and frame."""
    logp = made_run.log_probabilities("v2", "transformer").astype(np.float32)
    values = np.full((len(EPOCHS), FRAMES.stop - FRAMES.start), np.nan)
    for row, epoch in enumerate(EPOCHS):
        for column, frame in enumerate(range(FRAMES.start, FRAMES.stop)):
            own, label = logp[epoch - 1, frame], LABELS[frame]
            if name == "prediction":
                values[row, column] = int(np.argmax(own))
            elif label >= 0 and name == "loss":
                values[row, column] = -made_run.CLASS_WEIGHTS[label] * own[label]
            elif label >= 0:
                rival = max(own[c] for c in range(len(own)) if c != label)
                values[row, column] = np.exp(rival) - np.exp(own[label])
    return values


@pytest.mark.parametrize("name", ["loss", "margin", "prediction"])
def test_any_frames_checkpoints_and_labels(audit: Audit, name: str) -> None:
    under = audit.under("v2", frames=FRAMES, checkpoints=EPOCHS, labels=LABELS)
    assert under.epochs == list(EPOCHS)
    assert np.allclose(getattr(under, name)(), naive(name), equal_nan=True, atol=1e-5)


def test_csl_is_the_mean_loss_of_the_chosen_checkpoints(audit: Audit) -> None:
    under = audit.under("v2", frames=FRAMES, checkpoints=EPOCHS, labels=LABELS)
    assert np.allclose(under.csl(), naive("loss").mean(axis=0), equal_nan=True, atol=1e-5)


def test_without_weights_every_class_counts_alike(audit: Audit) -> None:
    plain = audit.under("v2", weighted=False).loss()
    labels_T = made_run.labels_of("v2")
    weighted = audit.under("v2").loss()
    assert np.allclose(plain * made_run.CLASS_WEIGHTS[labels_T], weighted)
