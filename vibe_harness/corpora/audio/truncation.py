"""Whether an audio file ends before its own header says it should: a download cut short, a disk that filled up.

libsndfile reads what is there of such a WAV, AIFF or Ogg file without a word, so the container itself is asked.
"""

from __future__ import annotations

import os

HEAD = 4096  # bytes of a file's start that settle the matter for nearly all files
_UNKNOWN_SIZE = 0x7FFF0000  # programs that write to a pipe put this or more where the size should be
_OGG_PAGE = 65_307  # no Ogg page is longer


def missing_bytes(file: int, head: bytes, size: int) -> int:
    """How many bytes a file lacks of what its container promises; 0 where it is whole or promises nothing.

    file: a descriptor, whose position is moved. head: its first HEAD bytes. size: of the file.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        promised = _wav_end(file, head)
    elif head[:4] == b"FORM":
        promised = 8 + int.from_bytes(head[4:8], "big")
    elif head[:4] == b"OggS":
        promised = _last_ogg_page_end(file, size)
    else:
        return 0
    return max(0, promised - size)


def _wav_end(file: int, head: bytes) -> int:
    """Where the data chunk ends, by its header; 0 where its size was never filled in."""
    at = 12
    while True:
        header = head[at : at + 8] if at + 8 <= len(head) else _read_at(file, at, 8)
        if len(header) < 8:
            return 0
        length = int.from_bytes(header[4:], "little")
        if header[:4] == b"data":
            return 0 if length >= _UNKNOWN_SIZE else at + 8 + length
        at += 8 + length + length % 2


def _last_ogg_page_end(file: int, size: int) -> int:
    start = max(0, size - _OGG_PAGE)
    tail = _read_at(file, start, _OGG_PAGE)
    at = tail.rfind(b"OggS")
    if at < 0:
        return size
    segments = tail[at + 26] if len(tail) > at + 26 else 0
    return start + at + 27 + segments + sum(tail[at + 27 : at + 27 + segments])


def _read_at(file: int, offset: int, count: int) -> bytes:
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, count)
