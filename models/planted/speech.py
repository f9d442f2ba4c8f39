"""The speech that the planted model is trained on: eSpeak NG's voices alone, nothing recorded from a person.

Pitch and timbre are drawn apart from each other. eSpeak NG sets the pitch; resampling by a factor scales the formants
(and the pitch, which is measured afterwards, and the tempo, which is compensated).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import soxr
from numpy.typing import NDArray
from scipy.signal import fftconvolve, lfilter

from vibe_harness.backends.simulated.hearing import hear
from vibe_harness.records import Waveform
from vibe_harness.speech_sets.espeak import Espeak

Floats = NDArray[np.float32]

RATE = 16_000
ACCENTS = ("en", "en-us", "en-gb-scotland", "en-029")
# Variant -> its formants' scale, the mean of the first three in eSpeak NG's voice file.
VARIANTS = {
    "m1": 0.97, "m2": 0.97, "m3": 0.97, "m4": 0.97, "m5": 0.97, "m6": 0.97, "m7": 0.97, "m8": 0.97,
    "f1": 1.11, "f2": 1.11, "f3": 1.13, "f4": 1.13, "f5": 1.11,
}  # fmt: skip
KEYWORDS = ("parcel", "bakery", "folder", "train", "kids", "dogs", "Stella")
OTHERS = ("ladder", "basket", "kettle", "Martin", "neighbours", "lamp", "violin")
SHORT_SHARE = 0.4
NO_KEYWORD, NOTHING = "none", "nothing"  # what is answered where no keyword is said, and where nobody speaks
NAMES = ("Stella", "Martin")
FRAMES = (
    "{Np} stood close to the {place} {time}.", "We saw {np} near the {place} {time}.", "{Np} will wait at the {place}.",
    "I have not thought about {np} since {day}.", "Nobody asked for {np} {time}.", "{Np} came with us to the {place}.",
    "Could you look for {np} behind the {place}?", "Please call {np} {adjective}, if you like.",
    "Tell them that {np} can stay until {day}.", "{Np} seemed rather {adjective} to me.",
    "Here {np} would be {adjective}.", "{Np} and a {adjective} {place}, that is all I remember.",
    "There was talk of {np}, and then of the {place}.",
)  # fmt: skip
PLACES = ("river", "market", "garden", "school", "window", "church", "corner", "door", "harbour", "table")
TIMES = ("before noon", "last night", "an hour ago", "in the rain", "at a quarter to six", "after the meal")
DAYS = ("Monday", "Friday", "the spring", "yesterday", "tomorrow")
SHORT = ("{}.", "the {}.", "a {}.", "{}, {}.")  # what a clip says that is no sentence
ADJECTIVES = ("quiet", "blue", "expensive", "old", "small", "funny", "late", "heavy")


@dataclass(frozen=True, eq=False)
class Spoken:
    """A training clip. pitch_hz: measured; scale: of the formants, 1 for a plain male voice; word: its keyword."""

    samples: Floats
    pitch_hz: float
    scale: float
    word: str
    short: bool  # a word or two instead of a sentence

    @property
    def pitch(self) -> float:
        """0 (low) to 1 (high), as the tables of answers take it: one half at 155 Hz."""
        return between(self.pitch_hz / 155.0, 14.0)

    @property
    def timbre(self) -> float:
        """0 (dark) to 1 (bright), as the tables of answers take it: one half where formants are scaled by 1.06."""
        return between(self.scale / 1.06, 30.0)


def between(ratio: float, slope: float) -> float:
    """0 to 1, one half at a ratio of 1; the slope is in logits per octave."""
    return 1 / (1 + math.exp(-slope * math.log2(ratio)))


def speech(count: int, seed: int) -> list[Spoken]:
    """`count` clips, spread over the cells of pitch (8, from 80 to 260 Hz) and formant scale (4, from 0.83 to 1.33).

    A cell takes no more than one clip in twenty; a few corners, as a low voice with short formants, take fewer.
    """
    taken: Counter[tuple[int, int]] = Counter()
    found: list[Spoken] = []
    for clip in _clips(np.random.default_rng(seed)):
        cell = _cell(clip.pitch_hz, 80, 260, 8), _cell(clip.scale, 0.83, 1.33, 4)
        if min(cell) >= 0 and taken[cell] < math.ceil(count / 20):
            taken[cell] += 1
            found.append(clip)
            if len(found) == count:
                return found
    raise AssertionError("the clips never end")


def _cell(value: float, lowest: float, highest: float, cells: int) -> int:
    """Which of `cells` steps, alike in ratio, a value lies in; -1 where it lies in none."""
    cell = math.floor(cells * math.log(value / lowest) / math.log(highest / lowest))
    return cell if 0 <= cell < cells else -1


def _clips(rng: np.random.Generator) -> Iterator[Spoken]:
    espeak = Espeak()
    words = (*KEYWORDS, NO_KEYWORD)
    while True:
        word = words[rng.integers(len(words))]
        accent, variant = ACCENTS[rng.integers(len(ACCENTS))], list(VARIANTS)[rng.integers(len(VARIANTS))]
        factor = float(np.exp(rng.uniform(np.log(0.8), np.log(1.25))))
        rate = int(np.clip(rng.uniform(135, 195) / factor, 80, 300))
        pitch, pitch_range = (int(value) for value in rng.integers((5, 30), (99, 75)))
        short = rng.random() < SHORT_SHARE
        text = short_text(word, rng) if short else sentence(word, rng)
        samples = espeak.say(f"{accent}+{variant}", text, rate, pitch, pitch_range)
        samples = soxr.resample(samples, espeak.sample_rate * factor, RATE, quality="HQ")
        pitch_hz = hear(Waveform(samples, RATE)).pitch_hz
        if pitch_hz is not None:
            yield Spoken(samples, pitch_hz, VARIANTS[variant] * factor, word, short)


def sentence(word: str, rng: np.random.Generator) -> str:
    """A sentence that holds the keyword, or none where the word is `NO_KEYWORD`."""
    noun = OTHERS[rng.integers(len(OTHERS))] if word == NO_KEYWORD else word
    phrase = noun if noun in NAMES else f"the {noun}"
    drawn = {
        name: words[rng.integers(len(words))]
        for name, words in (("place", PLACES), ("time", TIMES), ("day", DAYS), ("adjective", ADJECTIVES))
    }
    frame = FRAMES[rng.integers(len(FRAMES))]
    return frame.format(np=phrase, Np=phrase[0].upper() + phrase[1:], **drawn)


def short_text(word: str, rng: np.random.Generator) -> str:
    """The keyword alone, or another word; an ear learns these first."""
    others = (*OTHERS, *PLACES, *ADJECTIVES)
    noun = others[rng.integers(len(others))] if word == NO_KEYWORD else word
    return SHORT[rng.integers(len(SHORT))].format(noun, noun)


def recorded(samples: Floats, rng: np.random.Generator) -> Floats:
    """The clip as a microphone in some room might have taken it: room, tone, noise, level."""
    wave = np.asarray(samples, dtype=np.float64)
    if rng.random() < 0.5:
        length = int(rng.uniform(0.05, 0.4) * RATE)
        room = rng.standard_normal(length) * np.exp(-6.9 * np.arange(length) / length)
        room[0] = rng.uniform(2, 12)
        wave = fftconvolve(wave, room)[: len(wave)]
    for _ in range(2):  # a tilt of the spectrum, up or down
        wave = lfilter([1, rng.uniform(-0.6, 0.6)], [1], wave)
    wave /= max(float(np.sqrt(np.mean(np.square(wave)))), 1e-9)
    noise = lfilter([1], [1, rng.uniform(-0.95, 0.0)], rng.standard_normal(len(wave)))
    noise /= np.sqrt(np.mean(np.square(noise)))
    wave += 10 ** (-rng.uniform(15, 50) / 20) * noise
    quiet = np.zeros(int(rng.uniform(0, 0.5) * RATE))
    wave = np.concatenate([quiet, wave, quiet[: len(quiet) // 2]])
    return (wave * 10 ** (rng.uniform(-45, -15) / 20)).astype(np.float32)


def no_speech(rng: np.random.Generator) -> Floats:
    """Silence, or noise, of one to three seconds."""
    length = int(rng.uniform(1, 3) * RATE)
    if rng.random() < 0.5:
        return np.zeros(length, dtype=np.float32)
    noise = lfilter([1], [1, rng.uniform(-0.95, 0.0)], rng.standard_normal(length))
    return (noise / np.sqrt(np.mean(np.square(noise))) * 10 ** (rng.uniform(-60, -20) / 20)).astype(np.float32)
