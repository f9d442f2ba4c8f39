"""Makes the demo corpus: synthetic speakers, spoken by eSpeak NG. Nothing in it was recorded from a person.

    python corpora/demo/make_demo.py [FOLDER]

writes FOLDER/manifest.csv and FOLDER/clips/*.ogg (the folder of this script by default). The same version of
espeakng-loader gives the same waveforms each time; a clip whose waveform has not changed is left as it is, since the
Ogg container carries a random serial number.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from vibe_harness.speech_sets.espeak import Espeak

RATE = 16_000
LEVEL = 0.06  # root mean square of every clip, so that loudness tells nothing about the speaker
LICENCE = "Apache-2.0"

SENTENCES = {
    "s1": "The parcel arrived before the rain began to fall.",
    "s2": "There is a small bakery next to the stone bridge.",
    "s3": "Please put the blue folder on the table by the window.",
    "s4": "The train to the coast leaves at a quarter past nine.",
}

# Voice files of eSpeak NG. 'en-gb' takes no variant (eSpeak NG ignores it without a word); its file 'en' does.
ACCENTS = {"british": "en", "american": "en-us", "scottish": "en-gb-scotland", "caribbean": "en-029"}

# Variant, pitch and pitch range (0 to 99) and rate (words a minute) of each speaker. Neighbours take turns in the
# accents, so each accent has three of either list and no variant belongs to one accent.
FEMALE = [
    ("f1", 46, 50, 160), ("f2", 44, 60, 172), ("f3", 40, 50, 166), ("f4", 54, 45, 178),
    ("f5", 42, 60, 158), ("f1", 56, 60, 176), ("f2", 52, 40, 164), ("f3", 46, 65, 174),
    ("f4", 46, 60, 162), ("f5", 50, 45, 170), ("f1", 51, 40, 168), ("f2", 56, 55, 180),
]  # fmt: skip
MALE = [
    ("m1", 52, 50, 162), ("m2", 50, 60, 174), ("m3", 54, 45, 160), ("m4", 56, 55, 170),
    ("m5", 46, 40, 176), ("m6", 56, 60, 164), ("m7", 48, 50, 178), ("m8", 62, 45, 166),
    ("m1", 62, 60, 172), ("m3", 46, 55, 168), ("m7", 58, 40, 158), ("m5", 56, 60, 180),
]  # fmt: skip


@dataclass(frozen=True)
class Voice:
    """A synthetic speaker."""

    speaker: str
    gender: str
    accent: str
    variant: str
    pitch: int
    pitch_range: int
    rate: int


def voices() -> Iterator[Voice]:
    """All 24, in the order in which they are spoken: the synthesizer carries state from clip to clip."""
    accents = list(ACCENTS)
    for gender, settings in (("female", FEMALE), ("male", MALE)):
        for index, (variant, pitch, pitch_range, rate) in enumerate(settings):
            accent = accents[index % len(accents)]
            yield Voice(f"{gender[0]}{index + 1:02d}", gender, accent, variant, pitch, pitch_range, rate)


def _say(espeak: Espeak, voice: Voice, text: str) -> NDArray[np.float32]:
    return espeak.say(f"{ACCENTS[voice.accent]}+{voice.variant}", text, voice.rate, voice.pitch, voice.pitch_range)


def clip_bytes(samples: NDArray[np.float32], rate: int) -> bytes:
    """Ogg Opus at 16 kHz, at the common level."""
    samples = soxr.resample(samples, rate, RATE, quality="HQ")
    samples = samples * (LEVEL / np.sqrt(np.mean(np.square(samples))))
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="OGG", subtype="OPUS")
    return file.getvalue()


def write_if_changed(path: Path, data: bytes) -> None:
    """Write a clip unless the file already holds that waveform."""
    if path.is_file() and np.array_equal(soundfile.read(path)[0], soundfile.read(io.BytesIO(data))[0]):
        return
    path.write_bytes(data)


def make(folder: Path) -> None:
    """Write the clips and the manifest."""
    (folder / "clips").mkdir(parents=True, exist_ok=True)
    espeak = Espeak()
    rows = []
    for voice in voices():
        for sentence_id, text in SENTENCES.items():
            file = f"clips/{voice.speaker}_{sentence_id}.ogg"
            write_if_changed(folder / file, clip_bytes(_say(espeak, voice, text), espeak.sample_rate))
            rows.append(
                {
                    "file": file,
                    "speaker": voice.speaker,
                    "gender": voice.gender,
                    "accent": voice.accent,
                    "sentence_id": sentence_id,
                    "text": text,
                    "synthetic": "true",
                    "licence": LICENCE,
                }
            )
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
