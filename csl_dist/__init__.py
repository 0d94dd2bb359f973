"""Finds wrong labels in densely annotated video by the loss of held-out checkpoints.

Shape letters, used as name suffixes throughout (`logp_ETC`, `csl_T`):
T frames, D feature width, C classes, E checkpoints, B batch, V videos, N any count.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from csl_dist.audit.reader import Audit, open_audit
    from csl_dist.lint.api import lint
    from csl_dist.report.notebook import view

__version__ = "0.1.0"
__all__ = ["Audit", "lint", "open_audit", "view"]


def __getattr__(name: str) -> Any:
    """Imports the API when it is first asked for, so that importing the package is quick."""
    if name == "lint":
        return import_module("csl_dist.lint")  # a package that can be called
    if name == "view":
        return import_module("csl_dist.report.notebook").view
    if name in __all__:
        return getattr(import_module("csl_dist.audit.reader"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
