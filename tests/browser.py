"""A real browser for the tests: Debian's Chromium, opened on files of this machine and kept off every network."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import PATIENCE_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]
PATIENCE_MS = 1000 * PATIENCE_S


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Headless Chromium. Tests that use it are marked slow; they skip, with a reason, where there is none.

    One a module: while Playwright is open no other test in this process could run an event loop.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium (Debian's package of that name)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=QUIET, timeout=PATIENCE_MS)
        yield opened
        opened.close()


def patient_page(browser: "Browser") -> "Page":
    """A fresh page that waits for what must come, and may log what it likes."""
    opened = browser.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    return opened


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """A fresh page; the test fails where the page logged an error or asked anything of a network but the loopback."""
    wrong: list[str] = []
    opened = patient_page(browser)
    opened.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda asked: None if _here(asked.url) else wrong.append(f"asked the network: {asked.url}"))
    yield opened
    opened.close()
    assert wrong == []


def violations(page: "Page") -> list[str]:
    """What axe-core finds against the page as it stands, a line each: rule, help, the elements."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{rule['id']}: {rule['help']}: {[node['html'] for node in rule['nodes'][:3]]}" for rule in found]


def screenshot(page: "Page", path: Path) -> Path:
    """The whole page as a PNG at `path`."""
    page.screenshot(path=path, full_page=True)
    return path


def _here(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1", "http://localhost"))
