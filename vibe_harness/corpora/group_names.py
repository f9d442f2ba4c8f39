"""Names in a manifest that people take for one and a program for two."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from vibe_harness.errors import UserError
from vibe_harness.records import parts_of

NOTHING = frozenset({"nan", "<na>", "nat", "null", "n/a", "#n/a"})
"""What data frames and spreadsheets write into an empty cell, in lower case. "NA" and "none" may mean something."""
_WHOLE_FLOAT = re.compile(r"(\d+)\.0+")


def plain(name: str) -> str:
    """The name without what nobody sees or means: case, width, spacing, Unicode form, the ".0" of a whole number."""
    seen = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    text = " ".join(unicodedata.normalize("NFKC", seen.casefold()).split())
    whole = _WHOLE_FLOAT.fullmatch(text)
    return whole[1] if whole else text


def check_groups_apart(dimension: str, groups: Collection[tuple[str, ...]]) -> None:
    """Raise UserError where groups would be scored as others than they are. groups: the words of each in the columns of
    the dimension.

    So it is where two differ in spelling alone, where one stands for an empty cell, and where two combinations of
    columns have the same name, "x:y:z" being "x:y" and "z" as well as "x" and "y:z".
    """
    spelling: dict[str, str] = {}
    names: set[str] = set()
    for parts in groups:
        name = ":".join(parts)
        for column, part in zip(parts_of(dimension), parts, strict=True):
            if part.casefold() in NOTHING:
                raise UserError(
                    f"the column '{column}' has a group '{part}', which is what programs write for nothing: leave the "
                    "cell empty, or call the group otherwise"
                )
        if name in names:
            raise UserError(
                f"the dimension '{dimension}' has two groups that would both be called '{name}': take the colons out "
                "of the names in the manifest"
            )
        names.add(name)
        if (known := spelling.setdefault(plain(name), name)) != name:
            raise UserError(
                f"the dimension '{dimension}' has the groups '{known}' and '{name}', which differ in spelling alone: "
                "write them alike in the manifest"
            )
