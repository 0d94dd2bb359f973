"""Finds wrong labels in densely annotated video by the loss of held-out checkpoints.

Shape letters, used as name suffixes throughout (`logp_ETC`, `csl_T`):
T frames, D feature width, C classes, E checkpoints, B batch, V videos, N any count.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from csl_dist.audit.reader import Audit, open_audit

__version__ = "0.1.0"
__all__ = ["Audit", "open_audit"]


def __getattr__(name: str) -> Any:
    """Imports the query API when it is first asked for, so that importing the package is quick."""
    if name in __all__:
        from csl_dist.audit import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
