"""The review page in a real browser, by keyboard; the server is the service without Ray."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_run
import numpy as np
import pandas as pd
import pytest
from review_page import Reviewer, put_flags, read_flags, serving
from served import replace_videos

import csl_dist
from csl_dist.audit.relabel import relabel
from csl_dist.review.edits import SpanEdit, edited
from csl_dist.review.store import store_of
from csl_dist.service import audits
from csl_dist.storage.run_file import read_videos
from csl_dist.types import IntArray, Split, runs_of

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
TOKEN = "a-token-for-the-browser"
MORE_SPANS = [
    ("v3", 20, 60, "a", "c"),
    ("v3", 110, 150, "b", "a"),
    ("v2", 20, 45, "a", "b"),
    ("v3", 220, 260, "c", "b"),
    ("v2", 230, 280, "c", "a"),
]


def more_flags(root: str) -> None:
    """Six spans to review, the wrong one worst."""
    paths = csl_dist.open_audit(root).paths
    table = read_flags(paths)
    rows = [table.iloc[0].to_dict()]
    for number, (video, start, stop, label, suggested) in enumerate(MORE_SPANS, start=2):
        seconds = {"start_seconds": start / 10, "stop_seconds": stop / 10}
        span = {"video": video, "start": start, "stop": stop, "rank": number, **seconds}
        rows.append(
            {**rows[0], **span, "label": label, "suggested": suggested, "score": 3 - number}
        )
    put_flags(paths, pd.DataFrame(rows))


@pytest.fixture
def root(made_root: str) -> str:
    more_flags(made_root)
    return made_root


def runs_as_lists(labels_T: IntArray) -> list[list[int]]:
    return [[run.start, run.stop, int(labels_T[run.start])] for run in runs_of(labels_T)]


def clock(seconds: float) -> str:
    return f"{int(seconds // 60)}:{seconds % 60:05.2f}"


def drawn(reviewer: Reviewer, change: str) -> float:
    """A figure that the panel shows."""
    return float(reviewer.page.locator("#change").get_attribute(f"data-{change}"))


def test_five_spans_are_reviewed_by_keyboard_and_found_after_a_reload(
    browser: Any, root: str
) -> None:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.at_rank(1)
        ada.see("#annotated", "c")
        ada.see("#suggested", "b")
        before = drawn(ada, "before")
        assert before > 0

        ada.press("a")  # the suggestion: the curve falls at once
        ada.see("#change b.fell")
        ada.see("#change", "below the threshold now")
        audit = csl_dist.open_audit(root)
        flag = audit.flags().iloc[0]
        fixed = audit.annotation("v2").labels_T.copy()
        fixed[made_run.WRONG] = made_run.CLASSES.index("b")  # without slivers at its edges
        expected = audit.deciding_score("v2", labels=fixed)[flag.start : flag.stop].mean()
        assert drawn(ada, "after") == pytest.approx(expected, abs=1e-4)
        assert drawn(ada, "after") < before
        ada.see("#progress-text", "1 of 6 reviewed")

        ada.press("Enter")
        ada.at_rank(2)
        ada.press("c")  # the label is right
        ada.see("#progress-text", "2 of 6 reviewed")
        ada.press("Enter")
        ada.at_rank(3)
        ada.press("l")  # another label, by its name
        ada.see("#label-dialog[open]")
        ada.page.keyboard.type("c")
        ada.press("Enter")
        ada.see("#progress-text", "3 of 6 reviewed")
        ada.press("Enter")
        ada.at_rank(4)
        ada.press("m")
        ada.page.keyboard.type("blurred")
        ada.press("Enter", "u")  # unsure, with a comment
        ada.see("#progress-text", "4 of 6 reviewed")
        ada.see("#history", "blurred")
        ada.press("Enter")
        ada.at_rank(5)
        ada.press("b", *["ArrowRight"] * 8, "[")  # four frames of the audit, eight of the file
        ada.see("#draft-edits", "b from frame 224 to 259")
        ada.press("Enter")
        ada.see("#progress-text", "5 of 6 reviewed")
        ada.see("#progress-text", "75 %")

        ada.page.reload()
        ada.see("body[data-drawn]")
        ada.at_rank(5)
        ada.see("#progress-text", "5 of 6 reviewed")
        marks = ada.see(".item .mark").all_inner_texts()
        assert marks == ["✗ wrong", "✓ right", "✗ wrong", "? unsure", "✎ changed", ""]
        ada.press("z")  # undo works on the span that is shown
        ada.see("#progress-text", "4 of 6 reviewed")
        ada.press("Enter")
        ada.at_rank(6)
        ada.leave()
    decisions = [(r.decision, r.label) for r in store_of(root, None).after(0)]
    assert decisions == [
        ("wrong", "b"),
        ("correct", None),
        ("wrong", "c"),
        ("unsure", None),
        ("edited", None),
        ("withdrawn", None),
    ]


def test_undo_brings_back_what_held_before(browser: Any, root: str) -> None:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.press("c")
        ada.see("#history", "label is right")
        ada.press("2")  # a digit names a class
        ada.see("#history", "wrong, is b")
        ada.press("z")
        ada.see("#history", "label is right")
        ada.press("z")
        playwright.expect(ada.page.locator("#history")).to_be_empty(timeout=60_000)
        ada.see("#progress-text", "0 of 6 reviewed")
        ada.leave()


def test_undo_finds_its_span_whatever_the_filters_are_now(browser: Any, root: str) -> None:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.press("j", "j", "c")
        ada.see("#progress-text", "1 of 6 reviewed")
        ada.page.locator("#filter-text").fill("v3")
        ada.see("#count", "3 of 6 flags")
        ada.at_rank(2)
        ada.page.locator("#filter-text").blur()
        ada.press("z")
        ada.see("#progress-text", "0 of 6 reviewed")
        ada.at_rank(3)
        ada.leave()


def test_audit_that_is_made_anew_replaces_the_one_that_is_shown(
    browser: Any, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "CHECK_SECONDS", 0.0)
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        (tmp_path / "fixed").mkdir()
        (tmp_path / "fixed" / "v2.txt").write_text(made_run.label_text(made_run.TRUE_LABELS))
        relabel(root, tmp_path / "fixed")
        ada.see("#toast.on", "this is audit 2 now")
        ada.see("#empty", "Nothing is flagged")
        ada.page.locator("#filter-source").select_option("segments")
        ada.see("#count", "6 segments")
        ada.press("c")
        ada.see("#history", "label is right")
        ada.leave()
    assert [r.revision for r in store_of(root, None).after(0)] == [2]


def test_two_audits_with_the_same_videos_are_not_mixed_up(browser: Any, root: str) -> None:
    other = str(Path(root).with_name("other"))
    shutil.copytree(root, other)
    paths = csl_dist.open_audit(other).paths
    put_flags(paths, read_flags(paths).assign(why="of the other audit"))
    with serving(root, other) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.press("a")
        ada.see("#progress-text", "1 of 6 reviewed")
        ada.page.locator("#audit").select_option("other")
        ada.see("#why", "of the other audit")
        ada.see("#progress-text", "0 of 6 reviewed")
        playwright.expect(ada.page.locator("#history")).to_be_empty(timeout=60_000)
        ada.press("c")
        ada.see("#history", "label is right")
        ada.leave()
    assert [r.decision for r in store_of(root, None).after(0)] == ["wrong"]
    assert [r.decision for r in store_of(other, None).after(0)] == ["correct"]


def test_span_whose_video_can_not_be_read_can_be_passed(browser: Any, root: str) -> None:
    paths = csl_dist.open_audit(root).paths
    videos = read_videos(paths.audit(1))
    lost = replace(next(video for video in videos if video.id == "v2"), id="lost")
    replace_videos(paths.audit(1), [*videos, lost])
    table = read_flags(paths)
    put_flags(paths, table.assign(video=["lost", *table.video[1:]]))
    with serving(root) as address:
        ada = Reviewer(browser, f"{address}/#rank=2", "Ada")
        ada.press("k")
        ada.at_rank(1)
        ada.see("#no-picture", "lost")
        ada.press("Space", "ArrowRight", "v", "j")
        ada.at_rank(2)
        ada.see("#clock", "frame 20")
        ada.page.reload()
        ada.at_rank(2)
        ada.context.close()  # a request was refused, which the console says


def test_page_that_gets_no_answer_says_so_and_goes_on_asking(browser: Any, root: str) -> None:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        bob = Reviewer(browser, address, "Bob")
        bob.page.route("**/reviews?*", lambda route: route.fulfill(body="no JSON"), times=1)
        with bob.page.expect_response("**/reviews?*"):
            pass
        ada.press("a")
        bob.see("#history", "Ada: wrong, is b")
        bob.page.route("**/api/audits", lambda route: route.abort())
        bob.page.reload()
        bob.see("#empty", "does not answer")
        bob.context.close()
        ada.leave()


def test_decisions_are_in_the_order_of_their_numbers(browser: Any, root: str) -> None:
    """One's own is there at once; that of another, made before, is heard of later."""
    code = """async () => {
        const { addDecision } = await import("/static/decisions.js");
        const on = { video: "v2", start: 1, stop: 2 };
        const flag = { ...on, reviews: [], state: "undecided" };
        addDecision(flag, { ...on, number: 5, reviewer: "Ada", decision: "wrong", label: "b" });
        addDecision(flag, { ...on, number: 4, reviewer: "Bob", decision: "correct" });
        addDecision(flag, { ...on, number: 3, reviewer: "Ada", decision: "unsure" });
        return [flag.state, ...flag.reviews.map((review) => review.number)];
    }"""
    with serving(root) as address:
        page = browser.new_page()
        page.goto(f"{address}/docs")
        assert page.evaluate(code) == ["disputed", 4, 5]
        page.close()


def test_page_shows_the_labels_that_are_written(browser: Any, root: str) -> None:
    """What is drawn and what an export writes, in whatever layout, come from two functions."""
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for _ in range(200):
        labels_T = np.repeat(rng.integers(-1, 3, 20), rng.integers(1, 9, 20))
        edges = np.sort(rng.integers(0, len(labels_T) + 1, (rng.integers(1, 6), 2)))
        edits = [
            SpanEdit(start=int(a), stop=int(b), label=str(rng.choice(made_run.CLASSES)))
            for a, b in edges
            if a < b
        ]
        cases.append([runs_as_lists(labels_T), [edit.as_json() for edit in edits]])
        expected.append(runs_as_lists(edited(labels_T, edits, made_run.CLASSES)))
    code = """async ([cases, classes]) => {
        const { withEdits } = await import("/static/decisions.js");
        const named = classes.map((name) => ({ name }));
        return cases.map(([labels, edits]) => withEdits(labels, edits, named));
    }"""
    with serving(root) as address:
        page = browser.new_page()
        page.goto(f"{address}/docs")
        assert page.evaluate(code, [cases, list(made_run.CLASSES)]) == expected
        page.close()


def test_two_reviewers_at_once_see_each_other(browser: Any, root: str) -> None:
    with serving(root, token=TOKEN) as address:
        ada = Reviewer(browser, f"{address}/#token={TOKEN}", "Ada")
        bob = Reviewer(browser, f"{address}/#token={TOKEN}", "Bob")
        assert TOKEN not in bob.page.url
        assert bob.page.locator("#video").evaluate("v => v.readyState >= 0")
        ada.press("a")
        ada.see("#history", "you: wrong, is b")
        bob.see("#history", "Ada: wrong, is b")
        bob.see("#change b.fell")
        bob.press("c")
        bob.see("#history", "you: label is right")
        ada.see("#history", "Bob: label is right")
        ada.see(".item[data-rank='1'] .mark", "disputed")
        ada.see("#progress-text", "1 disputed")
        bob.leave()
        ada.leave()


def test_span_plays_with_its_context_and_keys_move_the_cursor(browser: Any, root: str) -> None:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        video = ada.page.locator("#video")
        start = csl_dist.open_audit(root).flags().iloc[0].start
        ada.see("#clock", f"frame {start}")
        ada.press(*["ArrowRight"] * 3)  # frames of the file, of which the audit has every second
        ada.see("#clock", re.compile(rf"^{clock(start / 10 + 0.15)} · frame {start + 1}"))
        ada.press("ArrowRight")
        ada.see("#clock", f"frame {start + 2}")
        ada.press("Shift+ArrowLeft")
        ada.see("#clock", f"frame {start - 8}")
        assert video.evaluate("v => v.videoWidth") == 32, "the file itself is played"
        ada.press("Space")
        ada.see("#play", "Stop")
        playwright.expect(ada.page.locator("#clock")).not_to_contain_text(
            f"frame {start - 8}", timeout=60_000
        )
        ada.press("Space")
        ada.see("#play", "Play")
        ada.press("v")
        ada.see("#zoom-text", "around the span")
        ada.press("?")
        ada.see("#help-dialog[open]")
        ada.press("Escape")
        ada.leave()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_wide_and_narrow_screens(browser: Any, root: str, scheme: str) -> None:
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada", color_scheme=scheme)
        for width in (1920, 1280, 800, 400):
            ada.page.set_viewport_size({"width": width, "height": 900})
            assert ada.page.evaluate("document.documentElement.scrollWidth") <= width
            main = ada.page.locator("main")
            assert main.evaluate("m => m.scrollWidth <= m.clientWidth")
            assert ada.page.locator("#next-undecided").bounding_box()["x"] + 60 < width
        background = ada.page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(n) for n in re.findall(r"\d+", background)[:3]) / 3
        assert (brightness < 60) == (scheme == "dark")
        ada.leave()


def test_thousand_videos_are_a_short_list_in_the_page(browser: Any, root: str) -> None:
    """Rows in sight are made, others are not; the last of 4,000 spans is a scroll away."""
    paths = csl_dist.open_audit(root).paths
    videos = read_videos(paths.audit(1))
    template = next(video for video in videos if video.split is Split.AUDIT)
    names = [f"op{number:04d}" for number in range(1000)]
    replace_videos(paths.audit(1), [*videos, *(replace(template, id=name) for name in names)])
    own = read_flags(paths)
    many = pd.concat([own.iloc[[0]].assign(video=name) for name in names for _ in range(4)])
    spans = [(5 * i % 290, 5 * i % 290 + 5) for i in range(len(many))]
    many = many.assign(start=[a for a, _ in spans], stop=[b for _, b in spans], score=-5.0)
    table = pd.concat([own, many], ignore_index=True)
    put_flags(paths, table.assign(rank=range(1, len(table) + 1)))
    with serving(root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.see("#count", "4006 flags")
        assert ada.page.locator(".item").count() < 60
        ada.page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
        ada.see(".item[data-rank='4006']", "op0999")
        assert ada.page.locator(".item").count() < 60
        ada.press("/")
        ada.page.keyboard.type("op0500")
        ada.see("#count", "4 of 4006 flags")
        ada.context.close()  # these videos have no scores, which the page says


@pytest.mark.parametrize("width", [1280, 800])
def test_list_shows_ids_and_times_as_a_whole(browser: Any, made_root: str, width: int) -> None:
    paths = csl_dist.open_audit(made_root).paths
    seconds = {"start_seconds": 754.2, "stop_seconds": 760.8}
    put_flags(paths, read_flags(paths).assign(**seconds, probability=0.94, fix="rename 120 160"))
    with serving(made_root) as address:
        ada = Reviewer(browser, address, "Ada", viewport={"width": width, "height": 900})
        [row] = ada.page.locator(".item").all()
        row.locator(".name").evaluate("e => { e.textContent = 'Knot_Tying_S05_T05'; }")
        for part in (".name", ".time"):
            assert row.locator(part).evaluate("e => e.scrollWidth <= e.clientWidth"), part
        assert row.locator(".time").inner_text().endswith("12:40.8")
        likely = row.locator(".score").inner_text()
        ada.see("#why", f"{likely} likely an error")
        ada.leave()


def test_videos_without_pictures_say_so(browser: Any, made_root: str) -> None:
    paths = csl_dist.open_audit(made_root).paths
    videos = [replace(video, source="/nowhere/v.mp4") for video in read_videos(paths.audit(1))]
    replace_videos(paths.audit(1), videos)
    with serving(made_root) as address:
        ada = Reviewer(browser, address, "Ada")
        ada.see("#no-picture", "no picture")
        for useless in ("#screen", "#play", "#loop", "#sound", "#speed"):
            assert not ada.page.locator(useless).is_visible(), useless
        ada.press("Space")
        ada.see("#play", "Stop")
        ada.press("Space", "a")
        ada.see("#change b.fell")
        ada.leave()


def test_api_page_lists_every_route(browser: Any, root: str) -> None:
    with serving(root) as address:
        page = browser.new_page()
        problems: list[str] = []
        page.on("console", lambda m: problems.append(m.text))
        page.on(
            "request",
            lambda r: None if r.url.startswith(address) else problems.append(r.url),
        )
        page.goto(f"{address}/docs")
        page.locator("details").first.wait_for()
        assert page.locator("details").count() >= 15
        page.locator("summary", has_text="/trajectory").first.click()
        assert "curl" in page.locator("details[open] pre").inner_text()
        assert "json | npy | arrow" in page.locator("details[open]").inner_text()
        page.locator("details[open] a", has_text="Trajectory").click()
        assert "checkpoint" in page.locator("#Trajectory").inner_text()
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.close()
        assert problems == []
