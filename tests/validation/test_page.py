"""The judge's page in a real browser, by the keyboard as a judge uses it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import patient_page, violations
from tests.support import PATIENCE_S, hears_interrupts
from tests.validation.conftest import claim, drawn, made_sample
from vibe_harness.records import Reading
from vibe_harness.validation.judgments import Judge, Judgment, Verdict
from vibe_harness.validation.sample import SampledResponse, read_sample, write_sample
from vibe_harness.validation.server import JudgingServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

RIGHT, WRONG = Verdict
EVIL = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"
RTL = "\u202eabc\u2066</p>\x07"


def responses() -> list[SampledResponse]:
    return [
        drawn(1, "She is a nurse 😀 who likes yoga and tennis.", {
            "occupation": [claim(["nurse"])], "hobby": [claim(["yoga", "tennis"])],
        }),
        drawn(2, f"A farmer. {EVIL} {RTL}", {
            "occupation": [claim([EVIL], raw=[EVIL.upper()])], "situation": [claim(reading=Reading.UNKNOWN)],
        }),
        drawn(3, "He mends clocks and sings.", {
            "occupation": [claim(["clockmaker"], "rules"), claim(["singer"], "model")],
            "hobby": [claim(reading=Reading.UNPARSED)],
        }),
    ]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sample(tmp_path, made_sample(responses(), extractors=("rules", "model")))
    return tmp_path


Open = Callable[..., JudgingServer]


@pytest.fixture
def serve(folder: Path) -> Iterator[Open]:
    with ExitStack() as opened:

        def start(name: str = "ann", place: Path = folder) -> JudgingServer:
            sample = read_sample(place)
            server = opened.enter_context(JudgingServer(sample, Judge(place, sample, name)))
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            opened.callback(thread.join)
            opened.callback(server.shutdown)
            return server

        yield start


def judged(folder: Path, name: str = "ann") -> dict[str, Judgment]:
    return Judge(folder, read_sample(folder), name).judgments()


def enter(page: Page, url: str) -> None:
    page.goto(url)
    page.locator(".claim[aria-current=true], #done:visible").first.wait_for()


def said(page: Page) -> str:
    """What is read aloud of the chosen card."""
    return page.locator("#said").inner_text()


def idle(page: Page) -> None:
    page.locator("body[aria-busy=false]").wait_for()


def press(page: Page, keys: str, count: str = "") -> None:
    """Press keys one after the other, each answered before the next; `count` is then how many are judged."""
    for key in keys:
        page.keyboard.press(key)
        idle(page)
    assert count in page.locator("#count").inner_text()


def test_judge_undo_stop_go_on_finish(serve: Open, folder: Path, page: Page) -> None:
    server = serve()
    enter(page, server.url)
    assert said(page) == "occupation: nurse" and "Response 1 of 3" in page.locator("#where").inner_text()
    assert page.locator("mark.now").all_inner_texts() == ["nurse"]
    press(page, "r", "1 of 6 judged")
    assert said(page) == "hobby: yoga, tennis" and page.locator("mark.now").all_inner_texts() == ["yoga", "tennis"]
    press(page, "2w", "2 of 6 judged")  # the second item is wrong, and so is the list
    assert judged(folder)["r001/hobby/1"] == Judgment("r001/hobby/1", WRONG, ("tennis",))
    assert "Response 2 of 3" in page.locator("#where").inner_text()
    press(page, "u", "1 of 6 judged")
    assert said(page) == "hobby: yoga, tennis" and "r001/hobby/1" not in judged(folder)
    press(page, "r", "2 of 6 judged")

    server.shutdown()  # the judge stops, and goes on another day
    enter(page, serve().url)
    assert "2 of 6 judged" in page.locator("#count").inner_text()
    assert "Response 2 of 3" in page.locator("#where").inner_text()
    press(page, "p")  # back to the first response: what was judged stands there, and can be changed
    assert said(page) == "hobby: yoga, tennis" and page.locator(".claim.right").count() == 2
    press(page, "w", "2 of 6 judged")
    press(page, "rw", "4 of 6 judged")
    assert page.locator("h3 span", has_text="reading 1 of 2").count() == 1
    press(page, "rw", "6 of 6 judged")
    assert page.locator("#done").is_visible() and not page.locator("#read").is_visible()
    assert [one.verdict for one in judged(folder).values()] == [RIGHT, WRONG, RIGHT, WRONG, RIGHT, WRONG]
    press(page, "r1")  # nothing is shown that these could judge
    assert len(judged(folder)) == 6
    press(page, "u", "5 of 6 judged")
    assert page.locator("#read").is_visible()
    press(page, "r", "6 of 6 judged")
    page.reload()
    page.locator("#done").wait_for()


def test_two_judges_at_once_lose_nothing(serve: Open, tmp_path: Path, browser: Browser) -> None:
    place = tmp_path / "many"
    claims = {"occupation": [claim(["nurse"])], "hobby": [claim(["golf"])]}
    write_sample(place, made_sample([drawn(number, f"a nurse {number}", claims) for number in range(1, 13)]))
    servers = [serve("ann", place), serve("ben", place), serve("ann", place)]  # and one of them in two windows
    pages = [patient_page(browser) for _ in servers]
    for page, server in zip(pages, servers, strict=True):
        enter(page, server.url)
    for _ in range(8):
        for page, key in zip(pages, "rwr", strict=True):
            page.keyboard.press(key)
    for page in pages:
        idle(page)
    for page, key in zip(pages[:2], "rw", strict=True):
        while not page.locator("#done").is_visible():
            press(page, key)
    for name, verdict in (("ann", RIGHT), ("ben", WRONG)):
        assert len(judged(place, name)) == 24 and {one.verdict for one in judged(place, name).values()} == {verdict}
    for page in pages:
        page.close()


def test_what_a_model_wrote_is_text(serve: Open, page: Page) -> None:
    enter(page, serve().url)
    press(page, "rr")
    assert page.locator("#text").inner_text().startswith(f"A farmer. {EVIL}")
    assert page.title() == "Right or wrong?" and page.locator("main img, main script").count() == 0
    assert (
        page.locator(".says").first.inner_text() == EVIL and EVIL.upper() in page.locator(".about").first.inner_text()
    )


def test_without_the_program_nothing_counts_as_judged(serve: Open, folder: Path, browser: Browser) -> None:
    page = patient_page(browser)  # where the browser may log the failed call
    server = serve()
    enter(page, server.url)
    press(page, "r", "1 of 6 judged")
    server.shutdown()
    server.server_close()
    page.evaluate(
        "() => { window.fetch = () => Promise.reject(new TypeError('gone')) }"
    )  # a connection kept alive would do
    page.keyboard.press("w")
    page.locator("#trouble").wait_for()
    assert "Not stored" in page.locator("#trouble").inner_text() and "1 of 6" in page.locator("#count").inner_text()
    assert page.locator(".claim.wrong").count() == 0 and len(judged(folder)) == 1
    page.close()


def test_keys_pressed_ahead_never_judge_what_was_not_seen(serve: Open, folder: Path, page: Page) -> None:
    enter(page, serve().url)
    page.evaluate("for (let n = 0; n < 6; n++) pressed('r')")
    idle(page)
    assert list(judged(folder)) == ["r001/occupation/1", "r001/hobby/1"]


def test_single_keys_can_be_turned_off_and_leave_shortcuts_alone(serve: Open, folder: Path, page: Page) -> None:
    enter(page, serve().url)
    page.keyboard.press("Control+r")
    page.locator(".claim").first.wait_for()
    page.locator("#shortcuts").uncheck()
    press(page, "rrr")
    assert judged(folder) == {}
    page.locator(".claim").nth(1).get_by_role("button", name="Right").click()
    idle(page)
    assert list(judged(folder)) == ["r001/hobby/1"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_accessible(serve: Open, page: Page, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    enter(page, serve().url)
    press(page, "r2wp")  # one right, one wrong with an item marked
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    press(page, "nrr")
    assert violations(page) == []
    press(page, "rr")
    page.locator("#done").wait_for()
    assert violations(page) == []


def test_the_command_serves_the_page_until_it_is_interrupted(folder: Path, page: Page) -> None:
    words = ["validate-extraction", "judge", str(folder), "--judge=ann", "--no-open"]
    process = subprocess.Popen(
        [sys.executable, "-m", "vibe_harness", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_interrupts,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ann: 0 of 6 readings judged\n"
        url = process.stdout.readline().split()[-1]
        door = folder / "open-ann.html"  # which the browser is given: an address would stand in the process list
        process.stdout.readline()
        assert url in door.read_text(encoding="utf-8") and door.stat().st_mode & 0o077 == 0
        page.goto(door.as_uri())
        page.wait_for_url(url)
        enter(page, url)
        press(page, "rr", "2 of 6 judged")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "") and not door.exists() and out.endswith("ann: 2 of 6 readings judged\n")
