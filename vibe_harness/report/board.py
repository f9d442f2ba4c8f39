"""A leaderboard as data: models against tasks, one block for each corpus, dimension and set of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from vibe_harness.cards.schema import ModelCard
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.report.board_runs import ExcludedRun
from vibe_harness.report.stars import Family
from vibe_harness.report.trust import TrustColumn
from vibe_harness.store.results import TaskResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One figure of every model: the same task card, prompt and metric."""

    task: str
    metric: str
    variant: str
    digest: str | None  # of the task's card and alias files; None for published figures
    kind: str  # of the task
    name: str  # of the task, with the prompt and the card where several stand side by side
    label: str  # the name, and what the figure is where it is not the only measure of a shift
    digits: int = 1  # decimals that its figures are shown with
    compared: bool = True  # False where the models' means are over different attributes
    common: tuple[str, ...] = ()  # a mean over these attributes alone, which every model has
    missing: tuple[str, ...] = ()  # attributes of the task that no model has a score of

    @property
    def is_shift(self) -> bool:
        """Whether its metric measures a shift, by which models are compared task by task."""
        return presentation_of(self.metric).role == "shift"

    @property
    def mean_over(self) -> str:
        """What the figures are means over: all attributes, each model's "own" (not compared), or the "shared" ones.

        Empty where they are no means over attributes.
        """
        if not self.is_shift:
            return ""
        if not self.compared:
            return "own"
        return "shared" if self.common or self.missing else "all"

    @property
    def heading(self) -> str:
        """The label, and what sets its figures apart from full scores."""
        if self.missing:
            return f"{self.label} (without {', '.join(self.missing)})"
        told = {"own": " (not compared)", "shared": " (shared attributes)"}
        return self.label + told.get(self.mean_over, "")

    @property
    def key(self) -> tuple[str, str, str, str | None]:
        """What must be alike for two columns to hold the same measurement."""
        return self.task, self.metric, self.variant, self.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model's figure in one column."""

    value: float | None
    why: str | None = None  # why there is no value
    at_least: float | None = None
    at_most: float | None = None
    interval: tuple[float, float] | None = None
    no_interval: str | None = None  # why there is none
    null_p95: float | None = None
    p_value: float | None = None
    adjusted_p: float | None = None
    permutations: int | None = None
    reliable: bool = True
    with_value: float | None = None  # share of readings that gave a value
    trust: tuple[TrustColumn, ...] = ()  # what to know before the value is believed; none of published figures
    attributes: tuple[str, ...] = ()  # that the value is a mean over
    stars: str = ""
    mark: str = ""  # "highest" or "lowest" of its column
    result: TaskResult | None = None  # all that the run says of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model of a block. mean: over the tasks' shifts; None where one is missing or not to be compared."""

    key: str
    model: str
    simulated: bool
    cells: tuple[Cell | None, ...]  # one for each column; None where the model was not asked
    mean: float | None
    card: ModelCard | None = None  # None for published figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Runs that may stand in one table: one corpus, one dimension, the same settings."""

    corpus: str
    synthetic: bool
    dimension: str
    settings: Mapping[str, str]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    extractor: str = ""  # name of what read the answers
    apart: str = ""  # how it differs from the other blocks of its corpus and dimension, in words
    published: str | None = None  # the source of figures that this harness did not measure

    def axes(self) -> list[tuple[float, float] | None]:
        """For each column the ends of the axis that its figures are drawn on; None where none is drawn.

        All shifts of a block share one axis, from no shift to the largest figure; others are drawn on their metric's.
        """
        shifts = {index: presentation_of(column.metric) for index, column in enumerate(self.columns) if column.is_shift}
        cells = [row.cells[index] for row in self.rows for index in shifts]
        drawn = [(c.value, c.null_p95, c.interval[1]) for c in cells if c is not None and c.interval]
        end = max([1.0, *(figure for figures in drawn for figure in figures if figure is not None)])
        return [
            (shifts[index].neutral or 0.0, end) if index in shifts else presentation_of(column.metric).scale
            for index, column in enumerate(self.columns)
        ]

    @property
    def no_intervals(self) -> list[str]:
        """Why figures of it have no interval."""
        cells = [cell for row in self.rows for cell in row.cells if cell is not None]
        return sorted({cell.no_interval for cell in cells if cell.no_interval})

    @property
    def name(self) -> str:
        """What tells it from every other block: "gender on crema-d"."""
        return f"{self.dimension} on {self.place}"

    @property
    def place(self) -> str:
        """The corpus, and how the block differs from the others of its corpus and dimension."""
        return self.corpus + (f" ({self.apart})" if self.apart else "")

    def task_columns(self) -> list[int]:
        """Indices of the first column of each task, whose cells tell what holds for all figures of the task."""
        first: dict[tuple[str, str, str | None], int] = {}
        for index, column in enumerate(self.columns):
            first.setdefault((column.task, column.variant, column.digest), index)
        return list(first.values())

    @property
    def trust_headings(self) -> list[str]:
        """The headings of the columns of trust; none for published figures."""
        found = [cell.trust for row in self.rows for cell in row.cells if cell is not None and cell.trust]
        return [column.heading for column in found[0]] if found else []

    def against(self, row: Row) -> list[str]:
        """What speaks against a row's scores, with the tasks that it is said of: "values kept (story, casting)"."""
        found: dict[str, list[str]] = {}
        for index in self.task_columns():
            cell = row.cells[index]
            for column in cell.trust if cell else ():
                if column.ok is False:
                    found.setdefault(column.heading, []).append(self.columns[index].name)
        return [f"{heading} ({', '.join(names)})" for heading, names in found.items()]

    def values(self, index: int) -> list[float]:
        """One column as numbers over the rows; NaN where nothing may be compared."""
        if not self.columns[index].compared:
            return [float("nan")] * len(self.rows)
        cells = [row.cells[index] for row in self.rows]
        return [
            c.value if c is not None and c.value is not None and c.reliable else float("nan") for c in cells
        ]  # fmt: skip

    def main_columns(self) -> list[int]:
        """Indices of the columns that hold the shifts of tasks and may be compared."""
        return [i for i, column in enumerate(self.columns) if column.is_shift and column.compared]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """blocks: measured ones first. family: all tests of the leaderboard. left_out: what is not shown."""

    blocks: tuple[Block, ...]
    family: Family
    left_out: tuple[ExcludedRun, ...]


def mean_of(cells: Sequence[Cell | None]) -> float | None:
    """Plain mean of a row's cells; None where one has no value or there are fewer than two."""
    values = [cell.value for cell in cells if cell is not None and cell.value is not None]
    return fmean(values) if len(values) == len(cells) and len(values) > 1 else None
