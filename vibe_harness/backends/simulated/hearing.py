"""What the simulated model hears: pitch and timbre, read off the waveform."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vibe_harness.records import Waveform

FRAME = 0.040  # seconds; two periods of the lowest pitch
HOP = 0.020
LOWEST, HIGHEST = 60.0, 400.0  # Hz, pitch of speaking voices
VOICED = 0.5  # least normalised autocorrelation of a voiced frame
EARLIEST = 0.9  # the first peak this near to the best is the period, not a multiple of it
REMEMBERED = 512  # waveforms whose hearing is kept


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard in one clip.

    pitch_hz: median fundamental of the voiced frames, centroid_hz: their mean spectral centroid; both None where
    nothing is voiced. pitch, timbre: the same as numbers from 0 (low, dark) to 1 (high, bright); 0.5 where unknown.
    """

    pitch_hz: float | None
    centroid_hz: float | None
    pitch: float
    timbre: float


_memory: dict[bytes, Heard] = {}


def hear_once(wave: Waveform) -> Heard:
    """As `hear`; the last REMEMBERED waveforms are not worked through again."""
    key = hashlib.blake2b(wave.samples.tobytes(), digest_size=16, salt=wave.rate.to_bytes(8, "big")).digest()
    if key not in _memory:
        if len(_memory) >= REMEMBERED:
            del _memory[next(iter(_memory))]
        _memory[key] = hear(wave)
    return _memory[key]


def hear(wave: Waveform) -> Heard:
    """Pitch and timbre of a clip.

    Pitch by normalised autocorrelation, divided by that of the window (Boersma 1993, "Accurate short-term analysis of
    the fundamental frequency", equation 9), over the louder half of the frames.
    """
    frames = _loud_frames(wave)
    if not len(frames):
        return Heard(None, None, 0.5, 0.5)
    window = np.hanning(frames.shape[1])
    size = 1 << (2 * frames.shape[1] - 1).bit_length()
    spectra = np.abs(np.fft.rfft(frames * window, size)) ** 2
    correlation = np.fft.irfft(spectra, size)[:, : frames.shape[1] // 2]
    own = np.fft.irfft(np.abs(np.fft.rfft(window, size)) ** 2, size)[: frames.shape[1] // 2]
    correlation = correlation / np.maximum(correlation[:, :1], 1e-12) / (own / own[0])
    periods, strength = _periods(correlation, wave.rate)
    voiced = strength >= VOICED
    if not voiced.any():
        return Heard(None, None, 0.5, 0.5)
    pitch_hz = float(np.median(wave.rate / periods[voiced]))
    frequencies = np.fft.rfftfreq(size, 1 / wave.rate)
    band = (frequencies >= 80) & (frequencies <= 5_000)
    energy = np.sqrt(spectra[voiced][:, band])
    centroid_hz = float(np.mean((energy @ frequencies[band]) / np.maximum(energy.sum(axis=1), 1e-12)))
    return Heard(
        pitch_hz,
        centroid_hz,
        pitch=_between(pitch_hz, middle=155.0, slope=8.0),
        timbre=_between(centroid_hz, middle=1_100.0, slope=4.0),
    )


def _between(frequency: float, middle: float, slope: float) -> float:
    """0 to 1: one half at `middle` Hz, growing with the logarithm; slope per octave in logits."""
    return 1 / (1 + math.exp(-slope * math.log2(frequency / middle)))


def _loud_frames(wave: Waveform) -> NDArray[np.float64]:
    """The louder half of the frames, without offset. Shape (frames, samples); empty for a clip under one frame."""
    length, hop = round(FRAME * wave.rate), round(HOP * wave.rate)
    if len(wave.samples) < length:
        return np.empty((0, length))
    frames = np.lib.stride_tricks.sliding_window_view(wave.samples.astype(np.float64), length)[::hop]
    frames = frames - frames.mean(axis=1, keepdims=True)
    power = (frames**2).mean(axis=1)
    loud: NDArray[np.float64] = frames[(power >= np.median(power)) & (power > 0)]
    return loud


def _periods(correlation: NDArray[np.float64], rate: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Period in samples and strength of each frame: the earliest peak that is nearly as high as the highest."""
    first, last = int(rate / HIGHEST), min(int(rate / LOWEST) + 1, correlation.shape[1] - 1)
    inner = correlation[:, first:last]
    peaks = (inner >= correlation[:, first - 1 : last - 1]) & (inner >= correlation[:, first + 1 : last + 1])
    heights = np.where(peaks, inner, -np.inf)
    best = heights.max(axis=1)
    near = heights >= np.where(np.isfinite(best), EARLIEST * best, np.inf)[:, None]
    place = near.argmax(axis=1)
    return (place + first).astype(np.float64), np.where(np.isfinite(best), best, 0.0)
