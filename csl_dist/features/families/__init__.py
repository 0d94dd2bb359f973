"""Families of encoders: torchvision's ResNets, timm's models, the user's own, behind one spec."""

from csl_dist.config import EncoderConfig
from csl_dist.errors import ConfigError
from csl_dist.features.families.family import EncoderFamily
from csl_dist.features.families.own import OwnEncoder
from csl_dist.features.families.resnet import RESNETS, Resnet
from csl_dist.features.families.timm_models import TimmModel

TIMM = "timm/"


def family_of(config: EncoderConfig) -> EncoderFamily:
    """What `features.encoder` names."""
    name = config.encoder
    if name in RESNETS:
        return Resnet(config)
    if name.startswith(TIMM):
        return TimmModel(config, name.removeprefix(TIMM))
    if ":" in name:
        return OwnEncoder(config)
    raise ConfigError(
        f"features.encoder is {name!r}, but must be one of {', '.join(RESNETS)}, a model of timm "
        "such as timm/vit_small_patch14_dinov2, or an import path such as package.module:Class"
    )
