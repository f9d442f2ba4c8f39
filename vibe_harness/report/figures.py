"""Figures of attribute distributions by group, readable in grey."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vibe_harness.corpora.data_card import GroupRow
    from vibe_harness.stats.power import Power

MAX_VALUES = 12
GREYS = ("#1b1b1b", "#8f8f8f", "#d0d0d0", "#555555", "#b5b5b5", "#f2f2f2")
STYLE: Any = {"svg.hashsalt": "vibe-harness", "svg.fonttype": "none", "font.family": "sans-serif"}
HATCHES = ("", "", "///", "...", "xxx", "\\\\\\")


def distribution_svg(title: str, distribution: Mapping[str, Mapping[str, float]], answers: Mapping[str, int]) -> str:
    """An SVG of paired bars: share of each value by group, the values that carry the shift first.

    distribution: group -> value -> share of the group's kept values (0 to 1). answers: group -> number of responses.
    At most MAX_VALUES values are drawn; the axis says how many were left out.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    groups = [group for group in sorted(distribution) if distribution[group]]
    values = sorted({value for group in groups for value in distribution[group]})
    spread = {v: _spread([distribution[group].get(v, 0.0) for group in groups]) for v in values}
    shown = sorted(values, key=lambda v: (-spread[v], v))[:MAX_VALUES]
    height = 0.8 / max(len(groups), 1)
    with (
        mpl.rc_context(STYLE),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph")  # the letters are drawn by the browser's fonts, not by these
        figure = Figure(figsize=(7, 1.2 + 0.16 * len(shown) * (len(groups) + 1)), layout="constrained")
        axes = figure.add_subplot()
        for index, group in enumerate(groups):
            places = [row + (index - (len(groups) - 1) / 2) * height for row in range(len(shown))]
            shares = [100 * distribution[group].get(value, 0.0) for value in shown]
            axes.barh(
                places, shares, height, label=_legend(group, answers.get(group, 0)), edgecolor="#1b1b1b",
                facecolor=GREYS[index % len(GREYS)], hatch=HATCHES[index % len(HATCHES)], linewidth=0.6,
            )  # fmt: skip
        axes.set_yticks(range(len(shown)), [_plain(value) for value in shown])
        axes.invert_yaxis()
        hidden = len(values) - len(shown)
        axes.set_xlabel("share of the group's kept values, %" + (f"; {hidden} more values not shown" if hidden else ""))
        axes.set_title(_plain(title), loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        return _svg(figure)


def groups_svg(title: str, rows: Sequence[GroupRow]) -> str:
    """An SVG of the clips in each group of a corpus, as bars, column by column; each bar says its speakers too."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    places = [index + sum(a.column != b.column for a, b in pairwise(rows[: index + 1])) for index in range(len(rows))]
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(7, 1.2 + 0.22 * (len(rows) and places[-1] + 1)), layout="constrained")
        axes = figure.add_subplot()
        bars = axes.barh(
            places, [row.clips for row in rows], 0.8, facecolor=GREYS[1], edgecolor=GREYS[0], linewidth=0.6
        )
        axes.bar_label(bars, [f"{row.clips:,} of {row.speakers:,} speakers" for row in rows], padding=3, fontsize=7)
        axes.set_yticks(places, [_plain(f"{row.column}: {row.group}") for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.3, y=0.02)
        axes.set_xlabel("clips")
        axes.set_title(_plain(title), loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        return _svg(figure)


def _svg(figure: Figure) -> str:
    """The figure as an SVG element: the same figure gives the same text."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _legend(group: str, answers: int) -> str:
    """A group's label. Matplotlib hides what begins with "_": there a mark without width goes ahead."""
    shown = "\N{WORD JOINER}" if group.startswith("_") else ""
    return f"{shown}{_plain(group)} (n = {answers})"


def _spread(shares: list[float]) -> float:
    return max(shares) - min(shares)


def _plain(text: str) -> str:
    """Text that matplotlib draws as it is: no mathematics, no control characters, not endless."""
    cleaned = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return (cleaned if len(cleaned) <= 40 else cleaned[:39] + "…").replace("$", r"\$")


def power_svg(title: str, powers: Mapping[str, Power]) -> str:
    """An SVG of the share of simulated runs that find a shift, by the true nTVD: a line a task, with its target."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    lines = ("-", "--", ":", "-.")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        for index, (name, power) in enumerate(powers.items()):
            scores = [point.score for point in power.curve]
            axes.plot(
                scores, [100 * point.share for point in power.curve], color="#1b1b1b", marker="o", markersize=3,
                linestyle=lines[index % len(lines)], label=_plain(name),
            )  # fmt: skip
            axes.axhline(100 * power.target, color="#8f8f8f", linewidth=0.8)
        axes.set_xlabel("true nTVD, 0 to 100")
        axes.set_ylabel("runs that find it, %")
        axes.set_title(_plain(title), loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        return _svg(figure)
