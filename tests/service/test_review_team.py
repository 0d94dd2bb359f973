"""A lead's and a manager's work on the review page, in a real browser: names, annotators, findings
below the line, and a certificate from the draw to its last review."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from review_page import Reviewer, read_flags, serving
from served import ADA, BOB, with_annotators

import csl_dist
from csl_dist.service import routes
from csl_dist.storage.tables import put_table
from csl_dist.types import Video

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def put_below(root: str) -> None:
    """Two findings below the line, after the one flag."""
    paths = csl_dist.open_audit(root).paths
    table = read_flags(paths)
    one = table.iloc[0].to_dict() | {"fix_label": "b", "label": "a"}
    rows = [
        {**one, "video": "v3", "start": a, "stop": b, "rank": rank, "probability": p}
        | {"start_seconds": a / 10, "stop_seconds": b / 10, "suggested": "b"}
        | {"fix": f"rename {a} {b}", "fix_start": a, "fix_stop": b}
        for rank, a, b, p in ((2, 20, 60, 0.4), (3, 220, 260, 0.1))
    ]
    put_table(paths.audit(1), paths.BELOW, pd.DataFrame(rows)[table.columns])


def two_cameras(config: Any, video: Video, folders: Any) -> dict[str, Video]:
    """As a dataset with two cameras has them: the second one's file starts a second earlier."""
    source = video.source.replace(video.id, "v3" if video.id == "v2" else "v2")
    return {"top": video, "wrist": replace(video, source=source, start_seconds=1.0)}


def test_lead_sees_names_annotators_cameras_and_what_lies_below_the_line(
    browser: Any, made_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (routes.media, routes.videos):
        monkeypatch.setattr(module, "views_of", two_cameras)
    with_annotators(made_root)
    put_below(made_root)
    tokens = (("Ada", ADA), ("Bob", BOB))
    with serving(made_root, tokens=tokens, leads=("Ada",)) as address:
        ada = Reviewer(browser, f"{address}/#token={ADA}", None)
        ada.see("#reviewer[disabled]", "Ada")
        ada.press("a")
        ada.see("#history", "you: wrong, is b")
        bob = Reviewer(browser, f"{address}/#token={BOB}", None)
        bob.see("#history", "Ada: wrong, is b")
        playwright.expect(bob.page.locator("#annotators")).to_be_hidden()
        bob.leave()

        ada.see("#camera-name", "top")
        ada.press("r")
        ada.see("#camera-name", "wrist")
        ada.see("#video[src*='camera=wrist']")
        ada.see("#clock", "frame 120")
        ada.page.wait_for_function("document.querySelector('#video').currentTime > 12.9")

        ada.page.locator("#annotators").click()
        ada.page.locator("#annotator-name").select_option("Zoe")
        ada.see("#annotator-facts", "went against the label in 1 (100 %)")
        ada.see("#annotator-tables", "By boundary")
        ada.expect_accessible()
        ada.page.locator("#annotator-spans").click()
        ada.see("#count", "1 flags")
        ada.page.locator("#filter-annotator").select_option("")

        slider = ada.page.locator("#filter-expected")
        ada.see("#effort", "as flagged: 1 places")
        slider.fill("0.05")
        ada.see("#effort", "3 places, 2 below the line")
        ada.see("#count", "3 findings")
        ada.page.locator(".item[data-rank='2']").click()
        ada.at_rank(2)
        ada.see("#accept-text", "Rename to b")
        ada.press("a")
        ada.see("#progress-text", "1 found without a flag")
        ada.page.reload()
        ada.at_rank(2)
        ada.see("#history", "you: changed")
        ada.leave()


def test_certificate_is_drawn_reviewed_and_downloaded(
    browser: Any, made_root: str, tmp_path: Path
) -> None:
    with serving(made_root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.page.locator("#dataset").click()
        ada.see("#dataset-dialog[open]")
        ada.see("#certificate-text", "How good are the labels?")
        ada.page.locator("#sample-size").fill("40")
        ada.page.locator("#draw-sample").click()
        ada.see("#certificate-text", "None of 8 sampled segments is reviewed yet")
        ada.page.locator("#review-sample").click()
        ada.see("#count", "8 sampled segments")
        ada.see("#next-text[data-judged='0']")
        seen = set()
        for number in range(1, 9):
            ada.see(f"#span-title[data-rank='{number}']")
            title = ada.page.locator("#span-title").inner_text()
            seen.add(title)
            ada.press("2" if "v2 0:12.0" in title else "c")
            ada.see(f"#next-text[data-judged='{number}']")
            ada.press("Enter")
        assert len(seen) == 8
        ada.see("#next-dialog[open]", "Every span in this list is reviewed")
        ada.press("Escape")
        ada.see("#next-text", "93.3% of seconds are right (93.3% to 93.3% at 95%)")
        ada.page.locator("#dataset").click()
        ada.see("#certificate-text", re.compile("can't be made"))
        with ada.page.expect_download() as download:
            ada.page.locator("#certificate-page").click()
        download.value.save_as(tmp_path / "certificate.html")
        ada.see("#reliability")
        ada.leave()
    written = (tmp_path / "certificate.html").read_text()
    assert "93.3 %" in written
    assert "Ada judged 8 of the 8" in written
