"""From a frame of observations to arrays: speakers, groups, and counts of values by speaker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vibe_harness.errors import UserError
from vibe_harness.records import GROUP_PREFIX

if TYPE_CHECKING:
    import pandas as pd

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Speakers:
    """The speakers of a frame in sorted order, so that nothing hangs on the order in which answers arrived."""

    names: tuple[str, ...]
    groups: tuple[str, ...]  # names of the groups, sorted
    codes: NDArray[np.int64]  # (S,) group of each speaker

    def of(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Index of the speaker of each row."""
        place = {name: index for index, name in enumerate(self.names)}
        codes, found = frame["speaker"].factorize()
        places = np.array([place[str(name)] for name in found], dtype=np.int64)
        return np.take(places, codes)

    def by_group(self, counts: Counts) -> Counts:
        """Sum counts (S, ...) over the speakers of each group: (G, ...)."""
        totals = np.zeros((len(self.groups), *counts.shape[1:]), dtype=np.int64)
        np.add.at(totals, self.codes, counts)
        return totals


def speakers_of(frame: pd.DataFrame) -> Speakers:
    """Speakers with their group. Raises UserError for a speaker who stands in two groups, and for a missing one."""
    for name in ("speaker", "group"):
        if missing := int(frame[name].isna().sum()):
            raise UserError(
                f"column '{name}': {missing} of {len(frame)} rows are empty: give each a {name}, or drop it"
            )
    pairs = frame[["speaker", "group"]].drop_duplicates().astype(str).sort_values(["speaker", "group"])
    twice = pairs["speaker"][pairs["speaker"].duplicated()]
    if len(twice):
        name = twice.iloc[0]
        found = ", ".join(pairs["group"][pairs["speaker"] == name])
        raise UserError(f"speaker '{name}' stands in more than one group ({found}): a speaker belongs to one group")
    groups = tuple(sorted(pairs["group"].unique()))
    place = {name: index for index, name in enumerate(groups)}
    return Speakers(tuple(pairs["speaker"]), groups, pairs["group"].map(place).to_numpy(dtype=np.int64))


def value_counts(frame: pd.DataFrame, speakers: Speakers) -> tuple[tuple[str, ...], Counts]:
    """Values of one attribute, sorted, and how often each speaker was given each: (S, V). A list gives every item.

    Only rows with the reading "value" count.
    """
    values, counts = cell_counts(frame, speakers, Cells.of(frame, ()))
    return values, counts[:, 0]


@dataclass(frozen=True)
class Cells:
    """The strata of utterances that are evened out: combinations of the columns, one code a row of the frame."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    codes: NDArray[np.int64]

    def __getitem__(self, rows: NDArray[np.bool_]) -> Cells:
        """The cells of some rows of the frame."""
        return Cells(self.columns, self.names, self.codes[rows])

    @classmethod
    def of(cls, frame: pd.DataFrame, columns: Sequence[str]) -> Cells:
        """A clip for which a column says nothing is in a cell "none" of it. Without columns all rows are one cell.

        Raises UserError where the data lack a column.
        """
        if not columns:
            return cls((), ("all",), np.zeros(len(frame), dtype=np.int64))
        table = frame[[]].assign(**{column: stratum_of(frame, column) for column in columns})
        codes = table.groupby(list(columns)).ngroup()  # not of joined words: "x and y" with "z", "x" with "y and z"
        cells = table.assign(code=codes).drop_duplicates().sort_values("code")[list(columns)]
        names = tuple(" and ".join(row) for row in cells.to_numpy())
        return cls(tuple(columns), names, np.asarray(codes, dtype=np.int64))


def stratum_of(frame: pd.DataFrame, column: str) -> pd.Series[str]:
    """The stratum of each row in one column of the corpus; "none" where it is empty."""
    name = column if column == "sentence_id" and GROUP_PREFIX + column not in frame else GROUP_PREFIX + column
    if name not in frame:
        raise UserError(f"no column '{column}' to even out: the corpus does not have it")
    return frame[name].astype(object).where(frame[name].notna(), "none").astype(str)


def cell_counts(frame: pd.DataFrame, speakers: Speakers, cells: Cells) -> tuple[tuple[str, ...], Counts]:
    """`value_counts` by cell: (S, H, V). cells: of this very frame, row by row."""
    chosen = (frame["reading"] == "value").to_numpy()
    items = items_of(frame[chosen].assign(cell=cells.codes[chosen]), "values", "cell")
    if missing := int(items["values"].isna().sum()):
        raise UserError(f"column 'values': {missing} values are missing in rows with the reading 'value'")
    codes, names = items["values"].factorize(sort=True)
    counts = np.zeros((len(speakers.names), len(cells.names), len(names)), dtype=np.int64)
    np.add.at(counts, (speakers.of(items), items["cell"].to_numpy(), codes), 1)
    return tuple(map(str, names)), counts


def items_of(frame: pd.DataFrame, column: str, *others: str) -> pd.DataFrame:
    """One row for each item of a list column ("values" or "raw"), of the rows with the reading "value"."""
    return frame.loc[frame["reading"] == "value", ["speaker", "group", column, *others]].explode(column)


def attributes_of(frame: pd.DataFrame) -> list[str]:
    """The attributes of a frame, sorted."""
    return sorted(map(str, frame["attribute"].unique()))


def strata_codes(frame: pd.DataFrame, speakers: Speakers, columns: Sequence[str]) -> NDArray[np.int64] | None:
    """Stratum (S,) of each speaker: the combination of the columns. None where there are no columns.

    columns: names of dimensions ("gender"), which the frame holds as group_gender.

    Raises UserError where the data lack a column, or where it varies within a speaker.
    """
    if not columns:
        return None
    for column in columns:
        if GROUP_PREFIX + column not in frame:
            raise UserError(f"no column '{column}' to permute within: the corpus does not have it")
    held = [GROUP_PREFIX + column for column in columns]
    rows = frame[["speaker", *held]].drop_duplicates()
    if len(twice := rows["speaker"][rows["speaker"].duplicated()]):
        raise UserError(
            f"speaker '{twice.iloc[0]}' stands in more than one stratum of {' and '.join(columns)}: a speaker belongs "
            "to one"
        )
    codes = rows.groupby(held, dropna=False, observed=True).ngroup()  # an empty cell is a stratum of its own
    found = dict(zip(rows["speaker"].astype(str), codes, strict=True))
    return np.unique([found[name] for name in speakers.names], return_inverse=True)[1].astype(np.int64)
