"""Read and write CSV sheets that people fill in with a spreadsheet program."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from vibe_harness.errors import UserError

ENCODING = "utf-8-sig"  # without a byte order mark, Excel reads a CSV in another encoding
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # beginnings that spreadsheets interpret as a formula


def escape_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula, and remove NUL characters."""
    text = text.replace("\0", "")
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text


def filled_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the location (file and line) and the cells of each row; nothing if there is no such file.

    Raises UserError if the file is not CSV in UTF-8, or a row lacks one of the columns.
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
