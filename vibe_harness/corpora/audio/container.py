"""What an audio file's own header says of its length, against what the file holds.

libsndfile reads what is there of a file that was cut short, and leaves what lies past a header that tells too little,
without a word; so the container itself is read. Layouts: RIFF WAVE and its 64-bit forms RF64 (EBU Tech 3306) and Wave64
(Sony), AIFF and 8SVX (EA IFF 85), CAF (Apple), AU (Sun), NIST SPHERE, Creative VOC, Ogg (RFC 3533).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

HEAD = 4096  # bytes of a file's start that settle the matter for nearly all files
TRAILER = 1024  # bytes that another program may put behind the sound: a tag. Sound is longer
PROVEN = frozenset({"WAV", "WAVEX", "RF64", "W64", "AIFF", "SVX", "CAF", "AU", "NIST", "VOC", "OGG", "FLAC", "MP3"})
"""Formats of libsndfile in which a file that was cut is seen, here or by the decoder."""
STREAMS = frozenset({"OGG", "FLAC", "MP3"})
"""Formats in which the decoder reads to the end of the sound, wherever that is."""
_UNKNOWN_SIZE = 0x7FFF0000  # programs that write to a pipe put this or more where the size should be
_OGG_PAGE = 65_307  # no Ogg page is longer
_W64_DATA = b"data\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a"
_TAGS = (b"APETAGEX", b"TAG", b"LYRICS200")  # at the end of a file: words on it, and no sound


@dataclass(frozen=True, slots=True)
class Extent:
    """lacking: bytes that the header promises and the file does not hold. beyond: bytes past the end that it tells,
    which are no part of the container. Both are 0 where the header tells no length."""

    lacking: int = 0
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class _Chunks:
    """How a container of chunks is laid out: each has a name, its length, and so many bytes."""

    first: int  # where the first chunk begins
    sound: bytes  # the name of the chunk that holds the sound
    name_bytes: int = 4
    length_bytes: int = 4
    order: Literal["little", "big"] = "little"
    uncounted: int = 8  # bytes of name and length, where the length does not count them
    align: int = 2
    unknown: int = _UNKNOWN_SIZE  # a length that stands for "not known", and all above it


def extent(file: int, head: bytes, size: int) -> Extent:
    """How the length that a file's header tells compares with the file.

    file: a descriptor, whose position is moved. head: its first HEAD bytes. size: of the file.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return _of_chunks(file, head, size, _Chunks(12, b"data"))
    if head[:4] == b"RF64" and head[8:12] == b"WAVE":
        length = int.from_bytes(head[28:36], "little") if head[12:16] == b"ds64" else None
        return _of_chunks(file, head, size, _Chunks(12, b"data", unknown=0xFFFFFFFF), length)
    if head[:4] == b"riff" and head[24:28] == b"wave":
        layout = _Chunks(40, _W64_DATA, name_bytes=16, length_bytes=8, uncounted=0, align=8, unknown=1 << 62)
        return _of_chunks(file, head, size, layout)
    if head[:4] == b"FORM":
        sound = b"BODY" if head[8:12] == b"8SVX" or head[8:12] == b"16SV" else b"SSND"
        return _of_chunks(file, head, size, _Chunks(12, sound, order="big"))
    if head[:4] == b"caff":
        return _of_chunks(
            file, head, size, _Chunks(8, b"data", length_bytes=8, order="big", uncounted=12, align=1, unknown=1 << 62)
        )
    readers: dict[bytes, Callable[[int, bytes, int], int]] = {
        b".snd": _au_end, b"dns.": _au_end, b"NIST": _nist_end, b"Crea": _voc_end, b"OggS": _last_ogg_page_end,
    }  # fmt: skip
    end = readers[head[:4]](file, head, size) if head[:4] in readers else 0
    return _compared(end, size) if end else Extent()


def beyond_stream(file: int, size: int) -> int:
    """Bytes behind the place where a decoder of a stream stopped, which `file` stands at; 0 where they are a tag."""
    rest = size - os.lseek(file, 0, os.SEEK_CUR)
    tail = _read_at(file, max(0, size - 160), 160)  # an ID3v1 tag of 128 bytes, the footer of another ahead of it
    return 0 if rest <= TRAILER or any(tag in tail for tag in _TAGS) else rest


def _compared(end: int, size: int) -> Extent:
    return Extent(max(0, end - size), size - end if size - end > TRAILER else 0)


def _of_chunks(file: int, head: bytes, size: int, layout: _Chunks, told: int | None = None) -> Extent:
    """told: the length of the sound where it stands elsewhere than in its chunk."""
    at, past_sound = layout.first, False
    ahead = layout.name_bytes + layout.length_bytes
    while at + ahead <= size:
        name, length = _chunk_header(file, head, at, layout)
        is_sound = name == layout.sound and not past_sound
        if is_sound and length >= layout.unknown:
            if told is None:
                return Extent()
            length = told
        end = at + length + layout.uncounted
        if is_sound and end > size:
            return Extent(lacking=end - size)
        if end <= at or (past_sound and not (_is_chunk_name(name) and end <= size + 1)):
            break  # not a chunk but sound
        past_sound |= is_sound
        at = end + -end % layout.align
    if not past_sound or size - at <= TRAILER or _is_zero(file, at, size):
        return Extent()
    return Extent(beyond=size - at)


def _chunk_header(file: int, head: bytes, at: int, layout: _Chunks) -> tuple[bytes, int]:
    """Name and length of the chunk at an offset."""
    count = layout.name_bytes + layout.length_bytes
    header = head[at : at + count] if at + count <= len(head) else _read_at(file, at, count)
    return header[: layout.name_bytes], int.from_bytes(header[layout.name_bytes :], layout.order)


def _is_chunk_name(name: bytes) -> bool:
    return name[:4].isascii() and name[:4].decode("ascii").isprintable()


def _is_zero(file: int, start: int, end: int) -> bool:
    """Whether there are zeros alone: room that a disk or a program left behind the sound."""
    os.lseek(file, start, os.SEEK_SET)
    while start < end:
        block = os.read(file, min(1 << 20, end - start))
        if not block:
            return True
        if block.strip(b"\0"):
            return False
        start += len(block)
    return True


def _au_end(file: int, head: bytes, size: int) -> int:
    order: Literal["little", "big"] = "big" if head[:4] == b".snd" else "little"
    offset, length = int.from_bytes(head[4:8], order), int.from_bytes(head[8:12], order)
    return 0 if length >= _UNKNOWN_SIZE else offset + length


def _nist_end(file: int, head: bytes, size: int) -> int:
    """The header is text: its own length in its second line, then fields "sample_count -i 16000". Compressed samples
    have no length of their own."""
    fields = dict(re.findall(rb"^(\w+) -[irs]\d* (\S+)", head, re.MULTILINE))
    try:
        header, count = int(head[8:16]), int(fields[b"sample_count"])
        samples = count * int(fields.get(b"channel_count", 1)) * int(fields[b"sample_n_bytes"])
    except (KeyError, ValueError):
        return 0
    return 0 if b"," in fields.get(b"sample_coding", b"") else header + samples


def _voc_end(file: int, head: bytes, size: int) -> int:
    """Blocks of a kind and a length of three bytes each, up to one of kind 0, the terminator."""
    at = int.from_bytes(head[20:22], "little")
    while at + 4 <= size:
        block = _read_at(file, at, 4)
        if block[0] == 0:
            return at + 1
        at += 4 + int.from_bytes(block[1:], "little")
    return at


def _last_ogg_page_end(file: int, head: bytes, size: int) -> int:
    start = max(0, size - _OGG_PAGE)
    tail = _read_at(file, start, _OGG_PAGE)
    at = tail.rfind(b"OggS")
    if at < 0:
        return size
    segments = tail[at + 26] if len(tail) > at + 26 else 0
    return max(size, start + at + 27 + segments + sum(tail[at + 27 : at + 27 + segments]))


def _read_at(file: int, offset: int, count: int) -> bytes:
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, count)
