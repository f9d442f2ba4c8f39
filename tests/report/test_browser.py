"""The pages as a person has them: opened from disk in a real browser, which logs no error and asks no network."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
import soundfile
from playwright.sync_api import expect

from tests.browser import patient_page, violations
from tests.report.runs import HOSTILE, NAMES, hostile_run
from vibe_harness import evaluate
from vibe_harness.report.run_page import write_run_page
from vibe_harness.store.run_folder import RunFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.slow

SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("runs") / "demo"
    evaluate("simulated", ["story", "advisory"], permutations=199, output_path=path)
    folder = RunFolder(path)
    write_run_page(folder, path / "report.html")
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = hostile_run(tmp_path_factory.mktemp("hostile"))
    write_run_page(folder, folder.path / "report.html")
    return folder


def opened(page: "Page", path: Path, size: str = "desktop") -> "Page":
    page.set_viewport_size(SIZES[size])
    page.goto(path.as_uri())
    return page


def answers(page: "Page") -> "Locator":
    page.wait_for_selector("#list article")
    return page.locator("#list article")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_the_run_page_is_for_everyone(page: "Page", run: RunFolder, size: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    opened(page, run.path / "report.html", size)
    answers(page)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]


def test_what_a_score_comes_to_is_no_column_of_single_words_on_a_phone(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html", "phone")
    line = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.said')).lineHeight)")
    heights = [row.bounding_box()["height"] for row in page.locator("tr:has(.said)").all()]
    assert len(heights) >= 4 and max(heights) < 4 * line


def test_answers_are_filtered_by_task_group_attribute_and_value(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    assert answers(page).count() == 20
    assert page.locator("#said").inner_text() == "1 to 20 of 192 answers"
    page.get_by_role("combobox", name="task", exact=True).select_option("advisory")
    page.get_by_role("combobox", name="gender", exact=True).select_option("female")
    page.get_by_text("1 to 20 of 48 answers").wait_for()
    page.get_by_role("combobox", name="attribute", exact=True).select_option("activity")
    page.get_by_role("combobox", name="value has").fill("yoga")
    expect(page.locator("#list article").filter(has_not_text="yoga")).to_have_count(0)
    found = answers(page).all_inner_texts()
    assert found and all("yoga" in text and "female" in text and text.startswith("advisory") for text in found)
    page.get_by_role("combobox", name="value has").fill("no such thing")
    page.get_by_text("no such answer").wait_for()


def test_later_answers_are_a_key_away(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    first = answers(page).first.inner_text()
    page.locator("#on").focus()
    page.keyboard.press("Enter")
    page.get_by_text("21 to 40 of 192 answers").wait_for()
    assert answers(page).first.inner_text() != first
    assert page.locator("#back").is_enabled()


def test_a_clip_plays(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    audio = answers(page).first.locator("audio")
    # The promise fails where the browser cannot load or decode the clip, and holds once it is playing.
    assert audio.evaluate("async element => { await element.play(); return element.paused; }") is False
    clip = Path(unquote(urlsplit(audio.evaluate("element => element.currentSrc")).path))
    assert audio.evaluate("element => element.duration") == pytest.approx(soundfile.info(clip).duration, abs=0.05)
    assert audio.get_attribute("aria-label").startswith("clip demo/")


def test_what_hostile_models_write_is_text(page: "Page", hostile: RunFolder) -> None:
    opened(page, hostile.path / "report.html", "phone")
    cards = answers(page)
    assert cards.count() == len(HOSTILE)
    assert "taken over" not in page.title() and page.locator("#main").is_visible()
    assert page.locator("#list img, #list script, #list style, main script, main img").count() == 0
    said = "\n".join(cards.locator(".text").all_inner_texts())
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[2], "مرحبا and שלום", "👩🏽‍🚀 emoji 🏳️‍🌈", HOSTILE[6]):
        assert text in said, text[:50]
    assert "NUL ␀, escape ␛[31m, bell ␇" in said and "\\u202eright to left" in said
    assert "(no text)" in said
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []


def test_clips_with_awkward_names_play(page: "Page", hostile: RunFolder) -> None:
    opened(page, hostile.path / "report.html")
    count = answers(page).locator("audio").count()
    assert count == len(NAMES)
    played = page.evaluate(
        """async () => {
            const all = [...document.querySelectorAll("#list audio")];
            await Promise.all(all.map((audio) => audio.play().then(() => audio.pause())));
            return all.map((audio) => audio.duration > 0);
        }"""
    )
    assert played == [True] * len(NAMES)


def test_a_clip_that_went_away_shows_its_path(browser: "Browser", hostile: RunFolder, tmp_path: Path) -> None:
    moved = tmp_path / "report.html"
    moved.write_bytes((hostile.path / "report.html").read_bytes())
    page = patient_page(browser)  # the browser logs what it cannot find
    page.goto(moved.as_uri())
    answers(page).first.locator("audio").evaluate("element => element.load()")
    page.get_by_text("The clip is not where it was").first.wait_for()
    page.close()


@pytest.fixture
def printed(page: "Page") -> Iterator["Page"]:
    page.emulate_media(media="print")
    yield page
    page.emulate_media(media="screen")


def test_in_print_there_are_no_controls(printed: "Page", run: RunFolder) -> None:
    opened(printed, run.path / "report.html")
    answers(printed)
    assert not printed.locator("#filters").is_visible() and not printed.locator("#list audio").first.is_visible()


def test_a_print_lacks_nothing_that_was_folded_or_scrolled(printed: "Page", run: RunFolder) -> None:
    opened(printed, run.path / "report.html")
    printed.set_viewport_size({"width": 718, "height": 1000})  # A4 within its margins
    widths = printed.locator(".wide").evaluate_all("all => all.map((one) => one.scrollWidth)")
    assert max(widths) <= 718
    folded = printed.locator("details:not([open]) :is(table, pre)")
    assert folded.count() > 0 and all(one.bounding_box()["height"] > 10 for one in folded.all())


def test_on_a_phone_the_verdict_stands_beside_the_score_and_no_row_is_stretched(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html", "phone")
    verdict = page.get_by_role("table", name="In short").locator("tbody td.said").first
    assert verdict.bounding_box()["x"] + 80 < SIZES["phone"]["width"]
    rows = page.locator(".wide tbody tr:visible")
    assert max(row.bounding_box()["height"] for row in rows.all()) < 160
