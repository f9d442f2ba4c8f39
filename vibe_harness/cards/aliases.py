"""Alias files: a YAML mapping from each canonical value to its other spellings."""

from __future__ import annotations

from pathlib import Path

from vibe_harness.cards.faults import Faults
from vibe_harness.cards.schema import Attribute
from vibe_harness.cards.spelling import fold
from vibe_harness.cards.yaml_file import read_yaml
from vibe_harness.errors import UserError


def read_aliases(path: Path, attribute: Attribute) -> dict[str, str]:
    """Read an alias file. Returns spelling -> canonical value, both as written in the file.

    Spellings are compared after `fold`. Raises CardError with all errors if a spelling has two values, if aliases form
    a chain or a cycle, or if a canonical value is not in the list of a closed attribute.
    """
    source = read_yaml(path)
    taken: dict[str, str] = {}  # folded spelling -> canonical value
    aliases: dict[str, str] = {}
    faults = Faults()
    listed: dict[str, list[str]] = {}
    for canonical, spellings in source.data.items():
        with faults.at(source.location([canonical])):
            if not isinstance(spellings, list) or not all(isinstance(spelling, str) for spelling in spellings):
                raise UserError("write it as 'canonical value: [spelling, spelling]'")
            if attribute.values != "open" and canonical not in attribute.values:
                raise UserError(f"'{canonical}' is not one of the card's values: {', '.join(attribute.values)}")
            _claim(taken, canonical, canonical)
            listed[canonical] = spellings
    for canonical, spellings in listed.items():
        for spelling in spellings:
            with faults.at(source.location([canonical])):
                _claim(taken, spelling, canonical)
                aliases[spelling] = canonical
    faults.raise_if_any()
    return aliases


def _claim(taken: dict[str, str], spelling: str, canonical: str) -> None:
    folded = fold(spelling)
    if not folded:
        raise UserError(f"'{spelling}' contains no letter or digit: remove it")
    if folded in taken:
        other = taken[folded]
        what = "is already the canonical value" if fold(other) == folded else "is already an alias of"
        raise UserError(
            f"'{spelling}' {what} '{other}' (case, punctuation and number are ignored): remove one of the two"
        )
    taken[folded] = canonical
