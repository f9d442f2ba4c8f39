"""Reading and checking audio, format by format and fault by fault."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.corpora.sounds import speechlike, write
from vibe_harness.corpora.audio.decode import BadAudio, Fault, check_audio, read_audio, waveform_hash
from vibe_harness.errors import UserError
from vibe_harness.records import CheckedAudio, Waveform

FORMATS = [
    ("a.wav", "WAV", "PCM_U8"),
    ("a.wav", "WAV", "PCM_16"),
    ("a.wav", "WAV", "PCM_24"),
    ("a.wav", "WAV", "FLOAT"),
    ("a.wav", "WAV", "DOUBLE"),
    ("a.flac", "FLAC", "PCM_16"),
    ("a.ogg", "OGG", "VORBIS"),
    ("a.opus", "OGG", "OPUS"),
    ("a.mp3", "MP3", "MPEG_LAYER_III"),
    ("a.aiff", "AIFF", "PCM_16"),
    ("named.wav", "MP3", "MPEG_LAYER_III"),
]


@pytest.mark.parametrize(("name", "kind", "subtype"), FORMATS)
def test_every_format_is_read(tmp_path: Path, name: str, kind: str, subtype: str) -> None:
    wave = speechlike()
    path = write(tmp_path / name, wave, format=kind, subtype=subtype)
    checked = check_audio(path)
    assert isinstance(checked, CheckedAudio), checked
    assert (checked.format, checked.subtype) == (kind, subtype)
    assert (checked.rate, checked.channels) == (16_000, 1)
    assert checked.duration_s == pytest.approx(1.0, abs=0.08)
    heard = read_audio(path, 16_000)
    assert heard.rate == 16_000 and heard.samples.dtype == np.float32 and heard.samples.ndim == 1
    lossless = {"PCM_U8": 1 / 100, "PCM_16": 1 / 30_000}.get(subtype, 1e-6)
    if kind in ("WAV", "FLAC", "AIFF"):
        np.testing.assert_allclose(heard.samples, wave, atol=lossless)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_a_tone_keeps_its_pitch_and_length_at_every_rate(tmp_path: Path, rate: int) -> None:
    """The rate goes with the wave: 8 kHz read as 16 kHz would double the pitch."""
    tone = 0.3 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    heard = read_audio(write(tmp_path / "tone.wav", tone.astype(np.float32), rate, subtype="FLOAT"), 16_000)
    assert len(heard.samples) == 16_000
    assert np.argmax(np.abs(np.fft.rfft(heard.samples))) == 440
    inner = slice(1000, 15_000)
    expected = 0.3 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    np.testing.assert_allclose(heard.samples[inner], expected[inner], atol=2e-3)


def test_a_rate_that_fits_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.wav", speechlike(), subtype="FLOAT")
    monkeypatch.setattr("soxr.resample", lambda *a, **k: pytest.fail("resampled without need"))
    np.testing.assert_array_equal(read_audio(path, 16_000).samples, speechlike())


def test_stereo_is_the_mean_of_its_channels(tmp_path: Path) -> None:
    left, right = speechlike(pitch=100), speechlike(pitch=200)
    path = write(tmp_path / "st.wav", np.stack([left, right], axis=1), subtype="FLOAT")
    np.testing.assert_allclose(read_audio(path, 16_000).samples, (left + right) / 2, atol=1e-7)
    checked = check_audio(path)
    assert isinstance(checked, CheckedAudio) and checked.channels == 2


def _fault(path: Path) -> Fault:
    checked = check_audio(path)
    assert isinstance(checked, BadAudio), checked
    if checked.fault in (Fault.TOO_SHORT, Fault.SILENT):  # these can be heard all the same
        assert len(read_audio(path, 16_000).samples)
    else:
        with pytest.raises(UserError, match=path.name) as raised:
            read_audio(path, 16_000)
        assert checked.reason in str(raised.value)
    return checked.fault


def test_missing_empty_pointer_and_garbage(tmp_path: Path) -> None:
    assert _fault(tmp_path / "absent.wav") is Fault.MISSING
    (tmp_path / "zero.wav").touch()
    assert _fault(tmp_path / "zero.wav") is Fault.EMPTY
    (tmp_path / "text.wav").write_text("not audio at all", encoding="utf-8")
    assert _fault(tmp_path / "text.wav") is Fault.UNREADABLE
    (tmp_path / "samples.raw").write_bytes(bytes(32_000))
    assert _fault(tmp_path / "samples.raw") is Fault.UNREADABLE
    (tmp_path / "folder.wav").mkdir()
    assert _fault(tmp_path / "folder.wav") is Fault.UNREADABLE
    assert _fault(tmp_path / "zero.wav" / "below.wav") is Fault.MISSING
    soundfile.write(tmp_path / "header.wav", np.zeros(0, np.float32), 16_000)
    assert _fault(tmp_path / "header.wav") is Fault.EMPTY


def test_a_pointer_of_git_lfs_names_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "1001_DFA_ANG_XX.wav"
    path.write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 72862\n", encoding="utf-8"
    )
    assert _fault(path) is Fault.LFS_POINTER
    checked = check_audio(path)
    assert isinstance(checked, BadAudio) and "git-lfs" in checked.reason and "git lfs pull" in checked.reason


@pytest.mark.parametrize(("name", "subtype"), [(f[0], f[2]) for f in FORMATS])
@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_a_file_cut_short_is_refused(tmp_path: Path, name: str, subtype: str, keep: float) -> None:
    kind = next(kind for n, kind, s in FORMATS if (n, s) == (name, subtype))
    path = write(tmp_path / name, speechlike(3.0), format=kind, subtype=subtype)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    assert _fault(path) in (Fault.TRUNCATED, Fault.UNREADABLE)


def test_a_wav_written_to_a_pipe_is_whole(tmp_path: Path) -> None:
    """Its data size was never filled in: 0xFFFFFFFF. That is no sign of a cut."""
    path = write(tmp_path / "pipe.wav", speechlike(), subtype="PCM_16")
    data = bytearray(path.read_bytes())
    at = data.index(b"data") + 4
    data[at : at + 4] = b"\xff" * 4
    path.write_bytes(data)
    assert isinstance(check_audio(path), CheckedAudio)


@pytest.mark.parametrize("factor", [32_768.0, 1e30, 6e38])
def test_samples_out_of_scale_are_no_audio(tmp_path: Path, factor: float) -> None:
    wave = speechlike().astype(np.float64) * factor  # which a model would hear as a square wave: all is clipped
    assert _fault(write(tmp_path / "loud.wav", wave, subtype="FLOAT")) is Fault.OUT_OF_SCALE


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_finite(tmp_path: Path, bad: float) -> None:
    wave = speechlike()
    wave[100] = bad
    assert _fault(write(tmp_path / "nan.wav", wave, subtype="FLOAT")) is Fault.NOT_FINITE


def test_the_shortest_clip(tmp_path: Path) -> None:
    tone = (0.3 * np.sin(np.arange(1600) / 5)).astype(np.float32)
    assert _fault(write(tmp_path / "short.wav", tone[:160])) is Fault.TOO_SHORT
    assert _fault(write(tmp_path / "nearly.wav", tone[:1599])) is Fault.TOO_SHORT
    assert isinstance(check_audio(write(tmp_path / "enough.wav", tone)), CheckedAudio)
    assert isinstance(check_audio(write(tmp_path / "slow.wav", tone, rate=20)), CheckedAudio)


@pytest.mark.parametrize(
    "wave",
    [
        np.zeros(32_000),
        np.full(32_000, 0.2),  # an offset and nothing else
        np.random.default_rng(1).standard_normal(32_000) * 10 ** (-50 / 20),
        np.random.default_rng(1).standard_normal(32_000) * 10 ** (-42 / 20),
        np.where(np.arange(32_000) == 9_000, 0.9, 0.0),  # one click
        speechlike(2.0) * 10 ** (-60 / 20),  # moves as speech does, and nobody could hear it
    ],
)
def test_a_clip_of_ordinary_size_without_speech(tmp_path: Path, wave: np.ndarray) -> None:
    path = write(tmp_path / "1076_MTI_SAD_XX.wav", wave.astype(np.float32), subtype="PCM_24")
    assert _fault(path) is Fault.SILENT
    assert isinstance(check_audio(path, silence=True), CheckedAudio)


def test_quiet_speech_passes(tmp_path: Path) -> None:
    """RAVDESS has clips whose loud parts lie at -49 dB."""
    wave = speechlike(2.0) * 10 ** (-34 / 20)
    assert isinstance(check_audio(write(tmp_path / "quiet.wav", wave, subtype="PCM_24")), CheckedAudio)


def test_what_a_check_measures(tmp_path: Path) -> None:
    square = np.tile(np.repeat(np.float32([1, -1]), 20), 400)  # 16,000 samples at full scale
    wave = np.concatenate([square, np.zeros(16_000, np.float32)])
    checked = check_audio(write(tmp_path / "half.wav", wave, subtype="FLOAT"))
    assert isinstance(checked, CheckedAudio)
    assert checked.duration_s == 2.0
    assert checked.clipped == 0.5
    assert checked.pauses == 0.5
    assert checked.level_db == pytest.approx(0.0, abs=1e-6)


def test_the_hash_is_of_the_waveform_and_its_rate(tmp_path: Path) -> None:
    wave = (np.round(speechlike() * 32_768) / 32_768).astype(np.float32)
    flac = check_audio(write(tmp_path / "a.flac", wave, subtype="PCM_16"))
    wav = check_audio(write(tmp_path / "b.wav", wave, subtype="PCM_16"))
    assert isinstance(flac, CheckedAudio) and isinstance(wav, CheckedAudio)
    assert flac.sha256 == wav.sha256  # one waveform in two containers
    assert flac.sha256 == waveform_hash(read_audio(tmp_path / "a.flac", 16_000))
    expected = hashlib.sha256(b"8000\n" + wave.astype("<f4").tobytes()).hexdigest()
    assert waveform_hash(Waveform(wave, 8_000)) == expected
    other = wave.copy()
    other[5] += 1e-6
    assert waveform_hash(Waveform(other, 8_000)) != expected


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user may open any file")
def test_a_file_that_may_not_be_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "locked.wav", speechlike())
    path.chmod(0)
    assert _fault(path) is Fault.UNREADABLE


def test_a_header_that_promises_more_than_memory_holds(tmp_path: Path) -> None:
    path = write(tmp_path / "a.flac", speechlike())
    data = bytearray(path.read_bytes())
    data[21:26] = bytes([data[21] | 0x0F, 255, 255, 255, 255])  # STREAMINFO: 2^36 - 1 samples
    path.write_bytes(data)
    assert _fault(path) in (Fault.UNREADABLE, Fault.TRUNCATED)  # the second where the system lends what it lacks


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    assert _fault(tmp_path / "a.wav") is Fault.UNREADABLE
    (tmp_path / "b.wav").mkdir()
    assert _fault(tmp_path / "b.wav") is Fault.UNREADABLE
