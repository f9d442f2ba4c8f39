"""Reading and checking audio: any format that libsndfile knows, mixed to mono, resampled once and in one place."""

from __future__ import annotations

import hashlib
import math
import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from vibe_harness.corpora.audio.container import HEAD, PROVEN, STREAMS, beyond_stream, extent
from vibe_harness.errors import UserError
from vibe_harness.records import CheckedAudio, Waveform

SHORTEST_S = 0.1
LOUDEST = 100.0  # of full scale: samples past it (40 dB over) are no audio at full scale 1 but, say, integers as floats
UNKNOWN_FRAMES = 1 << 62  # libsndfile's count where a header tells none, as in a FLAC that was made in a pipe
OPPOSITE = 0.1  # of the power that channels without any likeness keep in their mean: two at a correlation of -0.9
LFS_ADVICE = "install git-lfs and run `git lfs pull` in the folder of the corpus"

# When is a clip silent? By the level of 25 ms frames, full scale being 0 dB. In 239 real clips of four corpora the loud
# frames (95th percentile) lie between -49 and -8 dB, and at least 8.7 dB over the quiet ones (5th percentile); in those
# whose loud frames lie under -40 dB the distance is 44 dB and more. What CREMA-D records between words is noise at -43
# to -46 dB that moves by 4 to 6 dB. So level alone does not tell speech from noise, level and movement together do.
FRAME_S = 0.025
SILENT_BELOW_DB = -60.0  # loud frames under this: nothing to hear
STEADY_BELOW_DB = -40.0  # loud frames under this ...
STEADY_WITHIN_DB = 8.0  # ... and no further over the quiet ones: a noise floor
_FLOOR = 1e-12  # -120 dB

CLIPPED_AT = 0.999  # of full scale
PAUSE_DB = 30.0  # frames this far under the loud ones count as pause

# Up to where does a clip have sound? In 239 recordings of five kinds, of 16 kHz and more, the highest frequency within
# 60 dB of the loudest lies at 6.1 kHz and above (90 in 100: 7.7 kHz and above). The same, taken through 8 kHz, end at
# 3.80 to 3.92 kHz, whatever rate they are written at afterwards.
BAND_DB = 60.0
BAND_FRAMES = 24  # of the louder half, spread evenly over it by their power


class Fault(StrEnum):
    """Why a clip cannot be used."""

    MISSING = "missing"
    LFS_POINTER = "git-lfs pointer"
    UNREADABLE = "unreadable"
    TRUNCATED = "truncated"
    UNDERSTATED = "header tells less"
    EMPTY = "empty"
    NOT_FINITE = "not finite"
    OUT_OF_SCALE = "out of scale"
    TOO_SHORT = "too short"
    SILENT = "silent"
    OPPOSITE = "opposite channels"
    TWO_SPEAKERS = "under two speakers"
    REPEATED = "twice"  # under one speaker
    TOO_LONG = "too long"  # for the model that is asked
    FEW_SPEAKERS = "too few speakers"  # in its group, for the corpus card
    OPTIONS = "options"  # a row of a choice task whose options cannot be asked


@dataclass(frozen=True, slots=True)
class BadAudio:
    """A clip that cannot be used."""

    fault: Fault
    reason: str  # in words, for a person; without the file's name


def read_audio(path: Path, rate: int) -> Waveform:
    """The clip as a model hears it: float32, mono (the mean of the channels), at `rate` Hz.

    Resampled once, by soxr at high quality, and only where the file has another rate.
    Raises UserError, with the path and the reason, for a clip that cannot be decoded whole, holds no samples, or NaN.
    """
    decoded = _decode(path)
    if isinstance(decoded, BadAudio):
        raise UserError(f"{path}: {decoded.reason}")
    wave = decoded.wave
    if wave.rate == rate:
        return wave
    return Waveform(soxr.resample(wave.samples, wave.rate, rate, quality="HQ").astype(np.float32, copy=False), rate)


def check_audio(path: Path, silence: bool = False) -> CheckedAudio | BadAudio:
    """Decode one clip and say what it is, or why it cannot be used. A bad clip never raises.

    silence: silent clips are wanted (a control condition) and pass.
    """
    decoded = _decode(path)
    if isinstance(decoded, BadAudio):
        return decoded
    wave = decoded.wave
    seconds = len(wave.samples) / wave.rate
    if seconds < SHORTEST_S:
        return BadAudio(Fault.TOO_SHORT, f"{seconds:.3f} s long; the shortest that can be used is {SHORTEST_S} s")
    by_frame = _frame_power(decoded)
    order = np.argsort(by_frame)
    power = by_frame[order]
    quiet, loud = (_decibels(power[round(share * (len(power) - 1))]) for share in (0.05, 0.95))
    if loud < SILENT_BELOW_DB and not silence:
        return BadAudio(Fault.SILENT, f"silent: its loud parts lie at {loud:.0f} dB of full scale")
    if loud < STEADY_BELOW_DB and loud - quiet < STEADY_WITHIN_DB and not silence:
        return BadAudio(Fault.SILENT, f"no speech: a steady noise at {loud:.0f} dB of full scale")
    pauses = int(np.searchsorted(power, 10 ** ((loud - PAUSE_DB) / 10)))
    return CheckedAudio(
        duration_s=seconds,
        rate=wave.rate,
        channels=decoded.channels,
        format=decoded.format,
        subtype=decoded.subtype,
        sha256=waveform_hash(wave),
        level_db=_decibels(power[pauses:].sum() / (len(power) - pauses)),
        clipped=_clipped(wave.samples),
        pauses=pauses / len(power),
        noise_db=quiet,
        bandwidth_hz=_bandwidth(wave, order[len(order) // 2 :]),
    )


def decode(path: Path) -> Waveform | BadAudio:
    """The clip at its own rate, mono, or why it cannot be decoded."""
    decoded = _decode(path)
    return decoded if isinstance(decoded, BadAudio) else decoded.wave


def waveform_hash(wave: Waveform) -> str:
    """SHA-256, in hexadecimal, of the rate and the samples (little-endian float32)."""
    whole = hashlib.sha256(f"{wave.rate}\n".encode())
    whole.update(np.ascontiguousarray(wave.samples, dtype="<f4").data)
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class _Decoded:
    wave: Waveform
    offset: float  # mean of the samples
    channels: int
    format: str
    subtype: str


def _decode(path: Path) -> _Decoded | BadAudio:
    try:  # without waiting: a named pipe would be waited for, for ever
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return BadAudio(Fault.MISSING, "no such file")
    except OSError as error:
        return BadAudio(Fault.UNREADABLE, f"cannot be opened: {error.strerror}")
    try:
        return _decode_open(file)
    except MemoryError:  # a header that promises what no memory holds, be it true or not
        return BadAudio(Fault.UNREADABLE, "cannot be decoded as audio: it promises more than the memory holds")
    except OSError as error:
        return BadAudio(Fault.UNREADABLE, f"cannot be read: {error.strerror}")
    finally:
        os.close(file)


def _decode_open(file: int) -> _Decoded | BadAudio:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        return BadAudio(Fault.UNREADABLE, "not a file but a folder, a pipe or a device")
    head, size = os.read(file, HEAD), status.st_size
    if not head:
        return BadAudio(Fault.EMPTY, "the file is empty (0 bytes)")
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return BadAudio(Fault.LFS_POINTER, f"a git-lfs pointer, not audio: {LFS_ADVICE}")
    told = extent(file, head, size)
    os.lseek(file, 0, os.SEEK_SET)
    try:  # by descriptor, so that the content alone decides what it is, and not the name
        with soundfile.SoundFile(file, closefd=False) as audio:
            promised, rate, channels = audio.frames, audio.samplerate, audio.channels
            kind, subtype = audio.format, audio.subtype
            if promised >= UNKNOWN_FRAMES:
                return BadAudio(Fault.UNREADABLE, "its header does not tell its length: convert it to WAV")
            samples = _samples(audio, subtype)
            beyond = beyond_stream(file, size) if kind in STREAMS else told.beyond
    except soundfile.SoundFileError as error:
        words = str(error).split(": ", 1)[-1].rstrip(".")
        return BadAudio(Fault.UNREADABLE, f"cannot be decoded as audio: {words}")
    if kind not in PROVEN:
        return BadAudio(Fault.UNREADABLE, f"a file of the format {kind}, in which a cut is not seen: convert it to WAV")
    # An MP3 header may promise up to a percent more than it holds; libsndfile stops short where the data end.
    if told.lacking or len(samples) < 0.97 * promised:
        how = f"{told.lacking:,} bytes" if told.lacking else f"{(promised - len(samples)) / rate:.2f} s"
        return BadAudio(Fault.TRUNCATED, f"cut off: {how} fewer than its header promises; fetch it again")
    if beyond:
        return BadAudio(
            Fault.UNDERSTATED,
            f"its header tells of {len(samples) / rate:.2f} s, and {beyond:,} bytes of the file lie beyond: convert it "
            "anew from the original",
        )
    if fault := _sample_fault(samples, subtype):
        return fault
    mono = samples
    if channels > 1:
        mono = samples.mean(axis=1, dtype=np.float32)
        if _cancels(samples, mono):
            return BadAudio(
                Fault.OPPOSITE,
                f"its {channels} channels are opposite and cancel in their mean (one is inverted): keep one of them",
            )
    return _Decoded(Waveform(mono, rate), float(samples.sum()) / samples.size, channels, kind, subtype)


def _sample_fault(samples: NDArray[np.float32], subtype: str) -> BadAudio | None:
    """What is wrong with decoded samples by themselves, or None."""
    if not len(samples):
        return BadAudio(Fault.EMPTY, "holds no samples")
    if subtype in ("FLOAT", "DOUBLE") and LOUDEST < (peak := float(max(samples.max(), -samples.min()))) < math.inf:
        return BadAudio(
            Fault.OUT_OF_SCALE,
            f"its samples reach {peak:.3g} where full scale is 1: write them as numbers from -1 to 1",
        )
    if not math.isfinite(samples.sum()):  # quick, and finite only where all samples are
        bad = samples.size - np.count_nonzero(np.isfinite(samples))
        if bad:
            return BadAudio(Fault.NOT_FINITE, f"holds {bad:,} samples that are NaN or infinite")
    return None


def _samples(audio: Any, subtype: str) -> NDArray[np.float32]:
    """All samples, float32, shape (n,) or (n, channels), full scale 1.

    16-bit samples come to the same as from libsndfile's own conversion, in a third of its time.
    """
    samples: NDArray[np.float32]
    if subtype == "PCM_16":
        samples = np.multiply(audio.read(dtype="int16"), np.float32(2**-15), dtype=np.float32)
    else:
        samples = audio.read(dtype="float32")
    return samples


def _cancels(samples: NDArray[np.float32], mono: NDArray[np.float32]) -> bool:
    """Whether the channels take each other away: of N channels without any likeness 1/N of the power remains."""
    power = float(samples.var(axis=0, dtype=np.float64).mean())
    return (
        power > 10 ** (SILENT_BELOW_DB / 10) and float(mono.var(dtype=np.float64)) * samples.shape[1] < OPPOSITE * power
    )


def _frame_power(decoded: _Decoded) -> NDArray[np.float32]:
    """Mean square of each whole 25 ms frame, the clip's offset taken off."""
    wave, offset = decoded.wave, decoded.offset
    length = max(1, int(FRAME_S * wave.rate))
    count = len(wave.samples) // length
    frames = wave.samples[: count * length].reshape(count, length)
    if abs(offset) > 1e-4:  # -80 dB: less tells nothing
        frames = frames - np.float32(offset)
    power: NDArray[np.float32] = np.einsum("ij,ij->i", frames, frames)
    power /= length
    return np.maximum(power, np.float32(_FLOOR), out=power)


def _bandwidth(wave: Waveform, loud: NDArray[np.intp]) -> float:
    """The highest frequency, in Hz, that comes within BAND_DB of the loudest in some of the loud frames."""
    length = max(1, int(FRAME_S * wave.rate))
    chosen = loud[:: -(-len(loud) // BAND_FRAMES)]
    frames = wave.samples[: (len(wave.samples) // length) * length].reshape(-1, length)[chosen]
    window = np.hanning(length + 2)[1:-1].astype(np.float32)  # without its zeros: a frame may be of one sample
    spectrum = np.abs(np.fft.rfft(frames * window, axis=1)).max(axis=0)
    above = np.flatnonzero(spectrum >= spectrum.max() * 10 ** (-BAND_DB / 20))
    return float(above[-1]) * wave.rate / length


def _decibels(power: float | np.floating[Any]) -> float:
    return 10 * math.log10(power)


def _clipped(samples: NDArray[np.float32]) -> float:
    if samples.max() < CLIPPED_AT and samples.min() > -CLIPPED_AT:
        return 0.0
    return float(np.count_nonzero(np.abs(samples) >= CLIPPED_AT)) / len(samples)
