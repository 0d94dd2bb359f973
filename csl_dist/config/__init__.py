"""The run configuration: one frozen dataclass per section, and `load_config`.

Defaults stand here and nowhere else. Unknown keys and values of the wrong type are refused with the
key, the file and the nearest valid key. Where the paper gives a value, the field says so.
"""

from csl_dist.config.dataset import (
    DATASET_SECTIONS,
    ActivityNetConfig,
    AnnotatedConfig,
    Cholec80Config,
    ColumnsConfig,
    DatasetConfig,
    EgoperConfig,
    LerobotConfig,
    ManifestConfig,
    MstcnConfig,
    SegmentsConfig,
    SplitLists,
)
from csl_dist.config.loading import (
    config_as_dict,
    load_config,
    parse_config,
    set_value,
)
from csl_dist.config.run import (
    RunConfig,
    num_swapped_copies,
    with_absolute_paths,
)
from csl_dist.config.stages import (
    CNN,
    COMMITTEE,
    ENSEMBLE,
    NAMED_WEIGHTS,
    AdaptConfig,
    AuditConfig,
    BesideConfig,
    CheckpointsConfig,
    CorruptConfig,
    EncoderConfig,
    FeaturesConfig,
    FlagConfig,
    PredictConfig,
    ScoreConfig,
    ScorerConfig,
    TrainConfig,
    WhenGrown,
)

__all__ = [
    "CNN",
    "COMMITTEE",
    "DATASET_SECTIONS",
    "ENSEMBLE",
    "NAMED_WEIGHTS",
    "ActivityNetConfig",
    "AdaptConfig",
    "AnnotatedConfig",
    "AuditConfig",
    "BesideConfig",
    "CheckpointsConfig",
    "Cholec80Config",
    "ColumnsConfig",
    "CorruptConfig",
    "DatasetConfig",
    "EgoperConfig",
    "EncoderConfig",
    "FeaturesConfig",
    "FlagConfig",
    "LerobotConfig",
    "ManifestConfig",
    "MstcnConfig",
    "PredictConfig",
    "RunConfig",
    "ScoreConfig",
    "ScorerConfig",
    "SegmentsConfig",
    "SplitLists",
    "TrainConfig",
    "WhenGrown",
    "config_as_dict",
    "load_config",
    "num_swapped_copies",
    "parse_config",
    "set_value",
    "with_absolute_paths",
]
