"""Alias files: canonical value -> the other spellings that are counted under it."""

from __future__ import annotations

from pathlib import Path

from vibe_harness.cards.faults import Faults
from vibe_harness.cards.schema import Attribute
from vibe_harness.cards.spelling import fold
from vibe_harness.cards.yaml_file import read_yaml
from vibe_harness.errors import UserError


def read_aliases(path: Path, attribute: Attribute) -> dict[str, str]:
    """Spelling -> canonical value, both as written.

    Raises CardError, with every fault, where one spelling has two values, or aliases chain or go in a circle, once
    case, punctuation and number are folded; and where a canonical value is not on a closed attribute's list.
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
        raise UserError(f"'{spelling}' holds no letter or digit: remove it")
    if folded in taken:
        other = taken[folded]
        what = "is itself the canonical value" if fold(other) == folded else "already stands for"
        raise UserError(
            f"'{spelling}' {what} '{other}' (case, punctuation and number make no difference): remove it here or there"
        )
    taken[folded] = canonical
