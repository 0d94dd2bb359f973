"""The report in a real browser: Debian's Chromium, headless."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from review_page import put_flags
from served import with_annotators
from typer.testing import CliRunner

import csl_dist
from csl_dist.certify.drawing import first_sample
from csl_dist.certify.sample import put_sample
from csl_dist.cli.app import app
from csl_dist.report import write_report
from csl_dist.review.segments import segment_table
from csl_dist.review.store import Decision, NewReview, store_of

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def report(made_folder: Path) -> str:
    return write_report(csl_dist.open_audit(str(made_folder / "run")))


@pytest.fixture
def page(browser: Any, report: str) -> Iterator[Any]:
    """The open report; a test fails if the page complains or asks for anything over a network."""
    problems: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda r: None if r.url.startswith(("file:", "data:")) else problems.append(r.url),
    )
    page.goto(f"file://{report}")
    yield page
    page.close()
    assert problems == []


def outside(url: str) -> list[str]:
    """An address that is not part of the file itself."""
    return [] if url.startswith(("file:", "data:")) else [url]


def column(page: Any, table: str, number: int) -> list[str]:
    cells = page.locator(f"#{table} tbody tr:visible td:nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_headings_sort_by_click_and_by_keyboard(page: Any) -> None:
    assert column(page, "videos", 1) == ["v2", "v3"]
    heading = page.locator("#videos th").filter(has_text="worst")
    heading.get_by_role("button").click()
    assert column(page, "videos", 1) == ["v3", "v2"], "numbers ascend"
    assert heading.get_attribute("aria-sort") == "ascending"
    page.locator("#videos th").filter(has_text="video").get_by_role("button").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert column(page, "videos", 1) == ["v3", "v2"], "names descend"
    assert heading.get_attribute("aria-sort") is None


def test_filters_hide_what_does_not_fit_and_count_the_rest(page: Any) -> None:
    assert column(page, "flags", 2) == ["v2"]
    page.locator("#filter-text").fill("nothing like this")
    assert column(page, "flags", 2) == []
    assert page.locator("#filter-count").inner_text() == "0 of 1 spans"
    page.locator("#filter-text").fill("V2 c")
    assert column(page, "flags", 2) == ["v2"]
    page.locator("#filter-label").select_option("a")
    assert column(page, "flags", 2) == []
    page.locator("#filter-label").select_option("b")
    page.locator("#filter-score").fill("1000")
    assert column(page, "flags", 2) == []
    page.locator("#filter-score").fill("")
    page.locator("#filter-kind").select_option("mislabel")
    assert column(page, "flags", 2) == ["v2"]


def test_link_opens_the_video_and_summary_closes_it(page: Any) -> None:
    video = page.locator("#video-0")
    video.locator("summary").click()
    assert video.get_attribute("open") is None
    page.locator("#flags a").first.click()
    playwright.expect(video).to_have_attribute("open", "")
    assert video.locator("summary").inner_text().startswith("v2")
    page.keyboard.press("Enter")
    playwright.expect(video).not_to_have_attribute("open", "")


def test_chosen_frame_shows_its_trajectory(page: Any, made_folder: Path) -> None:
    """By keyboard; the line is drawn from the heatmap's own pixels."""
    video = page.locator("#video-0")
    slider = video.get_by_role("slider")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert "frame 3" in video.locator(".picked").inner_text()
    points = video.locator(".picked-line").get_attribute("points").split()
    top = float(video.locator(".chosen .chart").get_attribute("data-top"))
    losses = [(1 - (float(point.split(",")[1]) - 4) / 154) * top for point in points]
    audit = csl_dist.open_audit(str(made_folder / "run"))
    assert losses == pytest.approx(audit.trajectory("v2", frames=3)[:, 0], abs=top / 50)


def test_print_opens_every_video(page: Any) -> None:
    page.locator("#video-0 summary").click()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.video:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.video:not([open])").count() == 1
    page.emulate_media(media="print")
    assert not page.locator("#filters").is_visible()


def test_page_fits_a_narrow_screen(page: Any) -> None:
    page.set_viewport_size({"width": 480, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 480


def review_everything(root: str) -> None:
    """A certificate's sample and all flags are decided, and two habits of labelling are told."""
    with_annotators(root)
    audit = csl_dist.open_audit(root)
    habit = {"list": "steps", "label": "c", "suggested": "b", "direction": "", "group": None}
    told = {**habit, "places": 14, "videos": 9, "of": 12}
    audit.paths.audit(1).put_json("conventions.json", {"conventions": [told]})
    given = {"seed": 1, "within_seconds": 2.0, "confidence": 0.95, "num_reviews": 20}
    sample = first_sample(segment_table(audit), **given)
    put_sample(audit, sample)
    store = store_of(root, None)
    store.create()
    flags = audit.flags()
    put_flags(audit.paths, flags.assign(probability=0.9))
    spans = {*sample.spans, *zip(flags.video, flags.start, flags.stop, strict=True)}
    for number, (video, start, stop) in enumerate(sorted(spans)):
        store.append(
            NewReview(
                key=f"key-{number:05d}",
                revision=1,
                video=video,
                start=int(start),
                stop=int(stop),
                decision=Decision.CORRECT,
                reviewer="Ada",
            )
        )


def test_reviewed_run_is_told_as_a_whole_without_a_serious_fault(
    browser: Any, made_root: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    review_everything(made_root)
    written = write_report(csl_dist.open_audit(made_root))
    assert CliRunner().invoke(app, ["certify", made_root]).exit_code == 0
    for scheme in ("light", "dark"):
        for name in (written, f"{made_root}/certificate.html"):
            page = browser.new_page(color_scheme=scheme)
            page.goto(f"file://{name}")
            for width in (1920, 1280, 800):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = axe.run(page).response["violations"]
            serious = [f for f in found if f["impact"] in ("serious", "critical")]
            assert serious == [], [(f["id"], f["nodes"][0]["html"]) for f in serious]
            if name == written and scheme == "light":
                text = page.locator("#dataset").inner_text()
                for words in ("100.0% of seconds are right", "in 9 of 12 videos", "Zoe", "v1.txt"):
                    assert words in text
                circle = page.locator(".reliability circle title")
                assert circle.text_content() == "90% predicted, 0% found in 1"
            page.close()
