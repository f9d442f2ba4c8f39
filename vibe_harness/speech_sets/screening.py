"""Fourth step: the word error rate of each clip (the lowest over recognisers), in the bins of BiasInEar."""

from __future__ import annotations

import csv
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vibe_harness.csv_sheets import escape_formula
from vibe_harness.errors import UserError
from vibe_harness.speech_sets.synthesis import SpokenClip
from vibe_harness.store.atomic_files import atomic_write

# BiasInEar, section 2.2: 0, (0, 0.2], (0.2, 0.6], > 0.6.
BINS = ("0", "0 to 0.2", "0.2 to 0.6", "over 0.6")
EDGES = (0.0, 0.2, 0.6)


@dataclass(frozen=True, slots=True)
class ScreenedClip:
    """One clip with its errors."""

    clip: SpokenClip
    errors: Mapping[str, float]  # recogniser -> error rate against the spoken text; may exceed 1

    @property
    def error(self) -> float:
        """The smaller error rate: two recognisers seldom mishear alike."""
        return min(self.errors.values())

    @property
    def bin(self) -> str:
        return BINS[sum(self.error > edge for edge in EDGES)]


def screened(
    clips: Sequence[SpokenClip],
    heard: Mapping[str, Mapping[str, str]],
    units: Mapping[str, Literal["word", "character"]],
) -> list[ScreenedClip]:
    """Each clip with the error rate of each recogniser.

    heard: recogniser -> file -> transcript. units: language -> what is counted; words where it is not named.
    Raises UserError where a text holds no word.
    """
    result = []
    for clip in clips:
        language = clip.voice.groups.get("language", "")
        unit = units.get(language) or units.get(language.partition("-")[0], "word")  # zh-CN is Chinese
        errors = {name: error_rate(clip.text.text, texts[clip.file], unit) for name, texts in heard.items()}
        result.append(ScreenedClip(clip, errors))
    return result


def error_rate(said: str, heard: str, unit: Literal["word", "character"] = "word") -> float:
    """Substitutions, deletions and insertions over the words (or characters) of `said`; case and punctuation aside.

    Raises UserError where `said` holds neither letter nor digit.
    """
    try:
        import jiwer
    except ImportError:
        raise UserError("screening needs the package 'jiwer': pip install 'vibe-harness[speech]'") from None
    reference, hypothesis = _plain(said), _plain(heard)
    if not reference:
        raise UserError(f"the text {said[:80]!r} holds no word to compare a transcript with")
    if unit == "character":
        return float(jiwer.cer(reference.replace(" ", ""), hypothesis.replace(" ", "")))
    return float(jiwer.wer(reference, hypothesis))


def _plain(text: str) -> str:
    """Lower case, without punctuation; an apostrophe joins, any other mark parts words."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("'", "")
    marks = {ord(mark): " " for mark in string.punctuation}
    text = text.translate(marks)
    return " ".join("".join(" " if unicodedata.category(c)[0] in "PZC" else c for c in text).split())


def shares(rows: Sequence[ScreenedClip]) -> dict[str, dict[str, float]]:
    """Language -> bin -> share of its clips (the paper's Table 2). The language of a voice without one is ""."""
    languages: dict[str, list[str]] = {}
    for row in rows:
        languages.setdefault(row.clip.voice.groups.get("language", ""), []).append(row.bin)
    return {
        language: {name: bins.count(name) / len(bins) for name in BINS} for language, bins in sorted(languages.items())
    }


def write_screening(path: Path, rows: Sequence[ScreenedClip], heard: Mapping[str, Mapping[str, str]]) -> None:
    """One line a clip: file, what was said, what each recogniser heard, errors, bin."""
    with atomic_write(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "item", "part", "voice", "said", *heard, *(f"{name}_errors" for name in heard), "bin"])
        for row in rows:
            clip = row.clip
            texts = [escape_formula(heard[name][clip.file]) for name in heard]
            errors = [f"{row.errors[name]:.4f}" for name in heard]
            told = [clip.file, clip.text.item, clip.text.part, clip.voice.voice, escape_formula(clip.text.text)]
            table.writerow([*told, *texts, *errors, row.bin])
