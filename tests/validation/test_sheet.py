"""The spreadsheet: written for any program, read back from any, broken rows named and nothing lost."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.validation.conftest import claim, drawn, made_sample
from vibe_harness.errors import UserError
from vibe_harness.records import Reading
from vibe_harness.validation.judgments import Judgment, Verdict
from vibe_harness.validation.sample import Sample
from vibe_harness.validation.sheet import CELL, COLUMNS, FilledSheet, read_sheet, write_sheet

RIGHT, WRONG = Verdict
Rows = list[list[str]]


def sample() -> Sample:
    return made_sample([
        drawn(1, 'She said "hi",\nand; left\t– ünïcode 😀', {
            "occupation": [claim(["nurse"])], "hobby": [claim(["reading", "Swimming"])],
        }),
        drawn(2, "=HYPERLINK(\"http://evil.example\")", {
            "occupation": [claim(["=1+1"])], "situation": [claim(reading=Reading.NONE)],
        }),
    ])  # fmt: skip


def rows_of(path: Path) -> Rows:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def filled(tmp_path: Path, change: Callable[[Rows], object], **how: str) -> Path:
    """The sheet as a person leaves it."""
    path = tmp_path / "sheet.csv"
    write_sheet(path, sample())
    rows = rows_of(path)
    change(rows)
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=how.get("delimiter", ",")).writerows(rows)
    path.write_bytes(text.getvalue().encode(how.get("encoding", "utf-8-sig")))
    return path


def judge(*words: str) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        for row, word in zip(rows[1:], words, strict=False):
            row[COLUMNS.index("judgment")], _, row[COLUMNS.index("wrong_items")] = word.partition(" ")

    return change


def test_there_is_one_row_an_item_and_nothing_that_a_spreadsheet_runs(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, sample())
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    heading, *rows = rows_of(path)
    assert heading == COLUMNS and [row[1] for row in rows] == [item for item, *_ in sample().items()]
    assert rows[0][-1] == sample().responses[0].text and rows[1][4] == "reading; Swimming"
    assert rows[2][4] == "'=1+1" and rows[2][-1].startswith("'=HYPERLINK") and rows[3][4] == "(not in the answer)"
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)


def test_a_cell_is_never_longer_than_a_spreadsheet_holds(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, made_sample([drawn(1, "x" * 40_000, {"occupation": [claim(["nurse"])]})]))
    assert len(rows_of(path)[1][-1]) < 32_767 and rows_of(path)[1][-1].startswith("x" * CELL)


@pytest.mark.parametrize(
    ("delimiter", "encoding"), [(",", "utf-8-sig"), (";", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16")]
)
def test_every_program_that_saves_it_is_understood(tmp_path: Path, delimiter: str, encoding: str) -> None:
    path = filled(tmp_path, judge("right", "WRONG swimming", "Wrong"), delimiter=delimiter, encoding=encoding)
    assert read_sheet(path, sample()) == FilledSheet(
        [
            Judgment("r001/occupation/1", RIGHT),
            Judgment("r001/hobby/1", WRONG, ("Swimming",)),
            Judgment("r002/occupation/1", WRONG),
        ],
        empty=1,
        missing=0,
    )


def test_rows_may_be_sorted_left_out_and_come_twice(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        judge("right", "", "wrong")(rows)
        rows[1:] = [rows[3], rows[1], rows[1], []]

    found = read_sheet(filled(tmp_path, change), sample())
    assert [one.item for one in found.judgments] == ["r002/occupation/1", "r001/occupation/1"]
    assert (found.empty, found.missing) == (0, 2)


def test_every_broken_row_is_named_and_the_sheet_stays_as_it_is(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        judge("right", "wrong flying", "maybe", "")(rows)
        rows[4][COLUMNS.index("wrong_items")] = "x"
        rows.append([sample().id, "r001/occupation/1", "", "", "", "", "wrong"])
        rows.append([sample().id, "r009/occupation/1", "", "", "", "", "wrong"])
        rows.append(["s-0", *rows[1][1:]])
        rows.append([*rows[1], "and one cell more"])
        rows.append(["half a row"])

    path = filled(tmp_path, change)
    before = path.read_bytes()
    with pytest.raises(UserError) as refused:
        read_sheet(path, sample())
    told = str(refused.value).splitlines()
    assert "nothing was taken" in told[0] and len(told) == 9
    for line, (row, what) in zip(told[1:], [
        (3, "'flying' is not among"), (4, "'maybe': write right or wrong"), (5, "'x' is not among"),
        (6, "otherwise than row 2"), (7, "'r009/occupation/1' is no item"), (8, "of the sample 's-0'"),
        (9, "more cells than headings: 'and one cell more'"), (10, "of the sample 'half a row'"),
    ], strict=True):  # fmt: skip
        assert line.strip().startswith(f"row {row}:") and what in line
    assert path.read_bytes() == before


def test_hundreds_of_broken_rows_are_counted(tmp_path: Path) -> None:
    path = filled(tmp_path, lambda rows: rows.extend([["x"]] * 300))
    with pytest.raises(UserError, match="and 290 more rows"):
        read_sheet(path, sample())


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"PK\x03\x04...", "save it as 'CSV UTF-8'"),
        ("sample,item,judgment,wrong_items\nü".encode("cp1252"), "not UTF-8"),
        (b"", "row 1 has no column 'sample'"),
        (b"sample,item,verdict\n", "no column 'judgment'"),
        (b'sample,item,judgment,wrong_items\ns,"r001/occupation/1,right,\ns,r002,right,\n', "quotation mark"),
    ],
)
def test_what_is_no_such_sheet_is_refused(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "sheet.csv"
    path.write_bytes(data)
    with pytest.raises(UserError, match=told):
        read_sheet(path, sample())
    with pytest.raises(UserError, match="cannot be read"):
        read_sheet(tmp_path / "none.csv", sample())
