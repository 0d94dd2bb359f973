"""Fixes, boundaries, browsing and teams on the review page, in a real browser, by key and by
mouse."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from review_page import Reviewer, free_port, put_flags, read_flags, serving

import csl_dist
from csl_dist.audit.relabel import relabel
from csl_dist.review.carried import decisions_on
from csl_dist.review.database import engine_of
from csl_dist.review.labels import write_corrected
from csl_dist.review.store import store_of
from csl_dist.types import runs_of

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

FIXES = [
    ("v2", 120, 160, "mislabel", "c", "b", "rename 120 160"),
    ("v3", 100, 130, "boundary", "b", "a", "boundary 100 130"),
    ("v3", 220, 250, "missing", "c", "a", "insert 220 250"),
    ("v2", 160, 200, "insert", "b", "c", "delete 160 200"),
    ("v3", 0, 200, "disorder", "a", "b", "swap 0 100 200"),
]
"""Video, start, stop, kind, label, suggested and fix."""


def put_fixes(root: str) -> None:
    paths = csl_dist.open_audit(root).paths
    first = read_flags(paths).iloc[0].to_dict()
    rows = []
    for rank, (video, start, stop, kind, label, suggested, fix) in enumerate(FIXES, start=1):
        seconds = {"start_seconds": start / 10, "stop_seconds": stop / 10}
        place = {"video": video, "start": start, "stop": stop, "rank": rank, **seconds}
        is_swap = fix.startswith("swap")
        fixed = {
            "fix": fix,
            "fix_label": None if is_swap else suggested,
            "fix_start": start,
            "fix_stop": stop,
            "probability": 0.9 - rank / 20,
            "list": "steps",
        }
        names = {"kind": kind, "label": label, "suggested": suggested, "score": 4.0 - rank}
        rows.append({**first, **place, **fixed, **names})
    put_flags(paths, pd.DataFrame(rows))


@pytest.fixture
def root(made_root: str) -> str:
    put_fixes(made_root)
    return made_root


@pytest.fixture
def ada(browser: Any, root: str) -> Iterator[Reviewer]:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.address = address
        yield ada
        ada.leave()


def saved(root: str) -> list[tuple[str, list[tuple[int, int, str]]]]:
    """Decisions with their edits, oldest first."""
    return [
        (r.decision, [(e.start, e.stop, e.label) for e in r.changes])
        for r in store_of(root, None).after(0)
    ]


def runs_shown(ada: Reviewer, rank: int) -> list[list[int]]:
    """The labels of a span's video as the page shows them after all decisions."""
    ada.page.locator(f".item[data-rank='{rank}']").click()
    ada.at_rank(rank)
    ada.see("#history li")
    code = "async () => (await import('/static/span.js')).shownRuns()"
    return ada.page.evaluate(code)


def edge_of(ada: Reviewer, frame: int) -> tuple[float, float]:
    """Where the edge before a frame is on the screen, in the row that can be edited."""
    box = ada.page.locator("#cursor").bounding_box()
    start, stop = map(int, ada.page.locator("#canvases").get_attribute("data-view").split())
    plot = box["width"] - 96
    return box["x"] + 96 + plot * (frame - start) / (stop - start), box["y"] + 42


def test_each_fix_is_one_key_and_relabel_agrees_with_the_page(
    ada: Reviewer, root: str, tmp_path: Path
) -> None:
    words = ["Rename to b", "Boundary 3.0 s later", "Insert a", "Part of c", "Swap: b, then a"]
    for rank, sentence in enumerate(words, start=1):
        ada.at_rank(rank)
        ada.see("#accept-text", sentence)
        ada.see("#change", "with the fix")
        ada.press("Shift+A")  # accept and go on
    ada.see("#next-dialog[open]", "Every span in this list is reviewed")
    ada.press("Escape")
    ada.see("#progress-text", "5 of 5 reviewed")
    assert [edits for _, edits in saved(root)] == [
        [(120, 160, "b")],
        [(100, 130, "a")],
        [(220, 250, "a")],
        [(160, 200, "c")],
        [(0, 100, "b"), (100, 200, "a")],
    ]
    ada.page.locator(".item[data-rank='2']").click()
    ada.at_rank(2)
    ada.see("#history", "changed: a in frames")
    ada.press("3")  # a later decision inside of the swap counts, whichever span is shown
    ada.see("#history", "wrong, is c")
    shown = {"v3": runs_shown(ada, 5), "v2": runs_shown(ada, 1)}
    audit = csl_dist.open_audit(root)
    store = store_of(root, None)
    write_corrected(audit, decisions_on(audit, store).by_span(), tmp_path / "fixed", store=store)
    relabel(root, tmp_path / "fixed")
    corrected = csl_dist.open_audit(root)
    assert corrected.revision == 2
    for video, runs in shown.items():
        labels_T = corrected.annotation(video).labels_T
        assert runs == [[r.start, r.stop, int(labels_T[r.start])] for r in runs_of(labels_T)]
    assert [100, 130, 2] in shown["v3"]


def test_boundary_is_dragged_nudged_and_snapped(ada: Reviewer, root: str) -> None:
    ada.press("j")
    ada.at_rank(2)
    ada.see("#change", "with the fix")
    x, y = edge_of(ada, 130)  # where the fix would put it
    to, _ = edge_of(ada, 115)
    mouse = ada.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move((x + to) / 2, y)
    mouse.move(to, y)
    mouse.up()
    ada.see("#draft-edits", re.compile("a from frame 100 to 11[34]"))
    ada.press("Escape")
    ada.press("e", ".", ".", ">")  # two frames of the file are one of the audit; and a second
    ada.see("#draft-edits", "a from frame 100 to 110")
    ada.press(".")
    ada.see("#draft-edits", "exactly 0:11.15")
    ada.press("p")
    ada.see("#draft-edits", "a from frame 100 to 129")
    ada.press(",")
    ada.see("#draft-edits", "exactly 0:12.95")
    ada.press("Enter")
    ada.see("#history", re.compile("changed: a in frames 100.129"))
    [review] = store_of(root, None).after(0)
    assert review.changes[0].stop_seconds == pytest.approx(12.95)


def test_segments_are_split_merged_swapped_and_inserted(ada: Reviewer, root: str) -> None:
    def at_frame(frame: int) -> None:
        x, y = edge_of(ada, frame)
        ada.page.mouse.click(x + 2, y + 60)
        ada.see("#clock", f"frame {frame}")

    ada.press("v")
    ada.see("#zoom-text", "around the span")
    at_frame(50)
    ada.page.locator("#split").click()
    ada.see("#label-dialog[open]")
    ada.press("3")  # the second half is c
    ada.see("#draft-edits", "c from frame 50 to 99")
    ada.press("Escape")
    at_frame(130)
    ada.page.locator("#merge").click()
    ada.see("#draft-edits", "b from frame 120 to 159")
    ada.press("Escape", "w")
    ada.see("#draft-edits", "b from frame 120 to 159")
    ada.see("#draft-edits", "c from frame 160 to 199")
    ada.press("Escape")
    at_frame(20)
    ada.press("b", "[")
    at_frame(40)
    ada.press("]", "2")  # a missing step b
    ada.see("#draft-edits", "b from frame 20 to 40")
    ada.page.locator("#save-draft").click()
    ada.see("#history", "changed")
    assert saved(root) == [("edited", [(20, 41, "b")])]


def test_wheel_zooms_and_pans_and_keys_jump(ada: Reviewer) -> None:
    def view() -> list[int]:
        return [int(n) for n in ada.page.locator("#canvases").get_attribute("data-view").split()]

    before = view()
    x, y = edge_of(ada, 140)
    ada.page.mouse.move(x, y)
    ada.page.mouse.wheel(0, -400)
    ada.page.wait_for_function(
        "length => { const [a, b] = document.querySelector('#canvases').dataset.view.split(' ');"
        " return b - a < length; }",
        arg=before[1] - before[0],
    )
    start, stop = view()
    assert start < 140 < stop
    ada.page.keyboard.down("Shift")
    ada.page.mouse.wheel(0, 200)
    ada.page.keyboard.up("Shift")
    ada.page.wait_for_function(
        "start => Number(document.querySelector('#canvases').dataset.view.split(' ')[0]) > start",
        arg=start,
    )
    assert abs((view()[1] - view()[0]) - (stop - start)) <= 1
    ada.press("PageDown")  # boundaries of the labels with the fix
    ada.see("#clock", "frame 200")
    ada.press("PageUp")
    ada.see("#clock", "frame 100")
    ada.press("n")  # models see b where c is written
    ada.see("#clock", "frame 120")
    ada.press("s", "o", "=")
    ada.see("#sound[aria-pressed=false]")
    ada.see("#loop[aria-pressed=false]")
    ada.see("#speed", "1.5")


def test_link_in_an_open_tab_shows_what_it_names(ada: Reviewer) -> None:
    ada.page.evaluate("location.hash = '#audit=run&rank=3'")
    ada.at_rank(3)
    ada.page.evaluate("location.hash = '#audit=run&video=v3&start=210&stop=220'")
    ada.see("#span-title", "v3 0:20.0")
    ada.page.evaluate("location.hash = '#audit=another&rank=1'")
    ada.see("#empty", "which this service does not have")
    playwright.expect(ada.page.locator("#main")).to_be_hidden()


def test_order_without_a_fix_offers_no_name(browser: Any, made_root: str) -> None:
    paths = csl_dist.open_audit(made_root).paths
    put_flags(paths, read_flags(paths).assign(kind="disorder"))
    with serving(made_root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.see("#accept-text", "Steps are out of order")
        ada.press("a")
        ada.see("#history", "steps are out of order")
        ada.see("#progress-text", "100 % of flags were wrong")
        ada.leave()


def test_error_without_a_flag_is_marked_and_found_again(ada: Reviewer, root: str) -> None:
    ada.page.locator("#filter-source").select_option("segments")
    ada.see("#count", "8 segments")
    ada.page.locator("#filter-text").fill("v3 c")
    ada.see("#count", "1 segments")
    ada.page.locator("#filter-text").blur()
    ada.see("#span-title", "v3 0:20.0")
    ada.press("i", "1")
    ada.see("#history", "wrong, is a")
    ada.see("#progress-text", "1 found without a flag")
    ada.page.locator("#filter-text").fill("")
    ada.page.locator("#filter-source").select_option("missed")
    ada.see("#count", "1 errors without a flag")
    assert saved(root) == [("wrong", [(200, 300, "a")])]


def test_similar_flags_are_decided_together(browser: Any, made_root: str) -> None:
    paths = csl_dist.open_audit(made_root).paths
    one = read_flags(paths).iloc[0].to_dict()
    spans = [("v2", 120, 160), ("v3", 210, 240), ("v3", 250, 280)]
    rows = [
        {**one, "video": v, "start": a, "stop": b, "rank": i, "start_seconds": a / 10}
        for i, (v, a, b) in enumerate(spans, start=1)
    ]
    put_flags(paths, pd.DataFrame(rows))
    with serving(made_root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.press("g")
        ada.see("#group-list", "3")
        ada.see(".card")
        assert ada.page.locator(".card").count() == 3
        ada.page.locator(".card input").nth(1).uncheck()
        ada.page.locator("#sheet-accept").click()
        ada.see("#progress-text", "2 of 3 reviewed")
        ada.leave()
    assert [edits for _, edits in sorted(saved(made_root))] == [
        [(120, 160, "b")],
        [(250, 280, "b")],
    ]


def test_flags_are_assigned_and_everybody_sees_their_own(ada: Reviewer, browser: Any) -> None:
    ada.page.locator("#team").click()
    ada.page.locator("#team-names").fill("Ada, Bob")
    ada.page.locator("#team-double").fill("0")
    ada.page.locator("#team-assign").click()
    ada.see("#team-table", "Bob")
    ada.press("Escape")
    ada.page.locator("#filter-mine").check()
    ada.see("#count", "3 of 5 flags")
    bob = Reviewer(browser, ada.address, "Bob")
    bob.page.locator("#filter-mine").check()
    bob.see("#count", "2 of 5 flags")
    bob.press("a")
    bob.see("#progress-text", "1 of 5 reviewed")
    bob.leave()


def test_page_comes_back_by_itself_after_the_service_was_away(browser: Any, root: str) -> None:
    port = free_port()
    with ExitStack() as first:
        address = first.enter_context(serving(root, port=port))
        ada = Reviewer(browser, address, "Ada")
        first.close()
        ada.see("#lost", "does not answer")
        Path(root, "reviews.db").unlink()  # a service with another database
        engine_of.cache_clear()
        with serving(root, port=port):
            playwright.expect(ada.page.locator("#lost")).to_be_hidden(timeout=60_000)
            bob = Reviewer(browser, address, "Bob")
            bob.press("a")
            ada.see("#history", "Bob: changed")
            bob.leave()
    ada.context.close()  # requests failed, which the console says


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_has_no_serious_accessibility_fault(browser: Any, root: str, scheme: str) -> None:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada", color_scheme=scheme)
        ada.press("e", ".")
        ada.see("#draft-edits li")
        for opening in (None, "#team", "#groups", "#dataset", "#download", "#help-button"):
            if opening is not None:
                ada.page.locator(opening).click()
                ada.see("dialog[open]")
            ada.expect_accessible()
            if opening is not None:
                ada.press("Escape")
        ada.leave()
