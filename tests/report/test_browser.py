"""The report in a real browser: Debian's Chromium, headless."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import csl_dist
from csl_dist.report import write_report

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
