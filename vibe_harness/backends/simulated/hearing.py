"""Voice features of the simulated model: pitch and timbre, measured in the waveform."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vibe_harness.records import Waveform

Floats = NDArray[np.float64]

FRAME = 0.040  # seconds; more than two periods of the lowest pitch
HOP = 0.020
FRAMES = 4_000  # most frames; clips of more than 80 s get a longer hop
LOWEST, HIGHEST = 60.0, 400.0  # Hz, pitch of speaking voices
VOICED = 0.5  # least normalised autocorrelation of a voiced frame
EARLIEST = 0.9  # the first peak with this share of the highest is the period, not a multiple of it
REMEMBERED = 4_096  # cached waveforms


@dataclass(frozen=True, slots=True)
class VoiceFeatures:
    """Features of the voice in one clip.

    pitch_hz: median fundamental of the voiced frames; centroid_hz: their mean spectral centroid; both None if no frame
    is voiced. pitch, timbre: the same from 0 (low, dark) to 1 (high, bright); 0.5 if unknown.
    """

    pitch_hz: float | None
    centroid_hz: float | None
    pitch: float
    timbre: float


_memory: dict[bytes, VoiceFeatures] = {}


def hear_once(wave: Waveform) -> VoiceFeatures:
    """As `hear`, with a cache of the last REMEMBERED waveforms, by a digest of their samples."""
    key = hashlib.sha256(wave.samples.tobytes()).digest() + wave.rate.to_bytes(8, "big")
    heard = _memory.pop(key, None) or hear(wave)
    _memory[key] = heard  # at the end, so that it is dropped last
    if len(_memory) > REMEMBERED:
        del _memory[next(iter(_memory))]
    return heard


def hear(wave: Waveform) -> VoiceFeatures:
    """Pitch and timbre of a clip.

    Pitch by normalised autocorrelation, divided by that of the window (Boersma 1993, "Accurate short-term analysis of
    the fundamental frequency", equation 9), over the louder half of the frames.
    """
    frames = _loud_frames(wave)
    if not len(frames):
        return VoiceFeatures(None, None, 0.5, 0.5)
    window = np.hanning(frames.shape[1])
    size = 1 << (2 * frames.shape[1] - 1).bit_length()
    spectra = np.abs(np.fft.rfft(frames * window, size)) ** 2
    correlation = np.fft.irfft(spectra, size)[:, : frames.shape[1] // 2]
    own = np.fft.irfft(np.abs(np.fft.rfft(window, size)) ** 2, size)[: frames.shape[1] // 2]
    correlation = correlation / np.maximum(correlation[:, :1], 1e-12) / (own / own[0])
    periods, strength = _periods(correlation, wave.rate)
    voiced = strength >= VOICED
    if not voiced.any():
        return VoiceFeatures(None, None, 0.5, 0.5)
    pitch_hz = float(np.median(wave.rate / periods[voiced]))
    frequencies = np.fft.rfftfreq(size, 1 / wave.rate)
    band = (frequencies >= 80) & (frequencies <= 5_000)
    energy = np.sqrt(spectra[voiced][:, band])
    centroid_hz = float(np.mean((energy @ frequencies[band]) / np.maximum(energy.sum(axis=1), 1e-12)))
    return VoiceFeatures(
        pitch_hz,
        centroid_hz,
        pitch=_between(pitch_hz, middle=155.0, slope=10.0),
        timbre=_between(centroid_hz, middle=1_000.0, slope=5.0),
    )


def _between(frequency: float, middle: float, slope: float) -> float:
    """Logistic function of log frequency: one half at `middle` Hz. slope: per octave, in logits."""
    return 1 / (1 + math.exp(-slope * math.log2(frequency / middle)))


def _loud_frames(wave: Waveform) -> Floats:
    """The louder half of the frames, without offset. Shape (frames, samples); empty for a clip under one frame."""
    length = round(FRAME * wave.rate)
    hop = max(round(HOP * wave.rate), -(-len(wave.samples) // FRAMES))
    if len(wave.samples) < length:
        return np.empty((0, length))
    frames = np.lib.stride_tricks.sliding_window_view(wave.samples.astype(np.float64), length)[::hop]
    frames = frames - frames.mean(axis=1, keepdims=True)
    power = (frames**2).mean(axis=1)
    loud: Floats = frames[(power >= np.median(power)) & (power > 0)]
    return loud


def _periods(correlation: Floats, rate: int) -> tuple[Floats, Floats]:
    """Period (in samples) and strength of each frame, at the earliest peak that is nearly as high as the highest.

    The period is interpolated: it is the vertex of the parabola through the peak and its neighbours.
    """
    first, last = int(rate / HIGHEST), min(int(rate / LOWEST) + 1, correlation.shape[1] - 1)
    inner = correlation[:, first:last]
    peaks = (inner >= correlation[:, first - 1 : last - 1]) & (inner >= correlation[:, first + 1 : last + 1])
    heights = np.where(peaks, inner, -np.inf)
    best = heights.max(axis=1)
    near = heights >= np.where(np.isfinite(best), EARLIEST * best, np.inf)[:, None]
    place = near.argmax(axis=1) + first
    rows = np.arange(len(place))
    before, top, after = correlation[rows, place - 1], correlation[rows, place], correlation[rows, place + 1]
    bend = np.maximum(2 * top - before - after, 1e-12)
    offset = np.clip((after - before) / (2 * bend), -0.5, 0.5)
    return place + offset, np.where(np.isfinite(best), best, 0.0)
