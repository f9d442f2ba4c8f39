"""Corpora of choice tasks that the tests make: tones in place of speech, and real tables where they are at hand."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.corpora.sounds import speechlike, write
from tests.support import SHARED
from vibe_harness.corpora.importers.spoken_stereoset import read
from vibe_harness.records import CheckedClip, Clip

STEREOSET = SHARED / "corpora" / "spoken_stereoset"
Row = dict[str, str]
LETTERS = "ABCD"


def question_rows(questions: int = 2, languages: Sequence[str] = ("en",)) -> list[Row]:
    """Rows of a spoken quiz in two voices and two orders, as the card `biasinear` takes them."""
    rows = []
    for number in range(questions):
        for language in languages:
            for gender in ("female", "male"):
                for order in ("original", "reversed"):
                    options = [f"thing {letter} of {number}" for letter in LETTERS]
                    answer = LETTERS[number % 4]
                    if order == "reversed":
                        options.reverse()
                        answer = LETTERS[3 - number % 4]
                    name = f"{language}-{gender}-{number}-{order}"
                    rows.append({
                        "file": f"{name}/question.wav", "id": name, "speaker": f"{language}-{gender}", "gender": gender,
                        "text": f"question {number}", "language": language, "accent": f"{language}-one", "order": order,
                        "sentence_id": f"q{number}", "answer": answer, "cultural_sensitivity": "CA",
                        **{f"option_{a}_text": text for a, text in zip("abcd", options, strict=True)},
                        **{f"option_{a}_file": f"{name}/{a}.wav" for a in "abcd"},
                    })  # fmt: skip
    return rows


def quiz(folder: Path, change: Callable[[list[Row]], None] = lambda rows: None, **how: object) -> Path:
    """Write the rows, changed as a test needs, with a tone for each file; returns the manifest."""
    rows = question_rows(**how)  # type: ignore[arg-type]
    for index, row in enumerate(rows):
        for place, column in enumerate(("file", *(f"option_{a}_file" for a in "abcd"))):
            pitch = 100.0 + 20 * place
            write(folder / row[column], speechlike(0.3, 8_000, pitch=pitch, seed=10 * index + place), 8_000)
    change(rows)
    path = folder / "manifest.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def whole_stereoset(folder: Path, silent: bool = False) -> Path:
    """Spoken StereoSet's own tables, every row with a file: a tone of its voice, or an empty file where `silent`."""
    shutil.copytree(STEREOSET / "metadata", folder / "metadata")
    voices: dict[str, Path] = {}
    for dimension in ("gender", "age"):
        (folder / "speech" / dimension).mkdir(parents=True)
        with (folder / "metadata" / f"{dimension}_v1.0.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                path = folder / "speech" / dimension / f"{row['id']}_{row['speaker']}.wav"
                if silent:
                    path.touch()
                elif row["speaker"] in voices:
                    os.link(voices[row["speaker"]], path)
                else:
                    number = len(voices)
                    voices[row["speaker"]] = write(path, speechlike(0.3, 8_000, 100 + 10 * number, seed=number), 8_000)
    return folder


def stereoset_clips(folder: Path) -> list[Clip]:
    """The clips of the whole tables, none of which can be heard."""
    return list(read(whole_stereoset(folder, silent=True), folder, "spoken-stereoset").clips)


def row(order: str = "original", **changes: str) -> Clip:
    cells = next(one for one in question_rows() if one["order"] == order) | changes
    return Clip(f"c/{cells['id']}", cells["file"], cells["speaker"], cells, cells["text"])


def heard(clip: Clip, folder: Path = Path()) -> CheckedClip:
    from vibe_harness.records import CheckedPart

    files = [clip.groups[f"option_{a}_file"] for a in "abcd"]
    return CheckedClip(clip, folder / clip.file, "w", 1.0, {f: CheckedPart(folder / f, f"w {f}", 0.5) for f in files})
