"""Build a speech set: all steps in order, each resuming from what the folder contains, and the manifest."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from vibe_harness.cards.loading import CardIndex
from vibe_harness.errors import UserError
from vibe_harness.progress import Tick
from vibe_harness.speech_sets.card import PART, SpeechSet
from vibe_harness.speech_sets.rating import draw, rated, write_sheet
from vibe_harness.speech_sets.recognition import open_recogniser, transcripts
from vibe_harness.speech_sets.screening import screened, shares, write_screening
from vibe_harness.speech_sets.synthesis import SpokenClip, open_voice, spoken_clips
from vibe_harness.speech_sets.texts import spoken_texts, write_review
from vibe_harness.store.atomic_files import atomic_write, remove_partial_files

REVIEW, MANIFEST, SCREENING, RATING = TABLES = ("review.csv", "manifest.csv", "screening.csv", "rating.csv")
Stage = Callable[[str, int], AbstractContextManager[Tick]]


@dataclass(frozen=True)
class BuiltSpeechSet:
    """Summary of a speech set's folder."""

    texts: int
    flagged: int | None  # texts that the rewriting changed in more than space and case; None where nothing rewrites
    mended: int  # texts that a person wrote anew
    clips: int
    hours: float
    bins: Mapping[str, Mapping[str, float]] | None = None  # language -> bin of errors -> share; None: not screened
    sample: int = 0  # clips for people to rate
    ratings: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)


def build(speech_set: SpeechSet, output: Path, cards: CardIndex, stage: Stage) -> BuiltSpeechSet:
    """Rewrite, synthesise, write the manifest, transcribe, screen and draw the sample. Skips what `output` contains.

    Raises UserError or EngineError if a step fails. The output of earlier steps stays valid.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        lock = FileLock(output / ".lock", timeout=0)
        with lock:
            for name in TABLES:
                remove_partial_files(output, name)
            for folder in (output / "audio").glob("*"):
                remove_partial_files(folder)
            return _build(speech_set, output, cards, stage)
    except Timeout:
        raise UserError(f"{output}: another process is building there: wait for it, or name another folder") from None
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}") from None


def _build(speech_set: SpeechSet, output: Path, cards: CardIndex, stage: Stage) -> BuiltSpeechSet:
    card = speech_set.card
    for voice in card.voices:  # missing packages are reported before a model costs money
        open_voice(voice)
    for recognition in card.recognisers:
        open_recogniser(recognition)
    with stage("rewriting", len(speech_set.items) * len(card.texts)) as tick:
        texts = spoken_texts(speech_set, output, cards, tick)
    flagged = write_review(output / REVIEW, texts) if card.rewrite else None
    with stage("speaking", _count(speech_set)) as tick:
        clips = spoken_clips(speech_set, texts, output, tick)
    _write_manifest(output / MANIFEST, speech_set, clips)
    built = BuiltSpeechSet(
        texts=len(texts),
        flagged=flagged,
        mended=sum(text.text != text.rewritten for text in texts),
        clips=len(clips),
        hours=sum(clip.seconds for clip in clips) / 3600,
    )
    if not card.recognisers:
        return built
    with stage("transcribing", len(clips) * len(card.recognisers)) as tick:
        heard = transcripts(card.recognisers, clips, output, tick)
    rows = screened(clips, heard, card.error_unit)
    write_screening(output / SCREENING, rows, heard)
    rotate = card.rating.rotate
    cells = {item.id: item.row[rotate] for item in speech_set.items} if rotate else {}
    sheet = output / RATING
    sample = write_sheet(sheet, draw(rows, card.rating, cells, card.texts[0]))
    return BuiltSpeechSet(
        built.texts, flagged, built.mended, built.clips, built.hours, shares(rows), sample, rated(sheet)
    )


def _count(speech_set: SpeechSet) -> int:
    """Clips of the whole set."""
    rows = sum(
        all(item.row[name] == cell for name, cell in voice.where.items())
        for voice in speech_set.card.voices
        for item in speech_set.items
    )
    return rows * len(speech_set.card.texts)


def _write_manifest(path: Path, speech_set: SpeechSet, clips: Sequence[SpokenClip]) -> None:
    """One row an item and voice: the first text is the clip, the others stand in PART_file and PART_text."""
    card = speech_set.card
    first, others = card.texts[0], card.texts[1:]
    groups = sorted({name for voice in card.voices for name in voice.groups})
    rows: dict[tuple[str, str], dict[str, SpokenClip]] = {}
    for clip in clips:
        rows.setdefault((clip.text.item, clip.voice.voice), {})[clip.text.part] = clip
    cells = {item.id: item.row for item in speech_set.items}
    parts = [f"{part}_{what}" for part in others for what in PART]
    columns = ["file", "speaker", *groups, "sentence_id", "text", *parts, *card.keep, "licence", "synthetic"]
    with atomic_write(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        for (item, voice), spoken in rows.items():
            row = {
                "file": spoken[first].file,
                "speaker": voice,
                "sentence_id": item,
                "text": spoken[first].text.original,
            }
            row |= spoken[first].voice.groups
            for part in others:
                row |= {f"{part}_file": spoken[part].file, f"{part}_text": spoken[part].text.original}
            row |= {name: cells[item][name] for name in card.keep}
            table.writerow(row | {"licence": card.licence or "", "synthetic": "true"})
