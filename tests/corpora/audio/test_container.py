"""What a file's own header says of its length, against what the file holds: both ways, format by format."""

import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.corpora.sounds import speechlike, write
from vibe_harness.corpora.audio.decode import BadAudio, Fault, check_audio, read_audio
from vibe_harness.errors import UserError
from vibe_harness.records import CheckedAudio

SECONDS = 2.28
CONTAINERS = ["WAV", "WAVEX", "RF64", "W64", "AIFF", "AU", "CAF", "NIST", "VOC", "SVX"]
LENGTHS = {  # format: the bytes ahead of the length of the sound, its layout, what the length counts besides
    "WAV": (b"data", "<I", 0),
    "RF64": (b"ds64\x1c\0\0\0" + struct.pack("<Q", 72_960 + 96), "<Q", 0),
    "W64": (b"data\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a", "<Q", 24),
    "AIFF": (b"SSND", ">I", 8),
    "AU": (b".snd\0\0\0\x18", ">I", 0),
    "CAF": (b"data", ">Q", 4),
    "SVX": (b"BODY", ">I", 0),
}


def _file(folder: Path, kind: str) -> Path:
    return write(folder / "a.bin", speechlike(SECONDS), format=kind, subtype="PCM_16")


def _judged(path: Path) -> BadAudio | CheckedAudio:
    """The check, which reading the file agrees with."""
    checked = check_audio(path)
    if isinstance(checked, BadAudio):
        with pytest.raises(UserError, match=path.name):
            read_audio(path, 16_000)
    else:
        assert len(read_audio(path, 16_000).samples) == round(16_000 * checked.duration_s)
    return checked


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_whole_file_passes_and_its_half_does_not(kind: str, tmp_path: Path) -> None:
    path = _file(tmp_path, kind)
    checked = _judged(path)
    assert isinstance(checked, CheckedAudio) and checked.duration_s == pytest.approx(SECONDS, abs=1e-4), checked
    data = path.read_bytes()
    for cut in (len(data) // 2, len(data) - 200):
        path.write_bytes(data[:cut])
        checked = _judged(path)
        assert isinstance(checked, BadAudio) and checked.fault in (Fault.TRUNCATED, Fault.UNREADABLE), (cut, checked)


@pytest.mark.parametrize("kind", sorted(LENGTHS))
def test_a_header_that_tells_a_quarter_of_the_sound_is_refused(kind: str, tmp_path: Path) -> None:
    path = _file(tmp_path, kind)
    data = bytearray(path.read_bytes())
    ahead, layout, more = LENGTHS[kind]
    at = data.index(ahead) + len(ahead)
    (length,) = struct.unpack_from(layout, data, at)
    assert length - more in (72_960, 72_964), (kind, length)
    struct.pack_into(layout, data, at, (length - more) // 4 // 8 * 8 + more)
    path.write_bytes(data)
    checked = _judged(path)
    assert isinstance(checked, BadAudio) and checked.fault is Fault.UNDERSTATED, checked
    assert "bytes of the file lie beyond" in checked.reason


def test_a_sphere_header_that_tells_a_quarter_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, "NIST")
    path.write_bytes(path.read_bytes().replace(b"sample_count -i 36480", b"sample_count -i 9120 "))
    assert getattr(_judged(path), "fault", None) is Fault.UNDERSTATED


def test_a_voc_that_ends_early_is_refused(tmp_path: Path) -> None:
    """Block 9: its length in three bytes, counting twelve of its own header; then the terminator."""
    path = _file(tmp_path, "VOC")
    data = bytearray(path.read_bytes())
    assert data[26] == 9 and int.from_bytes(data[27:30], "little") == 72_960 + 12
    data[27:30] = (18_240 + 12).to_bytes(3, "little")
    data[26 + 4 + 18_240 + 12] = 0
    path.write_bytes(data)
    assert getattr(_judged(path), "fault", None) is Fault.UNDERSTATED


def test_a_flac_that_tells_less_or_nothing_is_refused(tmp_path: Path) -> None:
    """The number of samples: 36 bits from byte 21 on, 0 where the writer did not know it (RFC 9639)."""
    path = write(tmp_path / "a.flac", speechlike(10.0), format="FLAC", subtype="PCM_16")
    data = bytearray(path.read_bytes())
    assert int.from_bytes(data[22:26], "big") == 160_000
    data[22:26] = (40_000).to_bytes(4, "big")
    path.write_bytes(data)
    assert getattr(_judged(path), "fault", None) is Fault.UNDERSTATED
    data[22:26] = bytes(4)
    path.write_bytes(data)
    checked = _judged(path)
    assert isinstance(checked, BadAudio) and "does not tell its length" in checked.reason


@pytest.mark.parametrize(("kind", "subtype"), [("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III")])
def test_two_streams_in_one_file_are_refused(kind: str, subtype: str, tmp_path: Path) -> None:
    """The decoder reads the first of the two."""
    path = write(tmp_path / "a.bin", speechlike(SECONDS), format=kind, subtype=subtype)
    assert isinstance(_judged(path), CheckedAudio)
    path.write_bytes(path.read_bytes() * 2)
    assert getattr(_judged(path), "fault", None) is Fault.UNDERSTATED


@pytest.mark.parametrize(
    "behind",
    [
        b"LIST" + struct.pack("<I", 5_000) + b"INFO" + bytes(range(256)) * 19 + bytes(132),
        b"TAG" + b"title".ljust(125, b"\0"),
        bytes(60_000),
    ],
)
def test_what_may_stand_behind_the_sound(behind: bytes, tmp_path: Path) -> None:
    path = _file(tmp_path, "WAV")
    path.write_bytes(path.read_bytes() + behind)
    checked = _judged(path)
    assert isinstance(checked, CheckedAudio) and checked.duration_s == pytest.approx(SECONDS), checked


def test_an_mp3_with_a_long_tag_at_its_end_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp3", speechlike(SECONDS), format="MP3", subtype="MPEG_LAYER_III")
    tag = b"APETAGEX" + bytes(20_000) + b"APETAGEX" + bytes(24)
    path.write_bytes(path.read_bytes() + tag)
    assert isinstance(_judged(path), CheckedAudio)


def test_a_format_in_which_no_cut_is_seen_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, "MAT5")
    checked = _judged(path)
    assert isinstance(checked, BadAudio) and "MAT5" in checked.reason and "convert it to WAV" in checked.reason


@pytest.mark.parametrize("other", [-1.0, -0.95])
def test_opposite_channels_are_called_so_and_not_silence(other: float, tmp_path: Path) -> None:
    wave = speechlike()
    path = write(tmp_path / "a.wav", np.stack([wave, other * wave], axis=1), subtype="PCM_16")
    checked = _judged(path)
    assert isinstance(checked, BadAudio) and checked.fault is Fault.OPPOSITE and "inverted" in checked.reason


@pytest.mark.parametrize("channels", [2, 3, 8, 16])
def test_channels_that_differ_pass(channels: int, tmp_path: Path) -> None:
    """One loud and the others still, all alike, or none like another: nothing cancels."""
    alone = np.zeros((36_480, channels), np.float32)
    alone[:, 0] = speechlike(SECONDS)
    different = np.stack([speechlike(SECONDS, pitch=90.0 + 17 * number, seed=number) for number in range(channels)], 1)
    for samples in (alone, np.repeat(alone[:, :1], channels, axis=1), different):
        soundfile.write(tmp_path / "a.wav", samples, 16_000)
        assert isinstance(_judged(tmp_path / "a.wav"), CheckedAudio)
    soundfile.write(tmp_path / "a.wav", np.zeros((16_000, channels), np.float32), 16_000)
    assert getattr(check_audio(tmp_path / "a.wav"), "fault", None) is Fault.SILENT
