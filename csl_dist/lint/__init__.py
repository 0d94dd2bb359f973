"""What labels alone give away, with no model: order, durations, names and files that look wrong.

`run.lint` goes from label sequences to findings, `sources` from files to label sequences. Nothing
imports torch or Ray, and pandas only where a table is asked for. The package can be called:
`csl_dist.lint("labels/")` is `csl_dist.lint.api.lint`.
"""

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """`import csl_dist.lint.run` binds `csl_dist.lint` to this package, so it must be callable."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from csl_dist.lint.api import lint

        return lint(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
