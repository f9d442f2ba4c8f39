"""Names in a manifest that mean the same, or that stand for a missing value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping

from vibe_harness.errors import UserError
from vibe_harness.records import parts_of

PLACEHOLDERS = frozenset(
    ["nan", "<na>", "nat", "null", "nil", "none", "na", "n/a", "n.a.", "n.a", "unknown", "unk", "unspecified",
     "undefined", "undisclosed", "missing", "empty", "blank", "true", "false", "tbd", "todo", "not stated", "not known",
     "not specified", "not available", "not reported", "no answer", "prefer not to say"]
)  # fmt: skip
"""What people and programs write for a missing value, in lower case. Names without a letter or digit ("-", "?") and
spreadsheet errors ("#REF!") count as missing too."""
_ERROR = re.compile(r"#[a-z0-9/]+[!?]?")
_WHOLE_FLOAT = re.compile(r"(\d+)\.0+")
_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")  # of a number, not of its fractional part


def plain(name: str) -> str:
    """Normalise a name: case, width, spacing, Unicode form, the digits' script, and a number's leading and trailing
    zeros ("0010" and "10.0" become "10")."""
    seen = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    text = " ".join(unicodedata.normalize("NFKC", seen.casefold()).split())
    text = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
    whole = _WHOLE_FLOAT.fullmatch(text)
    return _LEADING_ZEROS.sub("", whole[1] if whole else text)


def is_placeholder(name: str) -> bool:
    """Whether a group's name stands for a missing value: see PLACEHOLDERS."""
    text = plain(name)
    return text in PLACEHOLDERS or not any(map(str.isalnum, text)) or _ERROR.fullmatch(text) is not None


def check_group_names(
    dimension: str, groups: Collection[tuple[str, ...]], named: Mapping[str, Collection[str]]
) -> None:
    """Raise UserError, listing all of them, if names of groups stand for missing values.

    groups: each as its values in the dimension's columns. named: column -> such names that are real groups, from the
    corpus card.
    """
    found: dict[str, dict[str, None]] = {}
    for parts in groups:
        for column, part in zip(parts_of(dimension), parts, strict=True):
            if is_placeholder(part) and part not in named.get(column, ()):
                found.setdefault(column, {})[part] = None
    if found:
        columns = "; ".join(
            f"the column '{column}' has {', '.join(map(repr, names))}" for column, names in found.items()
        )
        remedy = ", ".join(f"{column}: [{', '.join(map(repr, names))}]" for column, names in found.items())
        raise UserError(
            f"the dimension '{dimension}': {columns}, which is written where the group is not known: leave these cells "
            f"empty, or, where it is a group, say so in the corpus card (groups: {{{remedy}}})"
        )


def check_groups_apart(dimension: str, groups: Collection[tuple[str, ...]]) -> None:
    """Raise UserError if two groups cannot be told from each other by name. groups: each as its values in the
    dimension's columns.

    Two groups may differ in spelling only, or two combinations may have the same name: "x:y:z" is "x:y" with "z" and
    also "x" with "y:z".
    """
    spelling: dict[str, str] = {}
    names: set[str] = set()
    for parts in groups:
        name = ":".join(parts)
        if name in names:
            raise UserError(
                f"the dimension '{dimension}' has two groups that would both be called '{name}': take the colons out "
                "of the names in the manifest"
            )
        names.add(name)
        if (known := spelling.setdefault(plain(name), name)) != name:
            raise UserError(
                f"the dimension '{dimension}' has the groups '{known}' and '{name}', which differ in spelling only: "
                "write them alike in the manifest"
            )
