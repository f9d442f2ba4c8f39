"""Figures with whatever groups and values are called."""

import dataclasses
import re
import warnings
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest

from vibe_harness import evaluate
from vibe_harness.progress import Progress
from vibe_harness.report.board import Block, Board, Cell, Column, Row
from vibe_harness.report.figures import WIDTHS, board_figure, distribution_figure, figure_svg, save_figures
from vibe_harness.report.published_figures import published_blocks
from vibe_harness.report.run_figures import write_run_figures
from vibe_harness.report.shifts import Shift, ValueShares
from vibe_harness.report.site import draw_boards
from vibe_harness.report.stars import family_of
from vibe_harness.store.run_folder import RunFolder

HOSTILE = Shift(
    attribute="activity",
    title="t & <b> $x$ \x07",
    groups=("$\\frac$ a$", "_hidden", "女性\u202e", "\ud800"),
    counts=("n = 1", "n = 3, 50% kept", "n = 0", "n = 0"),
    rows=(
        ValueShares("x$y$", (0.5, 0, 0, 0)),
        ValueShares("\x00\x1b[1m", (0.5, 0, 0, 0)),
        ValueShares("<script>alert(1)</script>", (0, 1, 0, 0), (True, False, False, False)),
        ValueShares("a" * 5000, (0, 0, 0, 0)),
        ValueShares("&amp;", (0, 0, 0, 1)),
    ),
    hidden=7,
)  # fmt: skip


def test_hostile_names_give_a_figure_that_parses_and_says_them_all() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = figure_svg(distribution_figure("a title", HOSTILE))
    words = " ".join(ET.fromstring(svg).itertext())
    for said in (
        "_hidden (n = 3, 50% kept)",
        "<script>alert(1)</script>",
        "$\\frac$ a$",
        "女性",
        "x$y$",
        "&amp;",
        "a title, t & <b> $x$",
    ):
        assert said in words, said
    words = " ".join(words.split())
    assert "share of the group's kept values, %; * named by the test; 7 more values not shown" in words
    assert "<script>alert(1)</script> *" in words and "x$y$ *" not in words
    assert not any(sign in svg for sign in ("<script", "\x00", "\x1b", "\u202e", "a" * 61))


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    assert figure_svg(distribution_figure("t", HOSTILE)) == figure_svg(distribution_figure("t", HOSTILE))
    paths = [save_figures(partial(distribution_figure, "t", HOSTILE), tmp_path / name) for name in "ab"]
    first, second = ([path.read_bytes() for path in files] for files in paths)
    assert first == second
    assert [path.name for path in paths[0]] == [
        "a-one-column.svg", "a-one-column.pdf", "a-two-columns.svg", "a-two-columns.pdf",
    ]  # fmt: skip
    for (svg, pdf), inches in zip((first[:2], first[2:]), WIDTHS.values(), strict=True):
        assert float(ET.fromstring(svg).attrib["width"].removesuffix("pt")) == pytest.approx(72 * inches)
        box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)
        assert pdf.startswith(b"%PDF") and box is not None and float(box[1]) == pytest.approx(72 * inches)


@pytest.mark.parametrize("width", WIDTHS.values())
@pytest.mark.filterwarnings("ignore:Glyph")
def test_nothing_of_a_figure_lies_beyond_its_edges(width: float) -> None:
    gender = next(block for block in published_blocks() if block.dimension == "gender")
    rows = tuple(dataclasses.replace(row, model=row.model * 9) for row in gender.rows)
    many = dataclasses.replace(gender, rows=rows)
    plain = dataclasses.replace(HOSTILE, groups=("a" * 90, "b", "c", "d"))
    for figure in (board_figure(many, width), distribution_figure("t " * 90, plain, width)):
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
        assert box.x0 > -0.05 and box.x1 < width + 0.05 and box.y0 > -0.05 and box.y1 < figure.get_figheight() + 0.05


def test_a_leaderboard_shows_models_tasks_units_and_n() -> None:
    gender = next(block for block in published_blocks() if block.dimension == "gender")
    figure = board_figure(gender)
    words = " ".join(ET.fromstring(figure_svg(figure)).itertext())
    for said in ("By gender on CREMA-D (published): 11 models", "Qwen2-Audio", "advisory", "nTVD, 0 to 100"):
        assert said in words, said
    for axes, column in zip(figure.axes, gender.columns, strict=True):
        drawn = {float(x) for x, _ in axes.collections[0].get_offsets()}
        assert drawn == {row.cells[gender.columns.index(column)].value for row in gender.rows}


def test_every_score_is_seen_whichever_task_stands_first() -> None:
    gender = next(block for block in published_blocks() if block.dimension == "gender")
    rows = tuple(dataclasses.replace(row, cells=row.cells[::-1]) for row in gender.rows)
    figure = board_figure(dataclasses.replace(gender, columns=gender.columns[::-1], rows=rows))
    highest = max(x for axes in figure.axes for x, _ in axes.collections[0].get_offsets())
    assert highest == 46.77 and all(axes.get_xlim()[1] > highest and axes.get_xlim()[0] == 0 for axes in figure.axes)


def test_a_block_without_a_shift_has_no_figure(tmp_path: Path) -> None:
    column = Column(task="s", metric="slbs", variant="default", digest="1", kind="choice", name="s", label="s: slbs")
    row = Row(key="1", model="m", simulated=False, cells=(Cell(value=50.0),), mean=None)
    block = Block(corpus="c", synthetic=False, dimension="gender", settings={}, columns=(column,), rows=(row,))
    board = Board(blocks=(block,), family=family_of([]), left_out=())
    assert draw_boards(tmp_path, board, Progress()) == [] and not any(tmp_path.iterdir())


@pytest.mark.slow
def test_a_run_has_a_figure_for_each_attribute(tmp_path: Path) -> None:
    evaluate("simulated", ["advisory"], tau=3, permutations=99, output_path=tmp_path / "run")
    files = write_run_figures(RunFolder(tmp_path / "run"), tmp_path / "figures", Progress())
    assert [path.name for path in files] == [
        f"advisory-default-{dimension}-activity-{width}.{kind}"
        for dimension in ("gender", "accent")
        for width in WIDTHS
        for kind in ("svg", "pdf")
    ]
    words = " ".join(ET.fromstring(files[0].read_text(encoding="utf-8")).itertext())
    assert "simulated on demo: advisory by gender" in words and "(n = " in words
