"""Write the sample as a spreadsheet, as an alternative to the page, and read a filled one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vibe_harness.csv_sheets import ENCODING, escape_formula
from vibe_harness.errors import UserError
from vibe_harness.records import Reading
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.validation.judgments import Judgment, Verdict
from vibe_harness.validation.sample import Claim, Sample

COLUMNS = ["sample", "item", "task", "attribute", "reads", "as_written", "judgment", "wrong_items", "answer"]
CELL = 32_000  # letters; a spreadsheet holds 32,767 and drops the rest without a word
SHOWN = 10  # broken rows that are named
_SAYS = {Reading.UNKNOWN: "(left open by the answer)", Reading.NONE: "(not in the answer)"}


def write_sheet(path: Path, sample: Sample) -> None:
    """Write one row an item, with the columns `judgment` and `wrong_items` left to be filled in.

    UTF-8 with a byte order mark, without which Excel takes it for another code page. Text that a spreadsheet would run
    as a formula gets an apostrophe ahead.
    """
    with atomic_write(path) as aside, aside.open("w", encoding=ENCODING, newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for item, response, attribute, claim in sample.items():
            says = [says_of(claim), "; ".join(claim.raw)]
            answer = response.text if len(response.text) <= CELL else response.text[:CELL] + " (cut: see the page)"
            rows.writerow(
                [sample.id, item, response.task, attribute, *map(escape_formula, says), "", "", escape_formula(answer)]
            )


def says_of(claim: Claim) -> str:
    """A claim as text."""
    return _SAYS.get(claim.reading) or "; ".join(claim.values)


@dataclass(frozen=True, slots=True)
class FilledSheet:
    """A sheet that was filled in: its judgments, the rows left empty, and the items of the sample without a row."""

    judgments: Sequence[Judgment]
    empty: int
    missing: int


def read_sheet(path: Path, sample: Sample) -> FilledSheet:
    """The judgments of a filled sheet, in any order of rows. Commas, semicolons or tabs between the cells.

    Raises UserError naming every broken row (the first ten of them, and how many): the sheet is taken whole or not at
    all, and stays as it is.
    """
    claims = {item: claim for item, _, _, claim in sample.items()}
    found: dict[str, tuple[int, Judgment]] = {}
    empty: set[str] = set()
    broken: list[str] = []
    for number, row in _rows(path):
        try:
            judgment = _judgment(row, sample, claims)
            if judgment is None:
                empty.add(row["item"])
                continue
            if judgment.item in found and found[judgment.item][1] != judgment:
                raise ValueError(f"judges {judgment.item} otherwise than row {found[judgment.item][0]}")
            found.setdefault(judgment.item, (number, judgment))
        except ValueError as error:
            broken.append(f"row {number}: {error}")
    if broken:
        more = [f"and {len(broken) - SHOWN} more rows"] if len(broken) > SHOWN else []
        lines = "\n".join(f"  {line}" for line in [*broken[:SHOWN], *more])
        raise UserError(f"{path}: nothing was taken from it: mend these rows, then import it again\n{lines}")
    judgments = [judgment for _, judgment in found.values()]
    return FilledSheet(judgments, len(empty - found.keys()), len(claims.keys() - found.keys() - empty))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the number that a spreadsheet shows: the heading is row 1, a cell with line breaks is in one row."""
    text = _text(path)
    heading = text.partition("\n")[0]
    delimiter = max(",;\t", key=heading.count)
    # Strict: a quote that is never closed would swallow the rows below it.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 0
    try:
        names: Sequence[str] = [name.strip().casefold() for name in next(reader, [])]
        missing = [name for name in ("sample", "item", "judgment", "wrong_items") if name not in names]
        if missing:
            raise UserError(f"{path}: row 1 has no column '{missing[0]}': keep the headings as they were written")
        for number, cells in enumerate(reader, 2):
            if any(cell.strip() for cell in cells):
                row = dict(zip(names, (cell.strip() for cell in cells), strict=False))
                yield number, row | {"": "".join(cells[len(names) :]).strip()}
    except csv.Error as error:
        raise UserError(f"{path}: below row {number}: a quotation mark is missing or stray: {error}") from None


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if data[:4] == b"PK\x03\x04":
        raise UserError(f"{path}: a workbook: save it as 'CSV UTF-8', then import that")
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8: save it as 'CSV UTF-8', then import that") from None


def _judgment(row: dict[str, str], sample: Sample, claims: dict[str, Claim]) -> Judgment | None:
    """The judgment in a row, None where it holds none. Raises ValueError for a broken row."""
    if row.get("sample") != sample.id:
        raise ValueError(f"of the sample '{row.get('sample', '')}', and this one is {sample.id}")
    if row[""]:
        raise ValueError(f"has more cells than headings: '{row[''][:40]}'")
    item = row.get("item", "")
    if item not in claims:
        raise ValueError(f"'{item}' is no item of this sample")
    word, wrong = row.get("judgment", "").casefold(), _listed(row.get("wrong_items", ""), claims[item])
    if not word:
        if wrong:
            raise ValueError("has wrong_items and no judgment")
        return None
    if word not in list(Verdict):
        raise ValueError(f"the judgment is '{word}': write right or wrong, or leave it empty")
    return Judgment(item, Verdict(word), wrong)


def _listed(text: str, claim: Claim) -> tuple[str, ...]:
    """The wrong items of a cell, as the claim spells them."""
    known = {value.casefold(): value for value in claim.values}
    wanted = [part.strip() for part in text.split(";") if part.strip()]
    strange = [part for part in wanted if part.casefold() not in known]
    if strange:
        raise ValueError(f"'{strange[0]}' is not among the values of this row ({'; '.join(claim.values)})")
    return tuple(dict.fromkeys(known[part.casefold()] for part in wanted))
