"""Whether an audio file ends before its own header says it should: a download cut short, a disk that filled up.

libsndfile reads what is there of such a WAV, AIFF or Ogg file without a word, so the container itself is asked.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

_UNKNOWN_SIZE = 0x7FFF0000  # programs that write to a pipe put this or more where the size should be
_TAIL = 65_536 + 282  # no Ogg page is longer


def missing_bytes(path: Path) -> int:
    """How many bytes the file lacks of what its container promises; 0 where it is whole or promises nothing."""
    size = path.stat().st_size
    with path.open("rb") as file:
        magic = file.read(12)
        if magic[:4] == b"RIFF" and magic[8:] == b"WAVE":
            promised = _wav_end(file)
        elif magic[:4] == b"FORM":
            promised = 8 + int.from_bytes(magic[4:8], "big")
        elif magic[:4] == b"OggS":
            promised = _last_ogg_page_end(file, size)
        else:
            return 0
    return max(0, promised - size)


def _wav_end(file: BinaryIO) -> int:
    """Where the data chunk ends, by its header; 0 where its size was never filled in."""
    while len(header := file.read(8)) == 8:
        length = int.from_bytes(header[4:], "little")
        if header[:4] == b"data":
            return 0 if length >= _UNKNOWN_SIZE else file.tell() + length
        file.seek(length + length % 2, os.SEEK_CUR)
    return 0


def _last_ogg_page_end(file: BinaryIO, size: int) -> int:
    start = max(0, size - _TAIL)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"OggS")
    if at < 0:
        return size
    segments = tail[at + 26] if len(tail) > at + 26 else 0
    return start + at + 27 + segments + sum(tail[at + 27 : at + 27 + segments])
