from dataclasses import replace

import numpy as np

from csl_dist.config import CorruptConfig
from csl_dist.data.planted import planted_videos
from csl_dist.flag.calibration import (
    Calibration,
    FoundSwaps,
    calibration,
    found_swaps,
    judge_from,
)
from csl_dist.flag.rules import KindJudge
from csl_dist.types import Annotation, ErrorKind, Span, Split

CONFIG = CorruptConfig(rate=0.2, lengths=(5, 8))


def annotations(num: int) -> list[Annotation]:
    labels = np.repeat([0, 1, 2], 20)
    return [
        Annotation(video=f"v{i}", labels_T=labels, times_T=np.arange(60) / 10) for i in range(num)
    ]


def test_planted_videos_differ_in_their_spans_alone_and_not_from_run_to_run() -> None:
    videos = planted_videos(annotations(3), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    assert [v.clean.video for v in videos] == ["v0", "v1", "v2"]
    for video in videos:
        changed = np.zeros(60, dtype=bool)
        for span in video.spans:
            changed[span.start : span.stop] = True
        assert np.array_equal(video.clean.labels_T != video.wrong.labels_T, changed)
    again = planted_videos(annotations(3), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    assert [v.spans for v in again] == [v.spans for v in videos]


def test_video_without_a_label_is_left_out_and_many_videos_are_sampled() -> None:
    bare = Annotation(video="bare", labels_T=np.full(9, -1), times_T=np.arange(9.0))
    videos = planted_videos([bare, *annotations(1)], ErrorKind.MISLABEL, CONFIG, num_classes=3)
    assert [v.clean.video for v in videos] == ["v0"]
    many = planted_videos(annotations(100), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    assert 20 <= len(many) <= 60
    more = planted_videos(annotations(101), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    assert {v.clean.video for v in more} - {v.clean.video for v in many} <= {"v100"}


def test_calibration_counts_planted_spans_found_and_flags_that_are_right() -> None:
    videos = planted_videos(annotations(2), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    first, second = videos
    right_frame = int(np.flatnonzero(second.clean.labels_T == second.wrong.labels_T)[0])
    flagged = {"v0": list(first.spans), "v1": [Span(right_frame, right_frame + 1)]}
    found = calibration(videos, flagged, planted_in=Split.VAL, judge=None)
    num_first, num_all = len(first.spans), len(first.spans) + len(second.spans)
    assert found.recall == num_first / num_all
    assert found.precision == num_first / (num_first + 1)
    assert np.isclose(found.hours, 12 / 3600)
    assert np.isclose(found.false_flags_per_hour, 300)
    assert f"{num_all} mislabelled spans planted in 2 validation videos" in found.sentence()


def test_calibration_without_flags_has_no_precision_and_survives_json() -> None:
    videos = planted_videos(annotations(2), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    judge = KindJudge(slope=2.0, offset=-1.0)
    found = calibration(videos, {"v0": [], "v1": []}, planted_in=Split.AUDIT, judge=judge)
    assert (found.recall, found.precision, found.flags) == (0.0, None, 0)
    assert "are flagged, there are no flags there, and right labels" in found.sentence()
    assert Calibration.from_json(found.as_json()) == found
    assert Calibration.from_json({**found.as_json(), "judge": None}).judge is None


def test_judge_learns_from_planted_spans_and_right_segments() -> None:
    videos = planted_videos(annotations(4), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    clean = {v.clean.video: np.full(60, -0.8) for v in videos}
    wrong = {
        v.clean.video: np.where(v.clean.labels_T != v.wrong.labels_T, 0.7, -0.8) for v in videos
    }
    judge = judge_from(videos, clean, wrong)
    assert judge.mislabel_probability(0.7) > 0.8
    assert judge.mislabel_probability(-0.8) < 0.2


def test_swapped_copies_count_as_found_if_a_flag_touches_them() -> None:
    copies = planted_videos(annotations(2), ErrorKind.DISORDER, CONFIG, num_classes=3)
    names = [copy.wrong.video for copy in copies]
    assert names == ["v0~swapped", "v1~swapped"]
    first = copies[0].spans[0]
    found = found_swaps(
        copies,
        {names[0]: [Span(first.stop - 1, first.stop + 1)], names[1]: []},
        {"v0": [], "v1": [Span(0, 60)]},
    )
    assert found == FoundSwaps(planted=2, flagged=0.5, flagged_before=0.5)


def test_copy_of_a_video_whose_frames_were_moved_moves_them_on() -> None:
    [video] = annotations(1)
    moved = replace(video, shown_T=video.times_T[::-1])
    [plain] = planted_videos([video], ErrorKind.DISORDER, CONFIG, num_classes=3)
    [copy] = planted_videos([moved], ErrorKind.DISORDER, CONFIG, num_classes=3)
    assert not plain.wrong.plays_as_is
    assert np.allclose(copy.wrong.source_times_T, 5.9 - plain.wrong.source_times_T)


def test_calibration_of_an_earlier_version_has_no_swaps() -> None:
    videos = planted_videos(annotations(2), ErrorKind.MISLABEL, CONFIG, num_classes=3)
    found = calibration(videos, {"v0": [], "v1": []}, planted_in=Split.VAL, judge=None)
    content = found.as_json()
    del content["swaps"]
    assert Calibration.from_json(content) == found
