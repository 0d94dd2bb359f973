"""Each kind of finding on a tiny dataset, with its sentence."""

from dataclasses import replace

import numpy as np
import pytest
from made_labels import USUAL, sequence, usual_videos

from csl_dist.lint.findings import Finding, Kind, TimeUnit, grouped, length_text, time_text
from csl_dist.lint.reading import LintSettings
from csl_dist.lint.run import lint
from csl_dist.lint.sequences import LabelSequence, Step


def found(sequences: list[LabelSequence], kind: Kind) -> list[Finding]:
    return [finding for finding in lint(sequences).findings if finding.kind is kind]


def only(sequences: list[LabelSequence], kind: Kind) -> Finding:
    [finding] = found(sequences, kind)
    return finding


def test_lint_of_clean_videos_finds_nothing() -> None:
    assert lint(usual_videos(30)).findings == ()


def test_order_turned_round_is_told_with_counts() -> None:
    odd = sequence("odd", ["prepare", "clean", "cut", "close"], [10, 11, 12, 13])
    finding = only([*usual_videos(120), odd], Kind.ORDER)
    assert (finding.video, finding.start_seconds) == ("odd", 10)
    assert finding.sentence == (
        "`clean` comes after `cut` in 120 of 120 other videos, here before it."
    )
    assert finding.probability is not None
    assert finding.probability > 0.5


def test_step_that_all_others_contradict_is_told_even_where_many_videos_are_odd() -> None:
    steps = [f"step {i}" for i in range(8)]
    odd = [
        sequence(f"odd{k}", [steps[k], *steps[:k], *steps[k + 1 :]], [10 + k / 9] * 8)
        for k in range(2, 8)
    ]
    told = found([*usual_videos(24, steps), *odd], Kind.ORDER)
    assert {(f.video, f.label) for f in told} == {(f"odd{k}", f"step {k}") for k in range(2, 8)}


def test_swap_in_a_repeating_procedure_is_told_with_transitions() -> None:
    cycle = ["reach", "grasp", "pull"] * 4
    odd = [*cycle[:4], "pull", "grasp", *cycle[6:]]
    finding = only([*usual_videos(120, cycle), sequence("odd", odd)], Kind.ORDER)
    assert (finding.start_seconds, finding.stop_seconds) == (40, 60)
    assert finding.sentence == (
        "`grasp` directly follows `pull` here, in other videos 0 of 480 times. The other way "
        "round, `pull` directly after `grasp`, was seen 480 times."
    )


def test_missing_step_is_told_with_its_place() -> None:
    odd = sequence("odd", ["prepare", "cut", "close"], [10, 11, 12])
    finding = only([*usual_videos(120), odd], Kind.MISSING)
    assert (finding.start_seconds, finding.stop_seconds) == (21, 21)
    assert finding.label == "clean"
    assert finding.sentence == (
        "`clean` is in 120 of 120 other videos, not here; it would be expected between `cut` and "
        "`close`."
    )


def test_step_that_always_follows_another_is_missed_where_it_comes_elsewhere() -> None:
    usual = ["open", "check", "cut", "open", "check", "sew"]
    odd = sequence("odd", ["open", "check", "cut", "open", "sew"])
    finding = only([*usual_videos(120, usual), odd], Kind.MISSING)
    assert (finding.label, finding.start_seconds) == ("check", 40)
    assert finding.sentence == (
        "`check` directly follows `open` 240 of 240 times in other videos, here `sew` does."
    )


def test_missing_last_step_is_placed_after_the_last() -> None:
    odd = sequence("odd", ["prepare", "cut", "clean"], [10, 11, 12])
    finding = only([*usual_videos(120), odd], Kind.MISSING)
    assert (finding.start_seconds, finding.stop_seconds) == (33, 33)
    assert finding.sentence.endswith("it would be expected after `clean`.")


def test_repeated_step_is_told_as_the_second_time() -> None:
    odd = sequence("odd", ["prepare", "cut", "clean", "prepare", "close"])
    finding = only([*usual_videos(120), odd], Kind.REPEATED)
    assert finding.start_seconds == 30
    assert finding.sentence == (
        "`prepare` comes for the 2nd time between `clean` and `close`. In other videos `close` "
        "directly follows `clean` 120 of 120 times, `prepare` follows `clean` 0 of 120 times."
    )


def test_inserted_step_is_told_between_its_neighbours() -> None:
    odd = sequence("odd", ["prepare", "cut", "rinse", "clean", "close"])
    finding = only([*usual_videos(120), odd], Kind.INSERTED)
    assert finding.sentence == (
        "`rinse` comes between `cut` and `clean`. In other videos `clean` directly follows `cut` "
        "120 of 120 times, `rinse` follows `cut` 0 of 120 times."
    )


def test_odd_duration_is_told_with_the_range_of_others() -> None:
    odd = sequence("odd", USUAL, [10, 0.5, 10, 10])
    finding = only([*usual_videos(20), odd], Kind.DURATION)
    assert finding.sentence == "`cut` lasts 0.50 s here, 10 s to 12 s in 20 other places."


def test_flicker_is_told_in_frames() -> None:
    labels = ["prepare", "cut", "clean", "cut", "clean", "close"]
    odd = sequence("odd", labels, [10, 5, 0.08, 5, 10, 10], frame_seconds=0.04)
    finding = only([*usual_videos(20), odd], Kind.FLICKER)
    assert finding.sentence == (
        "`clean` lasts 2 frames (0.08 s) inside of `cut`; it usually lasts 11 s."
    )


def test_gap_in_a_dataset_without_gaps_is_told() -> None:
    odd = sequence("odd", USUAL)
    steps = (*odd.steps[:2], *(moved(step, 4) for step in odd.steps[2:]))
    finding = only([*usual_videos(20), replace(odd, steps=steps)], Kind.GAP)
    assert (finding.start_seconds, finding.stop_seconds) == (20, 24)
    assert finding.sentence == (
        "4.0 s without a label before `clean`; 62 of 63 steps follow the one before directly."
    )


def test_gaps_everywhere_are_the_style_of_a_dataset() -> None:
    videos = [
        replace(v, steps=tuple(moved(s, 3 * i) for i, s in enumerate(v.steps)))
        for v in usual_videos(10)
    ]
    assert found(videos, Kind.GAP) == []


def test_overlap_is_told_where_rare_and_once_where_common() -> None:
    odd = sequence("odd", USUAL)
    steps = (odd.steps[0], moved(odd.steps[1], -2), *odd.steps[2:])
    finding = only([*usual_videos(20), replace(odd, steps=steps, video="x")], Kind.OVERLAP)
    assert finding.sentence == (
        "`cut` starts 2.0 s before an earlier step ends; 62 of 63 steps do not."
    )
    common = [
        replace(v, steps=tuple(moved(s, -2 * i) for i, s in enumerate(v.steps)))
        for v in usual_videos(10)
    ]
    assert only(common, Kind.OVERLAP).sentence == (
        "30 of 30 steps start before the step before them ends; steps of this dataset overlap, so "
        "single places are not told."
    )


def test_overlap_of_less_than_half_a_frame_is_rounding() -> None:
    videos = [
        replace(v, steps=tuple(replace(s, stop_seconds=s.stop_seconds + 0.02) for s in v.steps))
        for v in usual_videos(10, frame_seconds=0.5)
    ]
    assert found(videos, Kind.OVERLAP) == []


def test_steps_beyond_the_end_are_told_once_a_video() -> None:
    odd = sequence("odd", USUAL, seconds=None)
    finding = only([*usual_videos(5), replace(odd, seconds=25.0)], Kind.BEYOND_END)
    assert finding.sentence == (
        "2 steps lie outside of the video: the labels end at 40 s, the video at 25 s."
    )


def test_odd_duration_at_a_place_where_the_step_never_is_is_told() -> None:
    stopped = sequence("odd", ["prepare", "cut", "clean"], [10, 11, 300])  # `clean` is never last
    finding = only([*usual_videos(30), stopped], Kind.DURATION)
    assert (finding.video, finding.start_seconds) == ("odd", 21)
    assert finding.sentence == "`clean` lasts 5 min here, 10 s to 13 s in 30 other places."


def test_step_without_duration_is_told() -> None:
    odd = sequence("odd", USUAL, [10, 0, 10, 10])
    finding = only([*usual_videos(5), odd], Kind.EMPTY)
    assert finding.sentence == (
        "`cut` starts at 10 s and ends at 10 s; a step must end after its start."
    )


def test_unlabelled_share_far_above_others_is_told() -> None:
    videos = [replace(v, seconds=v.steps[-1].stop_seconds) for v in usual_videos(9)]
    odd = replace(sequence("odd", USUAL), seconds=100.0)
    finding = only([*videos, odd], Kind.UNLABELLED)
    assert finding.sentence == (
        "60% of the video has no label; half of the 10 videos have 0% or less."
    )


@pytest.mark.parametrize(
    ("name", "difference"),
    [("Clean ", "case, blanks or signs"), ("cleen", "one letter"), ("cleans", "one letter")],
)
def test_class_names_that_look_the_same_are_told(name: str, difference: str) -> None:
    odd = sequence("odd", ["prepare", "cut", name, "close"])
    finding = only([*usual_videos(20), odd], Kind.CLASS_NAMES)
    assert finding.sentence == (
        f"`{name}` (1 step) and `clean` (20 steps) differ by {difference} only; they may be one "
        "class."
    )


def test_numbered_classes_do_not_look_the_same() -> None:
    videos = [*usual_videos(20, ["step 11", "step 12"]), sequence("odd", ["step 11", "step 13"])]
    assert found(videos, Kind.CLASS_NAMES) == []


def varied_videos(number: int, *, group: str | None = None) -> list[LabelSequence]:
    """Performances of six steps, each step of its own length."""
    rng = np.random.default_rng(0)
    steps = ["reach", "grasp", "push", "pull", "turn", "drop"]
    return [
        replace(
            sequence(f"v{k}", steps, (rng.integers(60, 600, 6) / 30).tolist()),
            group=group or f"P{k}",
            frame_seconds=1 / 30,
        )
        for k in range(number)
    ]


def partly_copied(video: LabelSequence, source: LabelSequence, first: int) -> LabelSequence:
    """A video whose steps from `first` on are another one's, a frame later or none."""
    copied = [
        replace(s, start_seconds=s.start_seconds + k % 2 / 30, stop_seconds=s.stop_seconds + 1 / 30)
        for k, s in enumerate(source.steps[first:])
    ]
    return replace(video, steps=(*video.steps[:first], *copied))


def test_steps_at_the_times_of_another_video_are_told_with_both() -> None:
    videos = varied_videos(30)
    videos[7] = partly_copied(videos[7], videos[3], 2)
    finding = only(videos, Kind.DUPLICATE)
    assert finding.video == "v3"
    assert finding.start_seconds == videos[3].steps[2].start_seconds
    assert finding.sentence == (
        "4 steps in a row begin and end when they do in v7.txt, at most 0.03 s apart; one may be "
        "a copy of the other."
    )


def test_videos_of_one_person_or_with_steps_of_one_length_are_no_copies() -> None:
    videos = varied_videos(30, group="P1")
    videos[7] = partly_copied(videos[7], videos[3], 2)
    other = [replace(v, group="P2", video=f"w{v.video}") for v in varied_videos(40)[30:]]
    assert found([*videos, *other], Kind.DUPLICATE) == []
    even = [replace(v, group=f"P{k}") for k, v in enumerate(usual_videos(30, ["a", "b", "c", "d"]))]
    assert found(even, Kind.DUPLICATE) == []


def test_many_files_that_share_steps_are_told_once() -> None:
    videos = varied_videos(30)
    for k in range(4, 8):
        videos[k] = partly_copied(videos[k], videos[3], 1)
    finding = only(videos, Kind.DUPLICATE)
    assert finding.video is None
    assert "10 pairs of files share steps" in finding.sentence


def test_thousands_of_episodes_that_keep_time_are_a_habit_and_take_no_time() -> None:
    steps = ["reach", "grasp", "lift", "place", "open"]
    episodes = [
        sequence(f"e{k}", steps, [1.0, 2.0, 1.5, 2.5, k / 1000], group=f"robot{k % 3}")
        for k in range(1, 3001)
    ]
    assert found(episodes, Kind.DUPLICATE) == []


def test_clips_cut_to_one_length_are_no_copies() -> None:
    rng = np.random.default_rng(0)
    ends = [np.sort(rng.uniform(0, 60, 2)).tolist() for _ in range(200)]
    clips = [
        sequence(f"v{k}", ["a", "b", "c"], np.diff([0, *end, 60]).tolist(), group=f"P{k}")
        for k, end in enumerate(ends)
    ]
    assert found(clips, Kind.DUPLICATE) == []


def test_same_labels_of_two_groups_are_told_and_of_one_group_once() -> None:
    twin = replace(sequence("b", USUAL), group="B")
    finding = only([replace(twin, video="a", file="labels/a.txt", group="A"), twin], Kind.DUPLICATE)
    assert finding.sentence == ("2 files have the same 4 steps at the same times: a.txt, b.txt.")
    cameras = [replace(twin, video=f"camera{i}") for i in range(3)]
    assert only(cameras, Kind.DUPLICATE).sentence == (
        "3 files have only 1 different set of labels; the same are, for example, camera0 and "
        "camera1. Several cameras of one performance look like this."
    )


def test_labels_that_fit_another_video_are_told_for_both() -> None:
    videos = [replace(v, seconds=v.steps[-1].stop_seconds) for v in usual_videos(12)]
    lengths = videos[3].seconds, videos[7].seconds
    videos[3] = replace(videos[3], seconds=lengths[1])
    videos[7] = replace(videos[7], seconds=lengths[0])
    findings = found(videos, Kind.MIXED_UP)
    assert [f.video for f in findings] == ["v03", "v07"]
    assert findings[0].sentence == (
        "The labels end at 41.3 s, the video at 42.9 s; they fit v07, whose own labels do not fit "
        "it. 10 of 12 label files end with their video."
    )


def test_class_of_one_annotator_alone_is_told() -> None:
    videos = [replace(v, annotator="ABC"[i % 3]) for i, v in enumerate(usual_videos(12))]
    videos = [
        replace(v, steps=(*v.steps, Step(label="rest", start_seconds=60, stop_seconds=70)))
        if v.annotator == "C"
        else v
        for v in videos
    ]
    assert only(videos, Kind.SOLE_USER).sentence == (
        "Only annotator C uses `rest`: in 4 of 4 videos, in none of 8 videos by 2 others."
    )


def test_habit_of_a_whole_group_is_told_once_as_definition() -> None:
    usual = [replace(v, group=f"g{i % 8}") for i, v in enumerate(usual_videos(120))]
    habit = [
        sequence(f"h{i}", ["prepare", "clean", "cut", "close"], [9 + i, 9, 9, 9], group="H")
        for i in range(4)
    ]
    result = lint([*usual, *habit])
    [finding] = [f for f in result.findings if f.kind is Kind.DEFINITION]
    assert not [f for f in result.findings if f.kind is Kind.ORDER]
    assert finding.sentence.startswith(
        "Group H differs from the others at `clean` in 4 of 4 videos (steps out of order). For "
        "example in h0: `clean` comes after `cut` in 120 of 120 other videos"
    )


def test_transition_that_one_annotator_draws_later_is_told_once() -> None:
    videos = [replace(v, annotator="ABCD"[i % 4]) for i, v in enumerate(usual_videos(24))]
    late = [sequence(f"late{i}", USUAL, [10, 16 + i / 10, 4, 10], annotator="E") for i in range(5)]
    told = [f.sentence for f in found([*videos, *late], Kind.DEFINITION)]
    assert (
        "Annotator E ends `cut` and starts `clean` later than the others: the first takes 80% to "
        "80% of the two in 5 places, 50% to 50% in 24 places of the others."
    ) in told


def test_findings_of_two_cameras_of_a_performance_are_told_once() -> None:
    odd = sequence("odd1", ["prepare", "clean", "cut", "close"], group="P")
    usual = [replace(v, group=f"g{i}") for i, v in enumerate(usual_videos(120))]
    assert len(found([*usual, odd, replace(odd, video="odd2")], Kind.ORDER)) == 1


def test_rows_are_grouped_by_kind_with_the_worst_first() -> None:
    findings = [
        Finding(kind=Kind.GAP, video="a", score=1, sentence="x"),
        Finding(kind=Kind.ORDER, video="b", score=1, probability=0.6, sentence="x"),
        Finding(kind=Kind.ORDER, video="c", score=1, probability=0.9, sentence="x"),
    ]
    assert [f.video for members in grouped(findings).values() for f in members] == ["c", "b", "a"]
    assert list(grouped(findings)) == [Kind.ORDER, Kind.GAP]


def test_times_are_written_as_people_say_them() -> None:
    assert time_text(65, TimeUnit.SECONDS) == "1:05"
    assert time_text(1065, TimeUnit.ENTRIES) == "1,065"
    assert [length_text(s) for s in (0.12, 2.14, 48.2, 780)] == [
        "0.12 s",
        "2.1 s",
        "48 s",
        "13 min",
    ]


def moved(step: Step, seconds: float) -> Step:
    return replace(
        step,
        start_seconds=step.start_seconds + seconds,
        stop_seconds=step.stop_seconds + seconds,
    )


def with_background(labels: tuple[str, ...]) -> list[str]:
    return [name for label in labels for name in ("idle", label)] + ["idle"]


def test_background_is_left_out_of_order_and_told() -> None:
    steps = ("prepare", "wash", "cut", "clean", "sew", "close")
    turned = ("prepare", "wash", "clean", "cut", "sew", "close")
    videos = [*usual_videos(120, with_background(steps)), sequence("odd", with_background(turned))]
    result = lint(videos)
    [finding] = [f for f in result.findings if f.kind is Kind.ORDER]
    assert (finding.video, finding.label) == ("odd", "clean")
    assert finding.sentence == (
        "`clean` comes after `cut` in 120 of 120 other videos, here before it."
    )
    assert result.notes == (
        "`idle` (847 of 1,573 segments) comes between most steps and is taken as background: the "
        "order of steps leaves it out.",
    )
    background = [row for row in result.segments.rows() if row["label"] == "idle"]
    assert all(row["order"] != row["order"] for row in background)


def test_several_annotators_count_as_one_video_and_the_odd_file_is_named() -> None:
    files = [
        replace(v, annotator=who, file=f"{v.video}-{who}.txt")
        for v in usual_videos(40)
        for who in "ABC"
    ]
    odd = sequence("v07", ["prepare", "clean", "cut", "close"], annotator="B")
    files[22] = replace(odd, file="v07-B.txt")
    result = lint(files)
    [finding] = [f for f in result.findings if f.kind is Kind.ORDER]
    assert (finding.video, finding.annotator, finding.file) == ("v07", "B", "v07-B.txt")
    assert "in 39 of 39 other videos" in finding.sentence
    assert (result.num_videos, result.num_files) == (40, 120)


def test_times_in_entries_are_told_as_such() -> None:
    videos = [*usual_videos(20), sequence("odd", USUAL, [10, 11, 12, 90])]
    result = lint(videos, LintSettings(unit=TimeUnit.ENTRIES))
    [finding] = [f for f in result.findings if f.kind is Kind.DURATION]
    assert "lasts 90 entries here, 10 entries to 12 entries in 20 other places" in finding.sentence
    assert result.hours == 0
