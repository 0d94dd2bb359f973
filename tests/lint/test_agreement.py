"""Agreement of annotators on the same videos."""

import pytest
from made_labels import sequence

from csl_dist.lint.agreement import agreement_of
from csl_dist.lint.corpus import corpus_of
from csl_dist.lint.sequences import LabelSequence, Step


def annotated(annotator: str, *, late: float = 0.0, videos: int = 1) -> list[LabelSequence]:
    """`cut` then `sew`, 20 s together; the second starts `late` seconds later."""
    return [
        sequence(f"v{i}", ["cut", "sew"], [10 + late, 10 - late], annotator=annotator)
        for i in range(videos)
    ]


def test_agreement_of_equal_labels_is_one() -> None:
    [pair] = agreement_of(corpus_of([*annotated("A"), *annotated("B")])).pairs
    assert (pair.agreed, pair.start_median_seconds, pair.unmatched_steps) == (1.0, 0.0, 0)


def test_agreement_is_by_pair_class_and_start() -> None:
    agreement = agreement_of(corpus_of([*annotated("A"), *annotated("B", late=4)]))
    [pair] = agreement.pairs
    assert (pair.first, pair.second, pair.num_videos, pair.seconds) == ("A", "B", 1, 20)
    assert pair.agreed == pytest.approx(16 / 20)
    assert pair.start_median_seconds == pytest.approx(2)
    by_class = {one.label: one for one in agreement.classes}
    assert by_class["cut"].agreed == pytest.approx(10 / 14)
    assert by_class["sew"].agreed == pytest.approx(6 / 10)
    assert by_class["sew"].start_median_seconds == pytest.approx(4)


def test_steps_that_only_one_annotator_has_are_counted() -> None:
    more = sequence("v0", ["cut", "sew", "cut"], annotator="B")
    [pair] = agreement_of(corpus_of([*annotated("A"), more])).pairs
    assert pair.unmatched_steps == 1


def test_annotator_who_starts_later_in_most_videos_is_told_once() -> None:
    agreement = agreement_of(
        corpus_of([*annotated("A", videos=7), *annotated("B", late=4, videos=7)])
    )
    assert [f.sentence for f in agreement.findings] == [
        "Annotator A starts `sew` earlier than another annotator of the same video in 7 of 7 "
        "comparisons, by 4.0 s (median).",
        "Annotator B starts `sew` later than another annotator of the same video in 7 of 7 "
        "comparisons, by 4.0 s (median).",
    ]


def test_of_overlapping_steps_the_later_start_counts() -> None:
    steps = (
        Step(label="cut", start_seconds=0, stop_seconds=20),
        Step(label="sew", start_seconds=10, stop_seconds=20),
    )
    overlapping = LabelSequence(video="v0", steps=steps, file="b", annotator="B")
    [pair] = agreement_of(corpus_of([*annotated("A"), overlapping])).pairs
    assert pair.agreed == 1.0


def test_videos_with_one_file_have_no_agreement() -> None:
    assert agreement_of(corpus_of(annotated("A", videos=3))).pairs == ()
