"""From a frame of observations to arrays: speakers, groups, and counts of values by speaker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vibe_harness.errors import UserError
from vibe_harness.metrics.registry import GROUP_PREFIX

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
        """Sum counts (S, V) over the speakers of each group: (G, V)."""
        totals = np.zeros((len(self.groups), counts.shape[1]), dtype=np.int64)
        np.add.at(totals, self.codes, counts)
        return totals


def speakers_of(frame: pd.DataFrame, column: str = "group") -> Speakers:
    """Speakers with their group. Raises UserError for a speaker who stands in two groups."""
    pairs = frame[["speaker", column]].drop_duplicates().astype(str).sort_values(["speaker", column])
    twice = pairs["speaker"][pairs["speaker"].duplicated()]
    if len(twice):
        name = twice.iloc[0]
        found = ", ".join(pairs[column][pairs["speaker"] == name])
        raise UserError(f"speaker '{name}' stands in more than one group ({found}): a speaker belongs to one group")
    groups = tuple(sorted(pairs[column].unique()))
    place = {name: index for index, name in enumerate(groups)}
    return Speakers(tuple(pairs["speaker"]), groups, pairs[column].map(place).to_numpy(dtype=np.int64))


def value_counts(frame: pd.DataFrame, speakers: Speakers) -> tuple[tuple[str, ...], Counts]:
    """Values of one attribute, sorted, and how often each speaker was given each: (S, V). A list gives every item.

    Only rows with the reading "value" count.
    """
    items = items_of(frame, "values")
    codes, names = items["values"].factorize(sort=True)
    counts = np.zeros((len(speakers.names), len(names)), dtype=np.int64)
    np.add.at(counts, (speakers.of(items), codes), 1)
    return tuple(map(str, names)), counts


def items_of(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row for each item of a list column ("values" or "raw"), of the rows with the reading "value"."""
    rows = frame.loc[frame["reading"] == "value", ["speaker", "group", column]].explode(column)
    return rows[rows[column].notna()]


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
    joined = rows.assign(stratum=rows[held].astype(str).agg(" and ".join, axis=1))
    return speakers_of(joined, "stratum").codes
