"""The page of a run as a person has it: opened from disk in a real browser, which logs no error and asks no network."""

import dataclasses
import json
import re
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
from vibe_harness.report.run_page import run_page, write_run_page
from vibe_harness.store.results import Results, TaskResult, read_results
from vibe_harness.store.run_folder import RunFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.slow

SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
RIGHT_TO_LEFT = "قصة قصيرة عن صوت"


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


def opened(page: "Page", path: Path, size: str = "desktop", part: str = "") -> "Page":
    page.set_viewport_size(SIZES[size])
    page.goto("about:blank")  # so that another part of the same page is loaded anew
    page.goto(path.as_uri() + part)
    page.locator("#answer h3, #answer p").first.wait_for()
    return page


def shown_count(page: "Page", words: str) -> None:
    expect(page.locator("#said")).to_have_text(words)


def first_screen(page: "Page", place: "Locator") -> bool:
    """Whether all of an element is seen without scrolling."""
    box, size = place.bounding_box(), page.viewport_size
    assert box is not None and size is not None
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"] and box["x"] + box["width"] <= size["width"]


def fits(page: "Page") -> bool:
    """Whether nothing makes the page itself scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def body(page: "Page") -> str:
    return page.locator("#answer .text").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_the_page_is_for_everyone(page: "Page", run: RunFolder, size: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    opened(page, run.path / "report.html", size)
    page.evaluate("document.querySelectorAll('details').forEach((drawer) => { drawer.open = true; })")
    assert violations(page) == []
    assert fits(page)


@pytest.mark.parametrize("size", list(SIZES))
def test_the_first_screen_holds_verdicts_with_their_plots(page: "Page", run: RunFolder, size: str) -> None:
    opened(page, run.path / "report.html", size)
    rows = page.locator("#verdict .forest > li")
    assert rows.count() == 4
    seen = [row for row in rows.all() if first_screen(page, row.locator(".verdict"))]
    assert len(seen) == 4 and all(first_screen(page, row.locator(".plot")) for row in seen)
    words = "\n".join(page.locator("#verdict .verdict").all_inner_texts())
    assert "Answers to advisory shift with gender: true shift" in words and "adjusted p" in words
    assert "No shift with accent shown in advisory: no more than" in words
    if size == "desktop":
        assert first_screen(page, page.locator("#verdict .axis")) and first_screen(
            page, page.locator("#verdict .legend")
        )


def test_a_plot_stands_where_its_figures_are(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    results = read_results(run.results)
    task = next(
        number for number, task in enumerate(results.tasks) if (task.task, task.dimension) == ("advisory", "gender")
    )
    score = next(one for one in results.tasks[task].scores if one.metric == "ntvd" and one.attribute is None)
    row, axis = page.locator("#verdict .forest > li").nth(task), page.locator("#verdict .axis span")
    ticks = {float(tick.inner_text()): _middle(tick) for tick in axis.all()}
    low, high = min(ticks), max(ticks)

    def at(value: float) -> float:
        return ticks[low] + (ticks[high] - ticks[low]) * (value - low) / (high - low)

    assert score.interval is not None and score.value is not None and score.null_p95 is not None
    assert _middle(row.locator(".dot")) == pytest.approx(at(score.value), abs=2)
    span, chance = row.locator(".span").bounding_box(), row.locator(".chance").bounding_box()
    assert span is not None and chance is not None
    assert span["x"] == pytest.approx(at(score.interval[0]), abs=2)
    assert span["x"] + span["width"] == pytest.approx(at(score.interval[1]), abs=2)
    assert chance["x"] + chance["width"] == pytest.approx(at(score.null_p95), abs=3)


def _middle(place: "Locator") -> float:
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2


def test_bars_of_all_attributes_have_one_scale(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    page.evaluate("document.querySelectorAll('details').forEach((drawer) => { drawer.open = true; })")
    pairs = page.locator("#shifts .pair").evaluate_all(
        """all => all.map((pair) => [parseFloat(pair.querySelector("b").textContent),
            pair.querySelector("i").getBoundingClientRect().width / (pair.getBoundingClientRect().width
            - pair.querySelector("b").getBoundingClientRect().width)])"""
    )
    lengths = [length / share for share, length in pairs if share >= 20]
    assert len(lengths) > 10 and max(lengths) / min(lengths) < 1.05


def test_answers_are_filtered_by_task_group_attribute_value_and_text(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    shown_count(page, "192 answers")
    page.get_by_role("combobox", name="task", exact=True).select_option("advisory")
    page.get_by_role("combobox", name="gender", exact=True).select_option("female")
    shown_count(page, "48 of 192 answers")
    page.get_by_role("combobox", name="attribute", exact=True).select_option("activity")
    page.get_by_role("combobox", name="value has").fill("yoga")
    expect(page.locator("#list [role=option]").filter(has_not_text="yoga")).to_have_count(0)
    rows = page.locator("#list [role=option]").all_inner_texts()
    assert rows and all("yoga" in row and "advisory, female" in row for row in rows)
    expect(page.locator("#answer mark", has_text="yoga").first).to_be_visible()
    page.get_by_role("combobox", name="value has").fill("no such thing")
    shown_count(page, "no such answer")
    expect(page.locator("#answer")).to_contain_text("No answer fits")
    page.get_by_role("combobox", name="value has").fill("")
    page.get_by_role("searchbox", name="text has").fill("HIKING")
    expect(page.locator("#said")).to_contain_text("of 192 answers")
    expect(page.locator("#answer .text")).to_contain_text("hiking", ignore_case=True)
    assert violations(page) == []
    page.get_by_role("combobox", name="task", exact=True).select_option("story")
    page.get_by_role("combobox", name="attribute", exact=True).select_option("")
    page.get_by_role("searchbox", name="text has").fill("middle-class")  # "-" is a sign of regular expressions
    expect(page.locator("#answer mark", has_text="middle-class").first).to_be_visible()


def test_the_keyboard_goes_through_the_answers(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    position = page.locator("#answer .steps")

    def at(place: int) -> None:
        expect(position).to_have_text(re.compile(rf"^{place} of 192"))

    first = body(page)
    page.keyboard.press("j")
    at(2)
    assert body(page) != first and page.locator("#list [aria-selected=true]").get_attribute("aria-posinset") == "2"
    page.keyboard.press("k")
    at(1)
    page.keyboard.press("k")  # nothing is before the first
    at(1)
    page.locator("#list").focus()
    for key, place in (("ArrowDown", 2), ("End", 192), ("ArrowUp", 191), ("Home", 1), ("PageDown", 11)):
        page.keyboard.press(key)
        at(place)
    chosen = page.locator("#list [aria-selected=true]")
    assert chosen.get_attribute("id") == page.locator("#list").get_attribute("aria-activedescendant")
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="text has")
    expect(box).to_be_focused()
    page.keyboard.type("jk")  # letters, where somebody types
    assert box.input_value() == "jk"


def test_the_address_names_the_answer(page: "Page", run: RunFolder) -> None:
    path = run.path / "report.html"
    stored = [json.loads(line) for line in run.responses.read_text(encoding="utf-8").splitlines()]
    wanted = stored[150]
    opened(page, path, part=f"#request={wanted['request']}")
    expect(page.locator("#answer")).to_contain_text(f"request {wanted['request']}")
    assert " ".join(body(page).split()) == " ".join(wanted["text"].split())
    assert first_screen(page, page.locator("#answer h3"))
    page.keyboard.press("j")
    expect(page.locator("#answer")).not_to_contain_text(wanted["request"])
    address = page.url
    shown = body(page)
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#answer .steps")).to_contain_text("of 192")
    page.wait_for_function("(text) => document.querySelector('#answer .text')?.innerText === text", arg=shown)
    opened(page, path, part="#request=nonsense")
    expect(page.locator("#said")).to_contain_text("no request nonsense")


def test_a_value_leads_to_its_answers(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    link = page.locator("#shifts details[open] a.find").first
    value = link.inner_text()
    for _ in range(2):  # the same link once more, after another filter
        link.click()
        expect(page.locator("#said")).to_contain_text("of 192 answers")
        assert page.get_by_role("combobox", name="value has").input_value() == f'"{value}"'
        assert page.locator("#answer dd", has_text=value).count() >= 1
        page.get_by_role("combobox", name="value has").fill("")


def test_links_of_values_with_quotes_and_signs_are_followed(page: "Page", hostile: RunFolder) -> None:
    opened(page, hostile.path / "report.html")
    links = page.locator("#shifts a.find")
    assert links.count() > 4
    for link in links.all():
        link.click()
        expect(page.locator("#said")).to_have_text(re.compile(r"^\d of 8 answers$"))
        page.evaluate("history.replaceState(null, '', '#')")


def test_a_clip_plays(page: "Page", run: RunFolder) -> None:
    opened(page, run.path / "report.html")
    audio = page.locator("#answer audio")
    # The promise fails where the browser cannot load or decode the clip, and holds once it is playing.
    assert audio.evaluate("async element => { await element.play(); return element.paused; }") is False
    clip = Path(unquote(urlsplit(audio.evaluate("element => element.currentSrc")).path))
    assert audio.evaluate("element => element.duration") == pytest.approx(soundfile.info(clip).duration, abs=0.05)
    assert audio.get_attribute("aria-label").startswith("clip demo/")


def test_what_hostile_models_write_is_text(page: "Page", hostile: RunFolder) -> None:
    opened(page, hostile.path / "report.html", "phone")
    shown_count(page, f"{len(HOSTILE)} answers")
    assert "taken over" not in page.title() and page.locator("#main").is_visible()
    said = []
    for place in range(len(HOSTILE)):
        expect(page.locator("#answer .steps")).to_contain_text(f"{place + 1} of {len(HOSTILE)}")
        assert page.locator("#browser img, #browser script, #browser style, main script, main img").count() == 0
        assert fits(page)
        said.append(body(page))
        page.keyboard.press("j")
    everything = "\n".join(said)
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[2], "مرحبا and שלום", "👩🏽‍🚀 emoji 🏳️‍🌈", HOSTILE[6]):
        assert text in everything, text[:50]
    assert "NUL ␀, escape ␛[31m, bell ␇" in everything and "\\u202eright to left" in everything
    assert "(no text)" in everything
    assert violations(page) == []


def test_clips_with_awkward_names_play(page: "Page", hostile: RunFolder) -> None:
    opened(page, hostile.path / "report.html")
    for place in range(len(NAMES)):
        expect(page.locator("#answer .steps")).to_contain_text(f"{place + 1} of {len(NAMES)}")
        audio = page.locator("#answer audio")
        assert audio.evaluate("async element => { await element.play(); return element.duration > 0; }")
        page.keyboard.press("j")


def test_a_clip_that_went_away_shows_its_path(browser: "Browser", hostile: RunFolder, tmp_path: Path) -> None:
    moved = tmp_path / "report.html"
    moved.write_bytes((hostile.path / "report.html").read_bytes())
    page = patient_page(browser)  # the browser logs what it cannot find
    page.goto(moved.as_uri())
    page.locator("#answer audio").evaluate("element => element.load()")
    page.get_by_text("The clip is not where it was").first.wait_for()
    page.close()


def crowded(task: TaskResult, count: int) -> TaskResult:
    """The same result over `count` groups, each with the shares of one of the two there were."""
    names = [f"accent of region {number}" for number in range(count)]
    old = list(task.groups)
    text = json.dumps([dataclasses.asdict(score) for score in task.scores])
    scores = json.loads(text)
    for score in scores:
        detail = score["detail"]
        for held in ("distribution", "kept_share_by_group"):
            if held in detail:
                detail[held] = {name: detail[held][old[place % 2]] for place, name in enumerate(names)}
        for part in detail.get("contributions", []):
            part["by_group"] = {name: part["by_group"][old[place % 2]] for place, name in enumerate(names)}
    return dataclasses.replace(
        task, groups={name: task.groups[old[place % 2]] for place, name in enumerate(names)},
        scores=[dataclasses.replace(kept, detail=one["detail"]) for kept, one in zip(task.scores, scores, strict=True)],
    )  # fmt: skip


def named(results: Results, name: str) -> Results:
    """Results in which model, corpus, tasks and dimensions have this name; a number keeps them apart."""
    tasks = [
        dataclasses.replace(task, task=f"{name}{number}", dimension=name, variant=name)
        for number, task in enumerate(results.tasks)
    ]
    return dataclasses.replace(results, model=name, corpus=name, tasks=tasks)


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("case", ["forty groups", "one task", "nothing shown", "nothing reliable", "long", "rtl"])
def test_pages_stay_readable(page: "Page", run: RunFolder, tmp_path: Path, case: str, size: str) -> None:
    results = read_results(run.results)
    by_accent = [task for task in results.tasks if task.dimension == "accent"]
    by_gender = next(task for task in results.tasks if (task.task, task.dimension) == ("advisory", "gender"))
    changed = {
        "forty groups": dataclasses.replace(results, tasks=[crowded(by_gender, 40), *by_accent]),
        "one task": dataclasses.replace(results, tasks=[by_gender]),
        "nothing shown": dataclasses.replace(results, tasks=by_accent),
        "nothing reliable": dataclasses.replace(
            results, tasks=[dataclasses.replace(task, reliable=False, warnings=["why"]) for task in results.tasks]
        ),
        "long": named(results, "verylongname" * 17),
        "rtl": named(results, RIGHT_TO_LEFT),
    }[case]
    path = tmp_path / "report.html"
    path.write_text(run_page(changed, run.record()), encoding="utf-8")
    page.set_viewport_size(SIZES[size])
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((drawer) => { drawer.open = true; })")
    assert fits(page) and violations(page) == []
    first = page.locator("#verdict .forest > li").first
    assert first_screen(page, first.locator(".verdict")) and first_screen(page, first.locator(".plot"))
    tags = set(page.locator("#verdict .tag").all_inner_texts())
    shown = {"nothing shown": {"none shown"}, "nothing reliable": {"not reliable"}, "one task": {"shift shown"}}
    assert tags == shown.get(case, tags)
    if case in ("nothing shown", "nothing reliable"):
        assert page.locator("#shifts table .star").count() == 0  # no value looks as if it were a finding
    if case == "forty groups":
        points = page.locator(".strip").first.locator("i")
        assert points.count() == 40 and page.locator(f"#{'task-1'} .pair").count() == 0
        assert "mean of the groups" in page.locator("#verdict .named").first.inner_text()


@pytest.fixture
def printed(page: "Page") -> Iterator["Page"]:
    page.emulate_media(media="print")
    yield page
    page.emulate_media(media="screen")


def test_in_print_there_are_no_controls(printed: "Page", run: RunFolder) -> None:
    printed.goto((run.path / "report.html").as_uri())
    assert printed.locator("#verdict").is_visible() and not printed.locator("nav.contents").is_visible()
    assert not printed.locator("#filters").is_visible() and not printed.locator("#answer").is_visible()


def test_a_print_lacks_nothing_that_was_folded_or_scrolled(printed: "Page", run: RunFolder) -> None:
    printed.goto((run.path / "report.html").as_uri())
    printed.set_viewport_size({"width": 718, "height": 1000})  # A4 within its margins
    widths = printed.locator(".wide").evaluate_all("all => all.map((one) => one.scrollWidth)")
    assert max(widths) <= 718 and fits(printed)
    folded = printed.locator("main > .page details:not([open]) :is(table, pre)").filter(visible=True)
    everything = printed.locator("main > .page section:not(#answers) :is(table, pre)")
    assert folded.count() > 0 and all(one.bounding_box()["height"] > 10 for one in everything.all())
