import re

import numpy as np

from csl_dist.records import Span
from csl_dist.report.drawing import (
    CLASS_COLOURS,
    label_ribbon,
    loss_heatmap,
    score_curve,
    span_bar,
)


def test_ribbon_has_one_segment_per_run_with_its_name() -> None:
    svg = label_ribbon(np.array([0, 0, 1, -1, -1]), ("a", "b"))
    assert re.findall(r"<title>(.*?)</title>", svg) == [
        "a: frames 0 to 1",
        "b: frames 2 to 2",
        "unlabelled: frames 3 to 4",
    ]
    widths = [float(w) for w in re.findall(r'width="([\d.]+)"', svg)]
    assert widths == [400, 200, 400]


def test_names_are_text_not_markup() -> None:
    assert "<title>&lt;b&gt;&amp;" in label_ribbon(np.array([0]), ("<b>&",))


def test_curve_breaks_where_frames_have_no_label() -> None:
    score = np.array([1.0, 2.0, np.nan, 3.0])
    svg = score_curve(score, 1.5, [Span(1, 2)])
    assert svg.count("<polyline") == 2
    assert "nan" not in svg
    assert "threshold 1.50" in svg


def test_span_bar_fills_the_spans() -> None:
    svg = span_bar([Span(0, 5)], 10, "#D55E00")
    assert 'width="500.00"' in svg


def test_heatmap_is_a_picture_even_of_a_long_video() -> None:
    assert loss_heatmap(np.random.default_rng(0).random((3, 5000))).startswith("data:image/png")


def test_class_colours_are_distinct() -> None:
    assert len(set(CLASS_COLOURS)) == len(CLASS_COLOURS)
