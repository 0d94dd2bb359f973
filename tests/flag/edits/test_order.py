import numpy as np

from csl_dist.flag.edits.labelled import LabelledVideo
from csl_dist.flag.edits.order import order_scores

USUAL, SWAPPED = [0, 1, 2, 3, 4], [0, 2, 1, 3, 4]


def video(name: str, steps: list[int], group: str) -> LabelledVideo:
    return LabelledVideo(id=name, group=group, labels_T=np.repeat(steps, 3), fps=1.0)


def test_frames_of_swapped_steps_have_the_highest_order_score() -> None:
    videos = [video(f"v{k}", USUAL, f"p{k}") for k in range(8)]
    scores = order_scores([*videos, video("odd", SWAPPED, "p8")])
    odd_T = scores["odd"]
    assert odd_T[3:9].min() > odd_T[[0, 1, 2, 9, 10, 11, 12, 13, 14]].max()
    assert odd_T[3:9].min() > max(np.max(scores[v.id]) for v in videos)


def test_what_a_persons_own_videos_say_does_not_count() -> None:
    videos = [video(f"v{k}", USUAL, f"p{k}") for k in range(8)]
    odd = video("odd", SWAPPED, "p8")
    own = order_scores([*videos, odd, video("also odd", SWAPPED, "p8")])["odd"]
    others = order_scores([*videos, odd, video("also odd", SWAPPED, "p9")])["odd"]
    assert own[3:9].min() > others[3:9].max()


def test_frames_without_a_label_have_no_order_score() -> None:
    gap = LabelledVideo(id="gap", group="p9", labels_T=np.array([0, -1, 1, -1]), fps=1.0)
    scores = order_scores([video("v", USUAL, "p0"), gap])
    assert np.isnan(scores["gap"]).tolist() == [False, True, False, True]
