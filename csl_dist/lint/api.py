"""Lint of whatever a user has: label files, a config, a run root, or sequences from Python."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from csl_dist.lint import run
from csl_dist.lint.findings import grouped
from csl_dist.lint.reading import LintSettings
from csl_dist.lint.rules.names import unlisted_findings
from csl_dist.lint.run import LintResult
from csl_dist.lint.sequences import LabelSequence
from csl_dist.lint.sources import Options, find_labels


def lint(
    labels: str | Path | Iterable[LabelSequence],
    *,
    options: Options | None = None,
    settings: LintSettings | None = None,
) -> LintResult:
    """What labels alone give away; the same findings as `csl lint`.

    `labels` is a folder or file of labels, a config, a run root, or `LabelSequence` objects. In the
    latter, several sequences of one video with an annotator each are compared with each other.
    """
    settings = settings or LintSettings()
    if not isinstance(labels, str | Path):
        return run.lint(labels, settings)
    found = find_labels(labels, options or Options())
    result = run.lint(found.sequences(), replace(settings, unit=found.unit))
    more = [*found.unreadable, *unlisted_findings(result.segments, found.classes)]
    by_kind = grouped([*result.findings, *more])
    return replace(
        result,
        title=found.title,
        findings=tuple(finding for members in by_kind.values() for finding in members),
        notes=(*found.notes, *result.notes),
    )
