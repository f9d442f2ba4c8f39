"""Figures with whatever groups and values are called."""

import dataclasses
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from vibe_harness import evaluate
from vibe_harness.progress import Progress
from vibe_harness.report.board import Block, Cell, Column, Row
from vibe_harness.report.figures import board_figure, distribution_figure, figure_svg, save_figure
from vibe_harness.report.published_figures import published_blocks
from vibe_harness.report.run_figures import write_run_figures
from vibe_harness.report.shifts import Shift, ValueShares
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
    assert "share of the group's kept values, %; * named by the test; 7 more values not shown" in words
    assert "<script>alert(1)</script> *" in words and "x$y$ *" not in words
    assert not any(sign in svg for sign in ("<script", "\x00", "\x1b", "\u202e", "a" * 61))


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    assert figure_svg(distribution_figure("t", HOSTILE)) == figure_svg(distribution_figure("t", HOSTILE))
    first, second = (
        [path.read_bytes() for path in save_figure(distribution_figure("t", HOSTILE), tmp_path / n)] for n in "ab"
    )
    assert first == second and first[1].startswith(b"\x89PNG")


def test_a_leaderboard_shows_models_tasks_units_and_n() -> None:
    gender = next(block for block in published_blocks() if block.dimension == "gender")
    figure = board_figure(gender)
    assert figure is not None
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
    assert figure is not None
    highest = max(x for axes in figure.axes for x, _ in axes.collections[0].get_offsets())
    assert highest == 46.77 and all(axes.get_xlim()[1] > highest and axes.get_xlim()[0] == 0 for axes in figure.axes)


def test_a_block_without_a_score_has_no_figure() -> None:
    column = Column(task="s", metric="slbs", variant="default", digest="1", kind="choice", name="s", label="s: slbs")
    row = Row(key="1", model="m", simulated=False, hearing_check="passed", cells=(Cell(value=50.0),), mean=None)
    assert board_figure(
        Block(corpus="c", synthetic=False, dimension="gender", settings={}, columns=(column,), rows=(row,))
    ) is None  # fmt: skip


@pytest.mark.slow
def test_a_run_has_a_figure_for_each_attribute(tmp_path: Path) -> None:
    evaluate("simulated", ["advisory"], tau=3, permutations=99, output_path=tmp_path / "run")
    files = write_run_figures(RunFolder(tmp_path / "run"), tmp_path / "figures", Progress())
    assert [path.name for path in files] == [
        "advisory-default-gender-activity.svg", "advisory-default-gender-activity.png",
        "advisory-default-accent-activity.svg", "advisory-default-accent-activity.png",
    ]  # fmt: skip
    words = " ".join(ET.fromstring(files[0].read_text(encoding="utf-8")).itertext())
    assert "simulated on demo: advisory by gender" in words and "(n = " in words
