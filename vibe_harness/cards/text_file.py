"""Read text files in UTF-8. Errors say which other encoding a file seems to have."""

from __future__ import annotations

import codecs
from pathlib import Path

from vibe_harness.errors import UserError


def read_text(path: Path) -> str:
    """The text of a file, without a byte order mark. Raises UserError if it cannot be read or is not UTF-8."""
    if path.is_fifo() or path.is_char_device():  # reading could block or never end
        raise UserError(f"{path}: a pipe or a device, not a file")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(encoding_fault(path, data)) from None
    if "\0" in text:  # ASCII text in UTF-16 is also valid UTF-8, with a NUL after each letter
        raise UserError(f"{path}: not UTF-8 (it contains NUL characters, as UTF-16 does): save it as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def encoding_fault(path: Path, data: bytes) -> str:
    """The error message for a file that is not UTF-8, with the line of the first invalid byte."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return f"{path}: not UTF-8 (it is UTF-16): save it as UTF-8"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"{path}:{line}: not UTF-8 (byte 0x{data[error.start]:02x}; perhaps Latin-1): save it as UTF-8"
    return f"{path}: not UTF-8: save it as UTF-8"
