"""Read and write CSV sheets that people fill in with a spreadsheet program."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from vibe_harness.errors import UserError

ENCODING = "utf-8-sig"  # without the byte order mark Excel takes a CSV for another code page
_FORMULA = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")  # what a spreadsheet would run, in full width too
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(1, 32), *range(127, 160)) if chr(code) not in "\t\n\r"} | {
    0: ""
}


def escape_formula(text: str) -> str:
    """The text with an apostrophe ahead where a spreadsheet would run it as a formula, without NUL, and with what a
    terminal would obey (ESC and its kind) in words."""
    text = text.translate(_CONTROLS)
    return "'" + text if text.lstrip(" \n").startswith(_FORMULA) else text


def inert_row(cells: Iterable[object]) -> list[object]:
    """The cells of a row, `escape_formula` where they are words."""
    return [escape_formula(cell) if isinstance(cell, str) else cell for cell in cells]


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
