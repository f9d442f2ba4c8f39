"""Pitch and timbre are what they are known to be, in synthesised vowels, demo voices and real recordings."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from tests.support import SHARED, needs_recordings
from vibe_harness.backends.simulated import hearing
from vibe_harness.backends.simulated.hearing import VoiceFeatures, hear, hear_once
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.records import Waveform

VOWELS = {"a": (730, 1090, 2440), "i": (270, 2290, 3010), "u": (300, 870, 2240)}  # Hz; Peterson and Barney (1952)


def vowel(pitch: float, formants: Iterable[float], rate: int = 16_000, seconds: float = 1.5, vibrato: float = 0.0):
    """Harmonics of `pitch` Hz, their heights those of three resonances, with pauses and a little noise around them."""
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(pitch * (1 + vibrato * np.sin(2 * np.pi * 5 * time))) / rate
    wave = np.zeros_like(time)
    for harmonic in range(1, int(0.45 * rate / pitch)):
        frequency = pitch * harmonic
        height = np.prod([f**2 / abs(f**2 - frequency**2 + 90j * frequency) for f in formants]) / harmonic
        wave += height * np.cos(harmonic * phase)
    wave = np.concatenate([np.zeros(rate // 3), 0.1 * wave / np.abs(wave).max(), np.zeros(rate // 3)])
    wave += 0.001 * np.random.default_rng(0).normal(size=len(wave))
    return Waveform(wave.astype(np.float32), rate)


def archive_file(row: dict[str, str]) -> str:
    return f"recordings/recordings/{row['filename']}.mp3"


def area_under_curve(high: list[float], low: list[float]) -> float:
    return float(np.mean([(h > lo) + 0.5 * (h == lo) for h, lo in itertools.product(high, low)]))


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("name", sorted(VOWELS))
@pytest.mark.parametrize("pitch", [75, 90, 110, 130, 155, 190, 220, 260, 320])
def test_the_pitch_of_a_vowel_is_heard_within_half_a_hertz(pitch, name, rate):
    assert hear(vowel(pitch, VOWELS[name], rate)).pitch_hz == pytest.approx(pitch, abs=0.5)


def test_a_trembling_voice_is_heard_within_its_range():
    assert hear(vowel(180, VOWELS["a"], vibrato=0.03)).pitch_hz == pytest.approx(180, rel=0.03)


def test_low_voices_are_near_0_and_high_ones_near_1():
    scores = {pitch: hear(vowel(pitch, VOWELS["a"])).pitch for pitch in (95, 110, 130, 155, 190, 210, 230)}
    assert all(scores[pitch] < 0.1 for pitch in (95, 110, 130))
    assert all(scores[pitch] > 0.9 for pitch in (190, 210, 230))
    assert scores[155] == pytest.approx(0.5, abs=0.1)
    assert sorted(scores.values()) == list(scores.values())


def test_loudness_and_offset_make_no_difference():
    wave = vowel(140, VOWELS["a"])
    heard, quiet = hear(wave), hear(Waveform(wave.samples * np.float32(0.01) + np.float32(0.2), wave.rate))
    assert quiet.pitch_hz == pytest.approx(heard.pitch_hz, abs=0.5)
    assert quiet.timbre == pytest.approx(heard.timbre, abs=0.02)


@pytest.mark.parametrize(
    "samples",
    [np.zeros(16_000), np.full(16_000, 0.3), np.zeros(0), np.full(16_000, np.nan), np.zeros(100)],
    ids=["silence", "offset", "empty", "nan", "short"],
)
def test_nothing_voiced_is_in_the_middle(samples):
    assert hear(Waveform(samples.astype(np.float32), 16_000)) == VoiceFeatures(None, None, 0.5, 0.5)


def test_a_long_clip_is_heard_by_as_many_frames_as_a_short_one():
    short = vowel(200, VOWELS["a"], seconds=2)
    long = Waveform(np.tile(short.samples, 300), short.rate)  # ten minutes and more
    assert len(hearing._loud_frames(long)) <= hearing.FRAMES
    assert hear(long).pitch_hz == pytest.approx(200, abs=2)


def test_what_was_heard_is_remembered_by_its_samples_and_rate(monkeypatch):
    calls = []
    monkeypatch.setattr(hearing, "hear", lambda wave: calls.append(wave) or hear(wave))
    monkeypatch.setattr(hearing, "REMEMBERED", 2)
    monkeypatch.setattr(hearing, "_memory", {})
    a, b, c = (vowel(pitch, VOWELS["a"], seconds=0.3) for pitch in (100, 150, 200))
    for wave in (a, a, b, a, Waveform(a.samples.copy(), a.rate)):
        hear_once(wave)
    assert len(calls) == 2
    hear_once(c)  # the third: b, heard longest ago, is forgotten
    hear_once(a)
    assert len(calls) == 3
    hear_once(b)
    assert len(calls) == 4
    assert hear_once(Waveform(b.samples, 22_050)).pitch_hz == pytest.approx(150 * 22_050 / 16_000, abs=3)
    assert len(hearing._memory) == 2


def test_women_and_men_of_the_demo_corpus_are_heard_apart():
    corpus = find_corpus("demo")
    heard = {gender: [] for gender in ("female", "male")}
    for clip in corpus.clips:
        heard[clip.groups["gender"]].append(hear(read_audio(corpus.root / clip.file, 16_000)).pitch)
    assert len(heard["female"]) == len(heard["male"]) == 48
    assert min(heard["female"]) > 0.7 and max(heard["male"]) < 0.3


@needs_recordings
@pytest.mark.slow
def test_women_and_men_of_real_corpora_are_heard_apart():
    """RAVDESS: 24 actors, two clips each. Speech Accent Archive: 72 readers."""
    folders = {
        "ravdess": (SHARED / "corpora/ravdess", "manifest.csv", lambda row: row["file"], "gender"),
        "saa": (SHARED / "corpora/saa", "speakers_all.csv", archive_file, "sex"),
    }
    for folder, table, file_of, column in folders.values():
        with (folder / table).open(encoding="utf-8-sig") as file:
            rows = [row for row in csv.DictReader(file) if (folder / file_of(row)).is_file()]
        scores = {"female": [], "male": []}
        for row in rows:
            scores[row[column]].append(hear(read_audio(folder / file_of(row), 16_000)).pitch)
        assert min(map(len, scores.values())) >= 24
        assert area_under_curve(scores["female"], scores["male"]) > 0.99
