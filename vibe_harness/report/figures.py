"""Figures for papers: readable in grey, titled, with units and n; the same data give the same SVG."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.report.board import Block, Cell
from vibe_harness.report.html import counted
from vibe_harness.report.shifts import Shift
from vibe_harness.store.atomic_files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vibe_harness.corpora.prepare.data_card import GroupRow
    from vibe_harness.stats.power import Power

INK = "#1b1b1b"
GREYS = (INK, "#8f8f8f", "#d0d0d0", "#555555", "#b5b5b5", "#f2f2f2")
HATCHES = ("", "", "///", "...", "xxx", "\\\\\\")
STYLE: Any = {
    "svg.hashsalt": "vibe-harness",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.size": 9,
}
WIDTHS = {"one-column": 3.4, "two-columns": 7.0}
"""Widths in inches of a figure in one and over both columns of a paper."""
PANELS = {3.4: 1, 7.0: 5}  # panels side by side, by width
LETTERS = 14  # of a title, an inch
NAMED = " *"  # behind a value that the test names


@contextmanager
def _drawing() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # an SVG's letters are drawn by its reader's fonts
        yield


def save_figures(draw: Callable[[float], Figure], path: Path) -> list[Path]:
    """Write a figure at each of `WIDTHS`, as PDF and SVG: PATH-one-column.pdf, ...; `path` has no extension.

    draw: makes the figure of a width in inches. Raises UserError where a file cannot be written.
    """
    paths = []
    for name, width in WIDTHS.items():
        with _drawing():
            figure = draw(width)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # laid out once for both
            svg, pdf = (path.with_name(f"{path.name}-{name}.{kind}") for kind in ("svg", "pdf"))
            with atomic_write(svg) as aside:
                aside.write_text(figure_svg(figure), encoding="utf-8", errors="replace")
            with atomic_write(pdf) as aside:
                figure.savefig(aside, format="pdf", metadata={"CreationDate": None})
        paths += [svg, pdf]
    return paths


def figure_svg(figure: Figure) -> str:
    """The figure as an SVG element."""
    text = io.StringIO()
    with _drawing():
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def groups_figure(title: str, rows: Sequence[GroupRow]) -> Figure:
    """The clips in each group of a corpus, as bars, column by column; each bar says its speakers too."""
    from matplotlib.figure import Figure

    places = [index + sum(a.column != b.column for a, b in pairwise(rows[: index + 1])) for index in range(len(rows))]
    with _drawing():
        figure = Figure(figsize=(7, 1.2 + 0.22 * (len(rows) and places[-1] + 1)), layout="constrained")
        axes = figure.add_subplot()
        bars = axes.barh(places, [row.clips for row in rows], 0.8, facecolor=GREYS[1], edgecolor=INK, linewidth=0.6)
        axes.bar_label(bars, [f"{row.clips:,} of {row.speakers:,} speakers" for row in rows], padding=3, fontsize=7)
        axes.set_yticks(places, [_plain(f"{row.column}: {row.group}") for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.3, y=0.02)
        axes.set_xlabel("clips")
        axes.set_title(_plain(title), loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def distribution_figure(title: str, shift: Shift, width: float = 7.0) -> Figure:
    """Paired bars: share of each value by group, the values that carry the shift first (VIBE, figure 2).

    width: in inches.
    """
    from matplotlib.figure import Figure

    count = len(shift.groups)
    height = 0.8 / max(count, 1)
    letters = int(width * LETTERS)
    with _drawing():
        figure = Figure(figsize=(width, 1.4 + 0.16 * len(shift.rows) * (count + 1)), layout="constrained")
        axes = figure.add_subplot()
        for index, group in enumerate(shift.groups):
            places = [row + (index - (count - 1) / 2) * height for row in range(len(shift.rows))]
            axes.barh(
                places, [100 * row.shares[index] for row in shift.rows], height, edgecolor=INK, linewidth=0.6,
                label=_legend(group, shift.counts[index], letters // 2), facecolor=GREYS[index % len(GREYS)],
                hatch=HATCHES[index % len(HATCHES)],
            )  # fmt: skip
        axes.set_yticks(
            range(len(shift.rows)), [_plain(row.value, letters // 3) + NAMED * row.is_named for row in shift.rows]
        )
        axes.invert_yaxis()
        hidden = f"; {shift.hidden} more values not shown" if shift.hidden else ""
        named = f";{NAMED} named by the test" if shift.named else ""
        axes.set_xlabel(_wrapped(f"share of the group's kept values, %{named}{hidden}", letters // 2), fontsize=8)
        figure.suptitle(_wrapped(f"{title}, {shift.title}", letters), fontsize=9)
        longest = max((len(label) for label in axes.get_legend_handles_labels()[1]), default=0)
        _frame(figure, axes, max(1, min(count, letters // (longest + 6))))
    return figure


def board_figure(block: Block, width: float = 7.0) -> Figure:
    """Models against the tasks of a block: the shift with its 95 % interval, and what chance reaches once in twenty.

    A panel a task. Hollow: not reliable. width: in inches. The block has a column of shifts and a row.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = block.main_columns()
    side_by_side = min(len(columns), PANELS.get(width, 1))
    lines = ceil(len(columns) / side_by_side)
    letters = int(width * LETTERS)
    with _drawing():
        size = (width, 1.1 + lines * (0.55 + 0.2 * len(block.rows)))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(lines, side_by_side, sharex=True, sharey=True, squeeze=False)
        panels = list(grid.flat)
        for axes, index in zip(panels, columns, strict=False):
            _dots(axes, [row.cells[index] for row in block.rows])
            axes.set_title(_plain(block.columns[index].label, letters // side_by_side), fontsize=8)
            axes.xaxis.set_major_locator(MaxNLocator(4 if side_by_side < 4 else 3))
            axes.tick_params(labelbottom=True, labelsize=7)
            axes.grid(axis="x", color="#dddddd", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in panels[len(columns) :]:
            axes.set_visible(False)
        panels[0].set_xlim(left=0)  # of all panels, once all of them are drawn
        names = [_plain(_shortened(row.model, letters // 3)) for row in block.rows]
        panels[0].set_yticks(range(len(block.rows)), names, fontsize=7)
        panels[0].set_ylim(len(block.rows) - 0.5, -0.5)
        for axes in panels[(lines - 1) * side_by_side : len(columns)]:
            axes.set_xlabel(_measure(block, columns[0]), fontsize=8)
        title = f"By {block.name}: {counted(len(block.rows), 'model')}{_asked(block)}"
        figure.suptitle(_wrapped(title, letters), fontsize=9)
        drawn = [pair for axes in panels for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
        marks = {label: handle for handle, label in reversed(drawn)}  # a panel may lack some
        if block.published is None and marks:
            figure.legend(
                list(marks.values()), list(marks), loc="outside lower center", ncols=min(side_by_side, 3),
                frameon=False, fontsize=7,
            )  # fmt: skip
    return figure


def _measure(block: Block, index: int) -> str:
    """What the axis of shifts measures: "nTVD, 0 to 100"."""
    shown = presentation_of(block.columns[index].metric)
    return shown.title + (f", {shown.scale[0]:g} to {shown.scale[1]:g}" if shown.scale else "")


def _dots(axes: Axes, cells: Sequence[Cell | None]) -> None:
    shown = [(y, cell, cell.value) for y, cell in enumerate(cells) if cell is not None and cell.value is not None]
    _intervals(axes, [(y, *cell.interval) for y, cell, _ in shown if cell.interval])
    axes.scatter(
        [value for *_, value in shown], [y for y, *_ in shown], s=16, zorder=3, edgecolors=INK,
        c=[INK if cell.reliable else "#ffffff" for _, cell, _ in shown], label="raw score (hollow: not reliable)",
    )  # fmt: skip
    chance = [(cell.null_p95, y) for y, cell, _ in shown if cell.null_p95 is not None]
    if chance:
        axes.scatter(
            [p95 for p95, _ in chance], [y for _, y in chance], marker="|", s=60, color=INK, zorder=2,
            label="chance (null 95 %)",
        )  # fmt: skip


def _intervals(axes: Axes, spans: Sequence[tuple[float, float, float]]) -> None:
    """Lines at these heights from a lower to an upper end."""
    if spans:
        places, lows, highs = zip(*spans, strict=True)
        axes.hlines(places, lows, highs, color="#8f8f8f", linewidth=2, label="95 % interval of the truth")


def _asked(block: Block) -> str:
    """How many requests each model was asked a task, where that is known."""
    asked = {
        sum(group.requests for group in cell.result.groups.values())
        for row in block.rows
        for cell in row.cells
        if cell is not None and cell.result is not None
    }
    if not asked:
        return ""
    return (
        f", n = {min(asked):,} requests a task"
        if len(asked) == 1
        else f", n = {min(asked):,} to {max(asked):,} requests a task"
    )


def power_svg(title: str, powers: Mapping[str, Power]) -> str:
    """An SVG of the share of simulated runs that find a shift, by the true nTVD: a line a task, with its target."""
    from matplotlib.figure import Figure

    lines = ("-", "--", ":", "-.")
    with _drawing():
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        for index, (name, power) in enumerate(powers.items()):
            scores = [point.score for point in power.curve]
            axes.plot(
                scores, [100 * point.share for point in power.curve], color=INK, marker="o", markersize=3,
                linestyle=lines[index % len(lines)], label=_plain(name),
            )  # fmt: skip
            axes.axhline(100 * power.target, color="#8f8f8f", linewidth=0.8)
        axes.set_xlabel("true nTVD, 0 to 100")
        axes.set_ylabel("runs that find it, %")
        axes.set_title(_plain(title), loc="left", fontsize=10)
        _frame(figure, axes, min(len(powers), 5))
    return figure_svg(figure)


def _frame(figure: Figure, axes: Axes, columns: int) -> None:
    """The legend below the axes, where it covers no data, and no lines that say nothing."""
    axes.spines[["top", "right"]].set_visible(False)
    if columns:
        figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def _legend(group: str, counts: str, longest: int) -> str:
    """A group's label. Matplotlib hides what begins with "_": there a mark without width goes ahead."""
    shown = "\N{WORD JOINER}" if group.startswith("_") else ""
    return f"{shown}{_plain(_shortened(group, longest))} ({counts})"


def _shortened(text: str, longest: int) -> str:
    """A name without its middle: what tells it from others of its kind stands at either end."""
    half = max((longest - 1) // 2, 1)
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def _wrapped(text: str, letters: int) -> str:
    """`_plain` text on lines of so many letters."""
    return "\n".join(textwrap.wrap(_plain(text, 4 * letters), letters))


def _plain(text: str, longest: int = 60) -> str:
    """Text that matplotlib draws as it is: no mathematics, no control characters, not endless."""
    cleaned = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return (cleaned if len(cleaned) <= longest else cleaned[: longest - 1] + "…").replace("$", r"\$")
