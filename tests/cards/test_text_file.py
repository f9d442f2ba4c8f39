"""Reading text: UTF-8 with or without a mark, any line ends; every other encoding is named, and never read as words."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from vibe_harness.cards.text_file import read_text
from vibe_harness.errors import UserError


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("plain English".encode("utf-16"), "it is UTF-16"),
        (codecs.BOM_UTF16_BE + "plain".encode("utf-16-be"), "it is UTF-16"),
        ("plain English".encode("utf-16-le"), "NUL characters, as UTF-16 does"),
        ("café".encode("latin-1"), "byte 0xe9"),
    ],
)
def test_other_encodings_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "prompt.j2"
    path.write_bytes(data)
    with pytest.raises(UserError, match=f"prompt.j2(:1)?: not UTF-8 .*{said}.*save it as UTF-8"):
        read_text(path)
    assert path.read_bytes() == data


def test_marks_and_line_ends_are_no_part_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "prompt.j2"
    path.write_bytes(codecs.BOM_UTF8 + "one\r\ntwo\rthree\x0b é\u2028\n".encode())
    assert read_text(path) == "one\ntwo\nthree\x0b é\u2028\n"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_text(tmp_path / "none")
    with pytest.raises(UserError, match="cannot be read"):
        read_text(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.yaml")
    with pytest.raises(UserError, match="a pipe or a device"):
        read_text(tmp_path / "x.yaml")
