"""The review page in a real browser: the service without Ray, and somebody who reviews."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pytest
import uvicorn
from served import note_digest

from csl_dist.review.store import store_of
from csl_dist.service.app import create_app
from csl_dist.service.settings import ServiceSettings
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.tables import put_table, read_table

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(*roots: str, port: int | None = None, **given: Any) -> Iterator[str]:
    for root in roots:
        store_of(root, None).create()
    port = port or free_port()
    settings = ServiceSettings(roots=roots, port=port, **given)
    server = uvicorn.Server(
        uvicorn.Config(create_app(settings), port=port, log_level="warning", access_log=False)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        yield settings.address
    finally:
        server.should_exit = True
        thread.join(timeout=20)


def read_flags(paths: RunPaths) -> pd.DataFrame:
    return read_table(paths.audit(1), paths.FLAGS)


def put_flags(paths: RunPaths, table: pd.DataFrame) -> None:
    """Writes other flags into an audit, as if it had been published with these."""
    folder = paths.audit(1)
    put_table(folder, paths.FLAGS, table)
    note_digest(folder, paths.FLAGS)


class Reviewer:
    """Somebody at a browser; whatever the page complains about is a problem."""

    def __init__(self, browser: Any, address: str, name: str | None, **context: Any):
        """`name` is None where the service knows who it is."""
        self.problems: list[str] = []
        options = {"viewport": {"width": 1280, "height": 900}, **context}
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda m: self.problems.append(m.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "response",
            lambda r: self.problems.append(f"{r.status} {r.url}") if r.status >= 400 else None,
        )
        self.page.goto(address)
        if name is not None:
            self.page.locator("#name-dialog").wait_for()
            self.page.keyboard.type(name)
            self.page.keyboard.press("Enter")
        self.see("body[data-drawn]")

    def see(self, selector: str, text: str | re.Pattern[str] | None = None) -> Any:
        found = self.page.locator(selector)
        found.first.wait_for(state="attached")
        if text is not None:
            playwright.expect(found).to_contain_text(text, timeout=60_000)
        return found

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def at_rank(self, rank: int) -> None:
        """Waits until a flag is shown, with all that is fetched for it."""
        self.see(f"#span-title[data-rank='{rank}']")
        self.see("#main[aria-busy='false']")

    def expect_accessible(self) -> None:
        """Nothing that axe-core calls serious; skipped where it is not installed."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        found = axe.run(self.page).response["violations"]
        serious = [f for f in found if f["impact"] in ("serious", "critical")]
        assert serious == [], [(f["id"], f["nodes"][0]["html"]) for f in serious]

    def leave(self) -> None:
        self.context.close()
        assert self.problems == []
