"""What a manifest says of its clips beyond the groups that are compared, put so that groups can be compared by it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vibe_harness.cards.spelling import fold
from vibe_harness.records import Clip, group_in, parts_of

EMPTY = "(empty)"
OWN = "(of one speaker)"
MANY = 20  # values of a column of numbers that is a speaker's own, such as ages, past which they are compared by size


@dataclass(frozen=True)
class ClipColumn:
    """A column over some clips: either numbers (NaN where empty) or values; each of shape (clips,).

    about: "speaker" where it is the same in all clips of each speaker, else "content".
    """

    name: str
    about: Literal["content", "speaker"]
    values: Sequence[str] = ()
    numbers: NDArray[np.float64] | None = None


def columns_of(clips: Sequence[Clip], dimension: str, evened: Collection[str] = ()) -> list[ClipColumn]:
    """The columns that the groups of a dimension can be compared by: text, its length, sentence_id, and all others.

    Left out are the dimension, the columns of `evened`, files of further audio, columns that name the groups otherwise
    ("M" for male), those with one value, and those that divide the clips as an earlier one does. Values that a single
    speaker has say nothing of groups, and count as one value.
    """
    speakers = [clip.speaker for clip in clips]
    cells = _cells(clips)
    groups = [group_in(clip.groups, dimension) or EMPTY for clip in clips]
    divided = {_division(cells[name]) for name in evened if name in cells}
    columns = []
    for name, values in cells.items():
        division = _division(values)
        if name in parts_of(dimension) or division in divided or _renames(values, groups):
            continue
        divided.add(division)
        column = _column(name, values, speakers)
        if column is not None:
            columns.append(column)
    if "text" in cells and not {"text", "sentence_id"} & set(evened):
        lengths = np.array([float(len(clip.text)) if clip.text else math.nan for clip in clips])
        columns.append(ClipColumn("text length, letters", "content", numbers=lengths))
    return columns


def _cells(clips: Sequence[Clip]) -> dict[str, list[str]]:
    """Column -> the cell of each clip; texts in their normalised form."""
    names = dict.fromkeys(name for clip in clips for name in clip.groups)
    cells = {name: [clip.groups.get(name, EMPTY) for clip in clips] for name in names if not name.endswith("_file")}
    if any(clip.text for clip in clips):
        cells["text"] = [fold(clip.text or "") or EMPTY for clip in clips]
    return cells


def _column(name: str, values: Sequence[str], speakers: Sequence[str]) -> ClipColumn | None:
    """The column as it is compared; None where nothing in it can differ between groups."""
    own: dict[str, set[str]] = defaultdict(set)  # value -> its speakers
    of_speaker: dict[str, set[str]] = defaultdict(set)  # speaker -> his values
    for value, speaker in zip(values, speakers, strict=True):
        own[value].add(speaker)
        of_speaker[speaker].add(value)
    about: Literal["content", "speaker"] = "speaker" if max(map(len, of_speaker.values())) == 1 else "content"
    if about == "speaker" and len(own) > MANY:
        numbers = [_number(value) for value in values]
        if not any(math.isnan(number) for number, value in zip(numbers, values, strict=True) if value != EMPTY):
            return ClipColumn(name, about, numbers=np.array(numbers))
    shared = [value if len(own[value]) > 1 or value == EMPTY else OWN for value in values]
    return ClipColumn(name, about, shared) if len(set(shared)) > 1 else None


def _number(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _division(values: Sequence[str]) -> bytes:
    """The same for two columns that divide the clips alike, whatever the values are called."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(value, len(first)) for value in values], dtype=np.int32).tobytes()


def _renames(values: Sequence[str], groups: Sequence[str]) -> bool:
    """Whether a column has the names of the groups, or short forms of them."""
    pairs = {(value.casefold(), group.casefold()) for value, group in zip(values, groups, strict=True)}
    alike = all(value.startswith(group) or group.startswith(value) for value, group in pairs)
    return alike and len({value for value, _ in pairs}) == len(pairs)
