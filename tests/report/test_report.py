"""The report's pictures, and the page of a finished run."""

import base64
import io
import re
from pathlib import Path

import builder
import numpy as np
import pytest
from PIL import Image

import csl_dist
from csl_dist.audit.reader import Audit
from csl_dist.audit.relabel import relabel
from csl_dist.audit.revision import AuditStore
from csl_dist.report import contents, current_report, write_report
from csl_dist.report.drawing import (
    CLASS_COLOURS,
    highest_shown,
    label_ribbon,
    line_chart,
    loss_heatmap,
    palette,
    score_curve,
    span_bar,
)
from csl_dist.report.exhibits import Exhibits
from csl_dist.report.figures import bars, maps, overview, write_figures
from csl_dist.report.page import render
from csl_dist.report.shrink import column_starts, highest_in_columns, shrunk_losses
from csl_dist.report.thumbnails import span_pictures
from csl_dist.review.store import store_of
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.record import current_training
from csl_dist.types import Span


@pytest.fixture(scope="module")
def audit(made_folder: Path) -> Audit:
    return csl_dist.open_audit(str(made_folder / "run"))


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
    score = np.array([-1.0, 2.0, np.nan, 3.0])
    svg = score_curve(score, [Span(1, 2)], num_frames=4, tau=1.5)
    assert svg.count("<polyline") == 2
    assert "nan" not in svg
    assert "threshold 1.50" in svg
    assert "from -1.00 to 3.00" in svg


def test_curve_without_any_score_is_empty() -> None:
    svg = score_curve(np.full(3, np.nan), [], num_frames=3)
    assert "<polyline" not in svg


def test_span_bar_fills_the_spans() -> None:
    svg = span_bar({Span(0, 5): "why"}, 10, "#D55E00", name="flagged")
    assert 'width="500.00"' in svg
    assert "frames 0 to 4: why" in svg


def test_heatmap_holds_the_losses_as_levels_of_its_palette() -> None:
    losses = np.random.default_rng(0).random((3, 50))
    data = base64.b64decode(loss_heatmap(losses).split(",")[1])
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).reshape(-1, 3)
    colours = {colour: level for level, colour in enumerate(palette())}
    assert len(colours) == 256
    levels = np.array([colours[tuple(map(int, pixel))] for pixel in pixels]).reshape(3, 50)
    high = highest_shown(losses)
    assert levels / 255 * high == pytest.approx(np.minimum(losses, high), abs=high / 500)


def test_heatmap_of_unlabelled_frames_is_a_picture() -> None:
    assert loss_heatmap(np.full((2, 4), np.nan)).startswith("data:image/png")


def test_chart_of_nothing_is_a_picture() -> None:
    assert line_chart({}, name="empty").startswith("<svg")


def test_class_colours_are_distinct() -> None:
    assert len(set(CLASS_COLOURS)) == len(CLASS_COLOURS)


@pytest.mark.parametrize("num_frames", [1, 7, 1000, 1001, 34567])
def test_columns_cover_every_frame_once(num_frames: int) -> None:
    starts = column_starts(num_frames)
    assert len(starts) == min(num_frames, 1000)
    assert starts[0] == 0
    assert (np.diff(starts) >= 1).all()


def test_peaks_survive_shrinking() -> None:
    score = np.zeros(5000)
    score[3333] = 7.0
    score[:100] = np.nan
    highest = highest_in_columns(score)
    assert np.nanmax(highest) == 7.0
    assert np.isnan(highest[:20]).all()


def test_losses_are_shrunk_block_by_block(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of three frames, read in blocks that do not end where columns do."""
    monkeypatch.setattr("csl_dist.report.shrink.BLOCK_FRAMES", 70)
    shrunk = shrunk_losses(audit, "v2", max_columns=audit.annotation("v2").num_frames // 3)
    losses = audit.trajectory("v2")
    expected = losses.reshape(len(losses), -1, 3).mean(axis=2)
    assert shrunk.columns_EW == pytest.approx(expected, rel=1e-6)
    assert shrunk.mean_E == pytest.approx(losses.mean(axis=1), rel=1e-6)


def test_confusion_counts_flagged_frames(audit: Audit) -> None:
    flags = audit.flags()
    names, frames = contents.confusion(flags, audit.classes)
    assert names == ["b", "c"]
    assert frames == [[0, 0], [int(flags.stop[0] - flags.start[0]), 0]]


def test_losses_over_checkpoints_are_of_training_and_of_held_out_videos(audit: Audit) -> None:
    lines = contents.checkpoint_losses(audit)
    assert list(lines) == ["training videos", "1 validation videos", "2 audited videos"]
    assert lines["training videos"].tolist() == [1 / epoch for epoch in range(1, 7)]
    assert lines["1 validation videos"] == pytest.approx(audit.trajectory("v1").mean(axis=1))
    every = [audit.trajectory(video).mean(axis=1) for video in ("v2", "v3")]
    assert lines["2 audited videos"] == pytest.approx(np.mean(every, axis=0))


def test_losses_are_those_that_checkpoints_tell_whatever_the_log_for_people_says(
    audit: Audit,
) -> None:
    folder = audit.paths.checkpoints(
        audit.scorer, 0, current_training(audit.paths, audit.scorer, 0)
    )
    written = folder.read("metrics.jsonl") if folder.exists("metrics.jsonl") else None
    folder.put("metrics.jsonl", b'{"epoch": 1, "train_lo')
    try:
        lines = contents.checkpoint_losses(audit)
    finally:
        folder.delete("metrics.jsonl")
        if written is not None:
            folder.put("metrics.jsonl", written)
    assert lines["training videos"].tolist() == [1 / epoch for epoch in range(1, 7)]


def test_pictures_show_the_frames_of_the_span(audit: Audit) -> None:
    """The brightness of the source tells the frame: 0 to 255 over 600 frames at 20 fps."""
    [uris] = span_pictures(audit, "v2", [Span(120, 160)]).values()
    for uri, frame in zip(uris, (120, 139, 159), strict=True):
        picture = Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))
        assert np.asarray(picture).mean() == pytest.approx(2 * frame * 255 / 600, abs=6)


def test_page_names_every_video_and_loads_nothing(audit: Audit) -> None:
    page = render(audit, most=1)
    assert page.count('<details class="video"') == 1
    assert "v3" in page, "in the index"
    assert "worst frame</button>" in page
    assert "on another scale" in page
    assert "http://" not in page
    assert "https://" not in page
    assert 'src="data:' in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_page_of_a_run_without_video_files_or_flags(
    made_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)
    audit = csl_dist.open_audit(made_root)
    page = render(audit)
    assert "data:image/jpeg" not in page


def test_report_of_an_earlier_audit_goes_beside_its_flags(made_root: str, tmp_path: Path) -> None:
    import made_run

    fixed = tmp_path / "v2.txt"
    fixed.write_text(made_run.label_text(made_run.TRUE_LABELS))
    first = write_report(csl_dist.open_audit(made_root))
    assert first == f"{made_root}/report.html"
    made = relabel(made_root, fixed)
    second = write_report(made.after)
    assert second == f"{made_root}/report.html", "the report in the root is of the newest audit"
    first = write_report(csl_dist.open_audit(made_root, revision=1))
    assert first == f"{made_root}/audits/0001/report.html"
    page = Path(second).read_text()
    assert "What was corrected" in page
    assert "No span is above the threshold" in page
    assert "What was corrected" not in Path(first).read_text()


def test_figures_are_written_as_png_and_pdf(audit: Audit, tmp_path: Path) -> None:
    assert write_figures(audit, tmp_path / "figures") == "5 figures"
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    stems = ("overview-v2", "bars", "trajectories", "maps", "losses")
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("png", "pdf")}
    with Image.open(tmp_path / "figures/overview-v2.png") as picture:
        assert picture.width > 1000


def test_figures_of_unlabelled_frames_leave_them_empty(made_root: str, tmp_path: Path) -> None:
    import made_run

    names = [made_run.CLASSES[label] for label in made_run.labels_of("v2")]
    partly = tmp_path / "v2.txt"
    partly.write_text(builder.label_text(["-"] * 40 + names[40:]))
    audit = relabel(made_root, partly).after
    axes = overview(Exhibits(audit), "v2").axes
    [labels] = [one for one in axes if one.get_ylabel() == "labels"]
    assert min(patch.get_x() for patch in labels.patches) == 40


def test_exhibits_are_the_papers_score_with_its_threshold_and_the_known_errors(
    audit: Audit,
) -> None:
    exhibits = Exhibits(audit)
    assert exhibits.kinds == {"clean": ["v3"], "mislabel": ["v2"]}
    assert exhibits.tau == {video: audit.record.thresholds[video] for video in ("v2", "v3")}
    wrong, right = exhibits.chosen_frames("v2")
    assert all(120 <= frame < 160 for frame in wrong)
    assert not any(120 <= frame < 160 for frame in right)
    assert exhibits.methods["CSL"]["v2"][120:160].mean() > 0.8


def test_brought_scores_are_a_row_of_the_bars(audit: Audit) -> None:
    scores = {"v2": np.zeros(300), "v3": np.zeros(300)}
    scores["v2"][:10] = 1
    exhibits = Exhibits(audit, {"rival": scores})
    assert list(exhibits.methods) == ["final epoch", "rival", "CSL"], "ours is the bottom row"
    assert np.flatnonzero(exhibits.methods["rival"]["v2"]).tolist() == list(range(10))
    names = [label.get_text() for label in bars(exhibits).axes[0].get_yticklabels()]
    assert names == ["CSL", "rival", "final epoch", "known errors"], "from the bottom"


def test_map_has_a_row_for_each_frame_a_column_for_each_checkpoint_and_a_box(
    audit: Audit,
) -> None:
    figure = maps(Exhibits(audit), most=1)
    clean, mislabelled = figure.axes[:2]
    assert (clean.get_title(), mislabelled.get_title()) == ("clean: v3", "mislabel: v2")
    [picture] = mislabelled.get_images()
    assert picture.get_array().shape == (300, 6)
    assert picture.get_extent() == [0.5, 6.5, 300, 0]
    [box] = mislabelled.patches
    assert (box.get_y(), box.get_height()) == (120, 40)
    assert not clean.patches


def test_page_shows_known_errors_in_pictures(audit: Audit) -> None:
    page = render(audit)
    assert "Known errors in pictures" in page
    assert page.count('<figure class="paper"><img src="data:image/png') == 3


def test_usual_frame_is_outside_of_every_flag(audit: Audit) -> None:
    flags = audit.flags()
    details = contents.video_details(audit, "v2", flags)
    [usual] = [int(n.split()[1].rstrip(",")) for n in details.trajectories if n.endswith("usual")]
    assert not any(span.start <= usual < span.stop for span in details.flags)


def test_page_has_time_predictions_colour_bar_and_plain_words(audit: Audit) -> None:
    page = render(audit)
    assert 'class="axis"' in page
    assert "models say" in page
    assert "the loss of a label" in page
    assert "wrong name" in page
    assert "prefers-color-scheme: dark" in page
    order = [page.index(f"</i>{name}</span>") for name in audit.classes]
    assert order == sorted(order), "classes in the order of the procedure"


def test_report_of_an_audit_that_has_not_changed_is_not_written_again(made_root: str) -> None:
    root = Storage(made_root)

    def written() -> str | None:
        current_report(csl_dist.open_audit(made_root))
        return root.version("report.html")

    first = written()
    assert written() == first
    root.put("report.json", b"{")
    second = written()
    assert second != first
    AuditStore(RunPaths(root)).put_metrics(1, {"scorers": {}})
    third = written()
    assert third != second
    store = store_of(made_root, None)
    store.create()
    fourth = written()
    assert written() == fourth, "reviews that nobody added to"
    (Path(made_root) / "reviews.db").touch()
    assert written() != fourth
