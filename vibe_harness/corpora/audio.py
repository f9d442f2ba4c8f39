"""Reading and checking audio: any format that libsndfile knows, mixed to mono, resampled once and in one place."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from vibe_harness.corpora.containers import missing_bytes
from vibe_harness.errors import UserError
from vibe_harness.records import Waveform

SHORTEST_S = 0.1
LFS_ADVICE = "install git-lfs and run `git lfs pull` in the folder of the corpus"

# When is a clip silent? By the level of 25 ms frames, full scale being 0 dB. In 239 real clips of four corpora the loud
# frames (95th percentile) lie between -49 and -8 dB, and at least 8.7 dB over the quiet ones (5th percentile); in those
# whose loud frames lie under -40 dB the distance is 44 dB and more. What CREMA-D records between words is noise at -43
# to -46 dB that moves by 4 to 6 dB. So level alone does not tell speech from noise, level and movement together do.
FRAME_S = 0.025
SILENT_BELOW_DB = -60.0  # loud frames under this: nothing to hear
STEADY_BELOW_DB = -40.0  # loud frames under this ...
STEADY_WITHIN_DB = 8.0  # ... and no further over the quiet ones: a noise floor
_FLOOR_DB = -120.0

CLIPPED_AT = 0.999  # of full scale
PAUSE_DB = 30.0  # frames this far under the loud ones count as pause


class Fault(StrEnum):
    """Why a clip cannot be used."""

    MISSING = "missing"
    LFS_POINTER = "git-lfs pointer"
    UNREADABLE = "unreadable"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    NOT_FINITE = "not finite"
    TOO_SHORT = "too short"
    SILENT = "silent"
    TOO_LONG = "too long"  # for the model that is asked


@dataclass(frozen=True, slots=True)
class BadAudio:
    """A clip that cannot be used."""

    fault: Fault
    reason: str  # in words, for a person; without the file's name


@dataclass(frozen=True, slots=True)
class CheckedAudio:
    """A clip that can be used, and what its channel is like."""

    duration_s: float
    rate: int  # Hz, of the file
    channels: int
    format: str  # libsndfile's word for the content, whatever the file is called: "WAV", "MP3", "FLAC", "OGG"
    subtype: str  # "PCM_16", "MPEG_LAYER_III", "OPUS"
    sha256: str  # of the decoded waveform, see waveform_hash
    level_db: float  # dBFS, root mean square of the frames that are no pause
    clipped: float  # share of samples at full scale
    pauses: float  # share of frames that are pause


def read_audio(path: Path, rate: int) -> Waveform:
    """The clip as a model hears it: float32, mono (the mean of the channels), at `rate` Hz.

    Resampled once, by soxr at high quality, and only where the file has another rate.
    Raises UserError, with the path and the reason, for a clip that check_audio would not pass.
    """
    decoded = _decode(path)
    if isinstance(decoded, BadAudio):
        raise UserError(f"{path}: {decoded.reason}")
    fault = _fault_of(decoded)
    if fault is not None:
        raise UserError(f"{path}: {fault.reason}")
    wave = decoded.wave
    if wave.rate == rate:
        return wave
    return Waveform(soxr.resample(wave.samples, wave.rate, rate, quality="HQ").astype(np.float32, copy=False), rate)


def check_audio(path: Path) -> CheckedAudio | BadAudio:
    """Decode one clip and say what it is, or why it cannot be used. A bad clip never raises."""
    decoded = _decode(path)
    if isinstance(decoded, BadAudio):
        return decoded
    fault = _fault_of(decoded)
    if fault is not None:
        return fault
    wave, levels = decoded.wave, _frame_levels(decoded.wave)
    loud = float(np.percentile(levels, 95))
    spoken = levels[levels > loud - PAUSE_DB]
    return CheckedAudio(
        duration_s=len(wave.samples) / wave.rate,
        rate=wave.rate,
        channels=decoded.channels,
        format=decoded.format,
        subtype=decoded.subtype,
        sha256=waveform_hash(wave),
        level_db=float(10 * np.log10(np.mean(10 ** (spoken / 10)))),
        clipped=float(np.count_nonzero(np.abs(wave.samples) >= CLIPPED_AT)) / len(wave.samples),
        pauses=1 - len(spoken) / len(levels),
    )


def waveform_hash(wave: Waveform) -> str:
    """SHA-256, in hexadecimal, of the rate and the samples (little-endian float32)."""
    whole = hashlib.sha256(f"{wave.rate}\n".encode())
    whole.update(np.ascontiguousarray(wave.samples, dtype="<f4").data)
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class _Decoded:
    wave: Waveform
    channels: int
    format: str
    subtype: str


def _decode(path: Path) -> _Decoded | BadAudio:
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except (FileNotFoundError, NotADirectoryError):
        return BadAudio(Fault.MISSING, "no such file")
    except OSError as error:
        return BadAudio(Fault.UNREADABLE, f"cannot be opened: {error.strerror}")
    if not start:
        return BadAudio(Fault.EMPTY, "the file is empty (0 bytes)")
    if start.startswith(b"version https://git-lfs.github.com/spec/"):
        return BadAudio(Fault.LFS_POINTER, f"a git-lfs pointer, not audio: {LFS_ADVICE}")
    if path.suffix.lower() == ".raw":
        return BadAudio(Fault.UNREADABLE, "raw samples carry no sample rate: convert it to WAV or FLAC")
    try:
        with soundfile.SoundFile(path) as audio:
            samples = audio.read(dtype="float32", always_2d=True)
            promised, rate, channels = audio.frames, audio.samplerate, audio.channels
            kind, subtype = audio.format, audio.subtype
    except soundfile.SoundFileError as error:
        words = str(error).split(": ", 1)[-1].rstrip(".")
        return BadAudio(Fault.UNREADABLE, f"cannot be decoded as audio: {words}")
    lacking = missing_bytes(path)
    # An MP3 header may promise up to a percent more than it holds; libsndfile stops short where the data end.
    if lacking or len(samples) < 0.97 * promised:
        how = f"{lacking:,} bytes" if lacking else f"{(promised - len(samples)) / rate:.2f} s"
        return BadAudio(Fault.TRUNCATED, f"cut off: {how} fewer than its header promises; fetch it again")
    mono: NDArray[np.float32] = samples[:, 0] if channels == 1 else samples.mean(axis=1, dtype=np.float32)
    return _Decoded(Waveform(np.ascontiguousarray(mono), rate), channels, kind, subtype)


def _fault_of(decoded: _Decoded) -> BadAudio | None:
    wave = decoded.wave
    if len(wave.samples) == 0:
        return BadAudio(Fault.EMPTY, "holds no samples")
    bad = len(wave.samples) - np.count_nonzero(np.isfinite(wave.samples))
    if bad:
        return BadAudio(Fault.NOT_FINITE, f"holds {bad:,} samples that are NaN or infinite")
    seconds = len(wave.samples) / wave.rate
    if seconds < SHORTEST_S:
        return BadAudio(Fault.TOO_SHORT, f"{seconds:.3f} s long; the shortest that can be used is {SHORTEST_S} s")
    quiet, loud = (float(level) for level in np.percentile(_frame_levels(wave), [5, 95]))
    if loud < SILENT_BELOW_DB:
        return BadAudio(Fault.SILENT, f"silent: its loud parts lie at {loud:.0f} dB of full scale")
    if loud < STEADY_BELOW_DB and loud - quiet < STEADY_WITHIN_DB:
        return BadAudio(Fault.SILENT, f"no speech: a steady noise at {loud:.0f} dB of full scale")
    return None


def _frame_levels(wave: Waveform) -> NDArray[np.float64]:
    """Level of each whole 25 ms frame, in dB of full scale (root mean square, the clip's offset taken off)."""
    length = max(1, int(FRAME_S * wave.rate))
    count = len(wave.samples) // length
    frames = wave.samples[: count * length].reshape(count, length)
    power = np.einsum("ij,ij->i", frames, frames, dtype=np.float64) / length
    offset = float(wave.samples.mean(dtype=np.float64))
    power = power - 2 * offset * frames.mean(axis=1, dtype=np.float64) + offset**2
    levels: NDArray[np.float64] = 10 * np.log10(np.maximum(power, 10 ** (_FLOOR_DB / 10)))
    return levels
