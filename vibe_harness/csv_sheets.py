"""Cells of the sheets that people fill in with a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from vibe_harness.errors import UserError

ENCODING = "utf-8-sig"  # without the byte order mark Excel takes a CSV for another code page
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


def escape_formula(text: str) -> str:
    """The text with an apostrophe ahead where a spreadsheet would run it as a formula, and without NUL."""
    text = text.replace("\0", "")
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text


def filled_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row of a sheet with its place (file and line); none where there is no such file.

    Raises UserError for what is no CSV in UTF-8, or a row that lacks one of the columns.
    """
    if not path.exists():
        return
    try:
        with path.open(encoding=ENCODING, newline="") as file:
            rows = csv.DictReader(file)
            for row in rows:
                place = f"{path}:{rows.line_num}"
                if any(row.get(column) is None for column in columns):
                    raise UserError(f"{place}: the columns are {', '.join(columns)}")
                yield place, row
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a CSV file in UTF-8: {error}") from None
