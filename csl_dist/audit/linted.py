"""What the labels of an audit tell by themselves, with no model: `csl lint` of what it read."""

from collections.abc import Iterator

from csl_dist.audit.reader import Audit
from csl_dist.errors import NotReadyError
from csl_dist.lint.run import LintResult, lint
from csl_dist.lint.sequences import LabelSequence, Step
from csl_dist.types import UNLABELLED, frame_seconds, runs_of


def lint_of(audit: Audit) -> LintResult:
    """Findings on the labels that an audit was made under, of the videos that models judged."""
    return lint(_sequences(audit))


def _sequences(audit: Audit) -> Iterator[LabelSequence]:
    for video in audit.held_out_videos():
        try:
            annotation = audit.annotation(video.id)
        except NotReadyError:
            continue
        if annotation.derived_from is not None:
            continue  # made on purpose
        times_T = annotation.times_T
        rate = frame_seconds(times_T)
        labels_T = annotation.labels_T
        yield LabelSequence(
            video=video.id,
            steps=tuple(
                Step(
                    label=audit.classes[int(labels_T[run.start])],
                    start_seconds=float(times_T[run.start]),
                    stop_seconds=float(times_T[run.stop - 1]) + rate,
                )
                for run in runs_of(labels_T)
                if labels_T[run.start] != UNLABELLED
            ),
            file=video.labels,
            seconds=annotation.duration or None,
            group=video.group,
            annotator=video.annotator,
            procedure=video.procedure,
            frame_seconds=rate,
        )
