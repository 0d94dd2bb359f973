"""The paper's figures by dataset, in percent: what `csl reproduce` sets beside ours."""

from dataclasses import dataclass, field

from csl_dist.config import DatasetConfig
from csl_dist.types import ErrorKind

EdaAuc = tuple[float, float]

STRATEGIES = ("last", "full", "every_2nd", "every_5th", "every_10th", "hybrid")
"""Columns of the paper's table of checkpoint sampling, from `last`, its final epoch, on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One dataset's figures; kinds that the paper does not print are absent."""

    dataset: tuple[str, ...] = ()
    """Videos that train, validate and are audited, their minutes, classes; as the paper prints."""
    main: dict[str, EdaAuc] = field(default_factory=dict)
    """EDA and AUC of other methods, which the paper does not tell apart by kind."""
    csl: dict[ErrorKind, EdaAuc] = field(default_factory=dict)
    sampling: dict[ErrorKind, tuple[float, ...]] = field(default_factory=dict)
    """AUC of each of STRATEGIES."""
    architectures: dict[ErrorKind, dict[str, float]] = field(default_factory=dict)
    noise: dict[ErrorKind, dict[int, float]] = field(default_factory=dict)
    """AUC by percent of corrupted training videos."""
    frozen: dict[ErrorKind, float] = field(default_factory=dict)
    """AUC with a frozen encoder; that of `csl` has an adapted one."""


def _egoper(
    dataset: tuple[str, ...],
    others: tuple[EdaAuc, ...],
    csl: EdaAuc,
    sampling: tuple[float, ...],
    frozen: float,
) -> Published:
    kind = ErrorKind.EXECUTION
    return Published(
        dataset=dataset,
        main=dict(zip(METHODS, others, strict=True)),
        csl={kind: csl},
        sampling={kind: sampling},
        frozen={kind: frozen},
    )


METHODS = ("Random", "HF2-VAD", "HF2-VAD + SSPCAB", "S3R", "EgoPED (AF)")

CHOLEC80 = Published(
    dataset=("50", "10", "20", "38.0", "32.3", "7"),
    main=dict(
        zip(
            METHODS,
            ((24.1, 50.0), (48.6, 66.4), (50.3, 68.1), (57.2, 63.5), (66.8, 71.2)),
            strict=True,
        )
    ),
    csl={ErrorKind.MISLABEL: (85.9, 92.0), ErrorKind.DISORDER: (74.5, 78.5)},
    sampling={
        ErrorKind.MISLABEL: (81.8, 92.0, 89.1, 87.0, 85.7, 88.5),
        ErrorKind.DISORDER: (44.6, 78.5, 70.8, 62.4, 52.3, 69.7),
    },
    architectures={
        ErrorKind.MISLABEL: {"cnn": 98.44, "transformer": 91.98},
        ErrorKind.DISORDER: {"cnn": 48.12, "transformer": 78.45},
    },
    noise={
        ErrorKind.MISLABEL: {0: 92.0, 10: 91.2, 20: 90.4},
        ErrorKind.DISORDER: {0: 78.45, 10: 76.9, 20: 75.4},
    },
    frozen={ErrorKind.MISLABEL: 88.7, ErrorKind.DISORDER: 76.6},
)

EGOPER = {
    "quesadilla": _egoper(
        ("48", "-", "32", "1.6", "1.8", "8"),
        ((19.9, 50.0), (34.5, 62.6), (30.4, 60.9), (52.6, 51.8), (62.7, 65.6)),
        (63.1, 68.2),
        (45.8, 68.2, 64.3, 58.7, 47.1, 63.8),
        46.2,
    ),
    "oatmeal": _egoper(
        ("44", "-", "32", "4.2", "4.3", "11"),
        ((11.8, 50.0), (25.4, 62.3), (25.3, 61.9), (47.8, 61.6), (51.4, 65.1)),
        (55.4, 67.1),
        (40.1, 67.1, 62.8, 56.4, 42.9, 62.5),
        41.4,
    ),
    "pinwheels": _egoper(
        ("42", "-", "42", "5.6", "4.2", "13"),
        ((15.7, 50.0), (29.1, 52.7), (33.9, 51.7), (50.5, 52.4), (59.6, 55.0)),
        (50.9, 57.3),
        (45.9, 57.3, 54.1, 51.2, 48.8, 53.7),
        40.9,
    ),
    "coffee": _egoper(
        ("32", "-", "35", "8.4", "9.3", "15"),
        ((8.2, 50.0), (10.0, 59.6), (10.0, 60.1), (16.3, 51.0), (55.3, 58.3)),
        (55.8, 59.6),
        (42.3, 59.6, 55.7, 50.8, 44.0, 54.9),
        36.7,
    ),
    "tea": _egoper(
        ("47", "-", "32", "2.6", "2.5", "10"),
        ((17.0, 50.0), (36.6, 62.1), (35.4, 63.2), (47.8, 57.9), (56.0, 66.0)),
        (59.9, 70.2),
        (49.1, 70.2, 65.8, 60.7, 55.5, 65.6),
        48.1,
    ),
}


def published_for(dataset: DatasetConfig) -> Published:
    """The paper's figures of a dataset; empty where the paper does not have it."""
    if dataset.layout == "cholec80":
        return CHOLEC80
    if dataset.layout == "egoper" and dataset.task in EGOPER:
        return EGOPER[dataset.task]
    return Published()
