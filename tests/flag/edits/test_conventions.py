"""Disagreements that are the same in most videos are told once."""

from dataclasses import replace

import numpy as np

from csl_dist.flag.edits.conventions import conventions_of
from csl_dist.flag.edits.labelled import LabelledVideo, segments_table, videos_of_table
from csl_dist.types import ErrorKind, Fix, Flag, Span

CLASSES = ("cut", "tie", "pull")


def labelled(person: str, number: int) -> LabelledVideo:
    return LabelledVideo(
        id=f"{person}{number}", group=person, labels_T=np.repeat([0, 1, 2], 10), fps=1.0
    )


VIDEOS = [labelled(person, number) for person in "abc" for number in range(4)]


def flag_in(video: str, *, fix: str = "rename 10 20", list_name: str = "steps") -> Flag:
    return Flag(
        video=video,
        span=Span(10, 20),
        start_seconds=10.0,
        stop_seconds=20.0,
        score=0.0,
        kind=ErrorKind.MISLABEL,
        kind_confidence=None,
        label="tie",
        suggested="cut",
        suggested_probability=0.9,
        why="",
        fix=Fix.parse(fix),
        list=list_name,
    )


def test_conventions_habit_of_one_group_is_told_once_with_its_places() -> None:
    flags = [flag_in(f"b{number}") for number in range(4)] + [flag_in("b0")]
    [told], members = conventions_of(flags, VIDEOS, CLASSES)
    assert (told.group, told.places, told.videos, told.of) == ("b", 5, 4, 4)
    assert members == set(range(5))
    assert "in 4 of 4 videos of b (5 places), tie is labelled where models see cut" in (
        told.sentence()
    )


def test_conventions_habit_of_the_dataset_has_no_group() -> None:
    flags = [flag_in(f"{person}{number}") for person in "abc" for number in range(2)]
    [told], members = conventions_of(flags, VIDEOS, CLASSES)
    assert (told.group, told.videos, told.of) == (None, 6, 12)
    assert len(members) == len(flags)


def test_conventions_few_places_or_places_of_many_groups_stay_flags() -> None:
    scattered = [flag_in(video) for video in ("a0", "b1", "c2")]
    assert conventions_of(scattered, VIDEOS, CLASSES) == ([], set())
    twice_in_one_video = [flag_in("a0")] * 4
    assert conventions_of(twice_in_one_video, VIDEOS, CLASSES) == ([], set())


def test_conventions_boundary_later_and_earlier_are_two_patterns() -> None:
    later = [flag_in(f"a{n}", fix="boundary 10 14", list_name="boundaries") for n in range(3)]
    earlier = [flag_in("a3", fix="boundary 20 16", list_name="boundaries")]
    [told], members = conventions_of(later + earlier, VIDEOS, CLASSES)
    assert told.direction == "later"
    assert members == {0, 1, 2}
    assert "models see cut change to tie later than labelled" in told.sentence()


def test_conventions_swaps_in_a_few_videos_are_errors_however_rare_the_order_is() -> None:
    swapped = {f"{person}0" for person in "abc"} | {"a1", "b1"}
    more = [labelled(person, number) for person in "de" for number in range(4)]
    videos = [
        replace(v, labels_T=np.repeat([1, 0, 2], 10)) if v.id in swapped else v
        for v in [*VIDEOS, *more]
    ]
    flags = [flag_in(v, fix="swap 0 10 20", list_name="order") for v in sorted(swapped)]
    assert conventions_of(flags, videos, CLASSES) == ([], set())


def test_segments_table_gives_the_same_labels_back() -> None:
    labels_T = np.repeat([-1, 2, 0, -1], [3, 4, 5, 1])
    video = LabelledVideo(id="007", group="p", labels_T=labels_T, fps=2.5)
    [back] = videos_of_table(segments_table([video]))
    assert (back.id, back.group, back.fps) == ("007", "p", 2.5)
    assert back.labels_T.tolist() == labels_T.tolist()
