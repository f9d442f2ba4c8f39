"""The leaderboard as a person has it: opened from disk in a real browser."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser import violations
from tests.choice_corpora import quiz
from tests.report.boards import GROUP, entry, small_run, task
from vibe_harness import evaluate
from vibe_harness.cli.main import main
from vibe_harness.progress import Progress
from vibe_harness.report.board_building import build_board
from vibe_harness.report.board_runs import Entry
from vibe_harness.report.site import write_site

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.slow

SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    runs = []
    for strength in (0.2, 0.5, 0.8):
        runs.append(folder / f"strength {strength}")
        evaluate(
            "simulated", ["story", "advisory", "casting"], model_args={"strength": strength}, permutations=399,
            output_path=runs[-1],
        )  # fmt: skip
    runs.append(folder / "choice")  # of a model of its own: its choices stand beside no free answers of the others
    evaluate("simulated", ["biasinear"], quiz(folder / "quiz"), model_args={"knows": 1}, permutations=19,
             output_path=runs[-1])  # fmt: skip
    output = folder / "site"
    with pytest.raises(SystemExit) as ended:
        main(["leaderboard", *map(str, runs), "--output", str(output), "--include-simulated", "--include-published"])
    assert ended.value.code == 0
    return output


def opened(page: Page, path: Path, size: str = "desktop", part: str = "") -> Page:
    page.set_viewport_size(SIZES[size])
    page.goto(path.as_uri() + part)
    return page


def names(table: Locator) -> list[str]:
    return [row.strip() for row in table.locator("tbody tr:visible th .name").all_inner_texts()]


def on_first_screen(one: Locator, size: str) -> bool:
    box = one.bounding_box()
    return (
        box is not None
        and box["x"] + box["width"] <= SIZES[size]["width"]
        and (box["y"] + box["height"] <= SIZES[size]["height"])
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_scores_with_interval_and_chance_are_on_the_first_screen(
    page: Page, site: Path, size: str, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    opened(page, site / "index.html", size)
    rows = page.locator("#scores tbody tr:visible")
    seen = [row for row in rows.all() if on_first_screen(row.locator("td").first, size)]
    assert len(seen) >= 2
    assert "chance" in seen[0].locator("td").first.inner_text() and " to " in seen[0].locator("td").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_every_part_is_for_everyone(page: Page, site: Path, size: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    opened(page, site / "index.html", size)
    for part in ("Scores", "Trust", "Published", "Tasks and corpora", "Prompts and files"):
        page.get_by_role("link", name=part).click()
        expect(page.locator("#tabs [aria-current]")).to_have_text(part)
        assert page.locator(".panel:visible").count() == 1
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    page.get_by_role("link", name="Scores").click()
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/models/*")
    assert "strength" in page.locator("h1").inner_text()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]


def test_a_part_has_an_address_and_published_scores_stand_in_theirs(page: Page, site: Path) -> None:
    opened(page, site / "index.html")
    assert not page.get_by_role("table", name="Scores by gender on CREMA-D").is_visible()
    opened(page, site / "index.html", part="#published")
    page.reload()
    table = page.get_by_role("table", name="Scores by gender on CREMA-D")
    assert table.is_visible() and not page.get_by_role("table", name="Scores by gender on demo").is_visible()
    assert table.locator(".mark").count() == 0


def test_tables_sort_by_keyboard(page: Page, site: Path) -> None:
    opened(page, site / "index.html", part="#published")
    table = page.get_by_role("table", name="Scores by gender on CREMA-D")
    heading = table.locator("thead th").nth(1)
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    figures = [float(text) for text in table.locator("tbody td:nth-child(2) b").all_inner_texts()]
    assert figures == sorted(figures) and figures[0] == 2.45
    page.keyboard.press("Space")
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert names(table)[0] == "DeSTA2.5-Audio"
    assert table.locator("[aria-sort]").count() == 1


def test_models_are_searched_and_blocks_and_columns_chosen(page: Page, site: Path) -> None:
    opened(page, site / "index.html")
    table = page.get_by_role("table", name="Scores by gender on demo")
    assert len(names(table)) == 3
    page.get_by_label("Search models").fill("strength 0.5")
    assert len(names(table)) == 1 and "strength 0.5" in names(table)[0]
    page.get_by_label("Search models").fill("")
    page.get_by_label("dimension").select_option("accent")
    assert not table.is_visible() and page.get_by_role("table", name="Scores by accent on demo").is_visible()
    page.get_by_label("corpus").select_option("quiz")
    assert page.locator("#said").inner_text() == "0 rows"
    page.get_by_label("corpus").select_option("")
    page.get_by_label("dimension").select_option("gender")
    section = page.locator("section.block", has=table)
    section.locator("summary").click()
    assert "mean of tasks" not in table.locator("thead").inner_text()
    section.get_by_label("mean of tasks").check()
    assert "mean of tasks (misleading)" in table.locator("thead").inner_text()
    section.get_by_label("story").uncheck()
    assert "story" not in table.locator("thead").inner_text()


def test_in_print_everything_stands_and_no_control(page: Page, site: Path) -> None:
    opened(page, site / "index.html")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 within its margins
    assert not page.locator("#controls").is_visible()
    assert page.locator("#scores table").first.is_visible() and page.locator("#published table").first.is_visible()
    folded = page.locator("details:not([open]) pre")
    assert folded.count() > 0 and all(one.bounding_box()["height"] > 10 for one in folded.all())


LONG = "a-model-with-" + "a-very-long-name-" * 11
RIGHT_TO_LEFT = "نموذج اختبار מודל"


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page for each kind of odd board."""
    folder = tmp_path_factory.mktemp("odd")
    record = small_run(folder / "run").record()
    forty = {f"accent number {n}": GROUP for n in range(40)}

    def one(name: str, value: float, **changes: object) -> Entry:
        own = task("story", {"occupation": value}, interval=(value - 5, value + 5), **changes)  # type: ignore[arg-type]
        return entry(record, name, [own])

    boards = {
        "one task": [one("a", 20.0)],
        "forty groups": [one(name, 20.0, groups=forty, dimension="accent") for name in "abc"],
        "nothing reliable": [one(n, 20.0, reliable=False, warnings=["too few answers were read"]) for n in "abc"],
        "nothing defined": [
            entry(record, "a", [task("story", {"occupation": None}, None, warnings=["no ntvd: no value"])])
        ],
        "long name": [one(LONG, 20.0), one("b", 30.0)],
        "right to left": [one(RIGHT_TO_LEFT, 20.0), one("b", 30.0)],
        "many tasks": [entry(record, "a", [task(f"task_{n}", {"x": 9.0}, interval=(5, 12)) for n in range(12)])],
    }
    pages = {}
    for name, entries in boards.items():
        pages[name] = write_site(folder / name, build_board(entries), entries, (), Progress())
    return pages


ODD = ("one task", "forty groups", "nothing reliable", "nothing defined", "long name", "right to left", "many tasks")


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("kind", ODD)
def test_odd_boards_stay_readable(page: Page, odd: dict[str, Path], kind: str, size: str) -> None:
    opened(page, odd[kind], size)
    first = page.locator("#scores tbody tr").first
    assert on_first_screen(first.locator("td").first, size)
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    assert first.bounding_box()["height"] < 220
    assert violations(page) == []
    assert page.locator("#scores .mark").count() == 0 or kind not in ("nothing reliable", "nothing defined", "one task")
    page.locator("#scores tbody th a").first.click()
    page.wait_for_url("**/models/*")
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    assert violations(page) == []


def test_a_filter_by_size_licence_and_weights(page: Page, tmp_path: Path) -> None:
    record = small_run(tmp_path / "run").record()
    facts = {
        "small": {"parameters": 3, "open_weights": True, "licence": "MIT"},
        "large": {"parameters": 30, "open_weights": True, "licence": "Apache-2.0"},
        "served": {"open_weights": False, "licence": "terms"},
    }
    entries = []
    for name, changes in facts.items():
        card = record.model.model_copy(update=changes)
        own = dataclasses.replace(record, model=card)
        entries.append(entry(own, name, [task("story", {"x": 20.0}, interval=(15.0, 25.0))]))
    index = write_site(tmp_path / "site", build_board(entries), entries, (), Progress())
    opened(page, index)
    table = page.get_by_role("table", name="Scores by gender on crema-d")
    for label, value, left in (
        ("size", "up to 4 billion parameters", ["small"]),
        ("size", "not stated", ["served"]),
        ("weights", "open", ["large", "small"]),
        ("weights", "closed", ["served"]),
        ("licence", "MIT", ["small"]),
    ):
        page.get_by_label(label).select_option(value)
        assert names(table) == left, (label, value)
        page.get_by_label(label).select_option("")
    assert "30 B, open weights, Apache-2.0" in table.get_by_role("row", name="large").inner_text()
