"""From a frame of observations to arrays: speakers, groups, and counts of values by speaker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.errors import UserError
from vibe_harness.records import GROUP_PREFIX

if TYPE_CHECKING:
    import pandas as pd

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Speakers:
    """The units of a test, sorted, so that results do not depend on the order of the answers.

    If each speaker is in one group, the units are speakers. If every speaker has clips in several groups, a unit is one
    speaker in one group, and groups are permuted within speakers.
    """

    names: tuple[str, ...]  # speaker of each unit
    groups: tuple[str, ...]  # names of the groups, sorted
    codes: NDArray[np.int64]  # (S,) group of each unit
    owners: NDArray[np.int64] | None = None  # (S,) speaker of each unit, where a speaker has several

    def of(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Index of the unit of each row."""
        if self.owners is not None:
            keys = frame["speaker"].astype(str) + "\0" + frame["group"].astype(str)
            units = [f"{name}\0{self.groups[code]}" for name, code in zip(self.names, self.codes, strict=True)]
        else:
            keys, units = frame["speaker"], list(self.names)
        place = {name: index for index, name in enumerate(units)}
        codes, found = keys.factorize()
        places = np.array([place[str(name)] for name in found], dtype=np.int64)
        return np.take(places, codes)

    def by_group(self, counts: Counts) -> Counts:
        """Sum counts (S, ...) over the units of each group: (G, ...)."""
        totals = np.zeros((len(self.groups), *counts.shape[1:]), dtype=np.int64)
        np.add.at(totals, self.codes, counts)
        return totals


def speakers_of(frame: pd.DataFrame) -> Speakers:
    """Speakers with their group, or with all of their groups if every speaker has several.

    Raises UserError if some speakers are in several groups and others in one, and if a speaker or group is missing.
    """
    for name in ("speaker", "group"):
        if missing := int(frame[name].isna().sum()):
            raise UserError(
                f"column '{name}': {missing} of {len(frame)} rows are empty: give each a {name}, or drop it"
            )
    pairs = frame[["speaker", "group"]].drop_duplicates().astype(str).sort_values(["speaker", "group"])
    several = pairs["speaker"].duplicated(keep=False)
    owners = None
    if several.any() and not several.all():
        name = pairs["speaker"][several].iloc[0]
        found = ", ".join(pairs["group"][pairs["speaker"] == name])
        raise UserError(
            f"speaker '{name}' is in more than one group ({found}), and others are in one: a speaker belongs to one "
            "group, or each of them to several"
        )
    if len(pairs) and several.all():
        if apart := unbridged(pairs.groupby("speaker")["group"]):
            raise UserError(apart)
        owners = pairs["speaker"].factorize()[0].astype(np.int64)
    groups = tuple(sorted(pairs["group"].unique()))
    place = {name: index for index, name in enumerate(groups)}
    codes = pairs["group"].map(place).to_numpy(dtype=np.int64)
    return Speakers(tuple(pairs["speaker"]), groups, codes, owners)


def unbridged(by_speaker: Iterable[tuple[Any, Iterable[str]]]) -> str | None:
    """Why groups cannot be compared within speakers: two that no chain of speakers links; None where they can.

    by_speaker: speakers with their groups. So it is with gender:emotion, where each speaker has emotions of one gender:
    exchanging within speakers would test the emotion, and the score would hold the gender too.
    """
    linked: list[set[str]] = []
    for _, groups in by_speaker:
        own = set(groups)
        touched = [found for found in linked if found & own]
        linked = [found for found in linked if not found & own] + [own.union(*touched)]
    if len(linked) < 2:
        return None
    one, other = sorted(min(found) for found in linked)[:2]
    return (
        f"no speaker has clips in '{one}' and in groups with '{other}', and each has several groups: compare by the "
        "column that varies within speakers, or by the one that does not"
    )


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
        codes = table.groupby(list(columns)).ngroup()  # not of joined text: "x y" with "z" is not "x" with "y z"
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
    """Stratum (S,) of each unit: its speaker, where a speaker has several; else the combination of the columns. None
    where there are no columns.

    columns: names of dimensions ("gender"), which the frame holds as group_gender.

    Raises UserError where the data lack a column, or where it varies within a speaker.
    """
    if speakers.owners is not None:
        return speakers.owners
    if not columns:
        return None
    for column in columns:
        if GROUP_PREFIX + column not in frame:
            raise UserError(f"no column '{column}' to permute within: the corpus does not have it")
    held = [GROUP_PREFIX + column for column in columns]
    rows = frame[["speaker", *held]].drop_duplicates()
    if len(twice := rows["speaker"][rows["speaker"].duplicated()]):
        raise UserError(
            f"speaker '{twice.iloc[0]}' is in more than one stratum of {' and '.join(columns)}: a speaker belongs "
            "to one"
        )
    codes = rows.groupby(held, dropna=False, observed=True).ngroup()  # an empty cell is its own stratum
    found = dict(zip(rows["speaker"].astype(str), codes, strict=True))
    return np.unique([found[name] for name in speakers.names], return_inverse=True)[1].astype(np.int64)
