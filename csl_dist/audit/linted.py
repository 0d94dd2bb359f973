"""What the labels of an audit tell by themselves, with no model: `csl lint` of what it read."""

from collections.abc import Iterator

from csl_dist.audit.reader import Audit
from csl_dist.lint.run import LintResult, lint
from csl_dist.lint.sequences import LabelSequence


def lint_of(audit: Audit) -> LintResult:
    """Findings on the labels that an audit was made under, of the videos that models judged."""
    return lint(_sequences(audit))


def _sequences(audit: Audit) -> Iterator[LabelSequence]:
    seen = audit.seen
    for video in audit.held_out_videos():
        if video.id not in seen:
            continue
        rate, seconds = seen.length(video.id)
        yield LabelSequence(
            video=video.id,
            steps=seen.steps(video.id, audit.classes),
            file=video.labels,
            seconds=seconds or None,
            group=video.group,
            annotator=video.annotator,
            procedure=video.procedure,
            frame_seconds=rate,
        )
