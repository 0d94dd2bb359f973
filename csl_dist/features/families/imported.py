"""Classes of the user's own, by the import path that a config names."""

import importlib
import sys
from pathlib import Path

from torch import nn

from csl_dist.errors import ConfigError


def imported_class(name: str, *, what: str) -> type[nn.Module]:
    """The torch.nn.Module at `package.module:Class`; `what` is how a sentence begins."""
    module, _, class_name = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # as `python` itself would have it; `csl` does not
    try:
        found = getattr(importlib.import_module(module), class_name)
    except Exception as error:  # importing runs the user's code
        raise ConfigError(
            f"{what} {name!r} can't be imported ({type(error).__name__}: {error}); install "
            "it, or start from the folder that holds it"
        ) from error
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise ConfigError(f"{what} {name!r} is not a subclass of torch.nn.Module")
    return found
