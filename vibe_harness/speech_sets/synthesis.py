"""Second step: synthesise each text in each voice, one file for each, with a record of how it was made."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from vibe_harness.backends.protocol import Options, checked_options
from vibe_harness.backends.request_audio import wav_bytes
from vibe_harness.cards.digest import digest
from vibe_harness.corpora.audio.decode import waveform_hash
from vibe_harness.errors import EngineError, UserError
from vibe_harness.progress import Tick
from vibe_harness.records import Waveform
from vibe_harness.registry import Registry
from vibe_harness.speech_sets.card import SpeechSet, Voice
from vibe_harness.speech_sets.texts import SpokenText
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.journal import Journal, as_object, read_journal

QUIETEST = 0.001  # of full scale: a lower peak counts as silence
RATES = (4_000, 384_000)  # Hz; sample rates outside this range are errors
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Synthesizer(Protocol):
    """Text in, speech out, in one voice."""

    Settings: type[Options]

    def __init__(self, settings: Any) -> None:
        """Load what is needed. Raises UserError, with the remedy, if something is not installed."""

    def version(self) -> str:
        """Name and version of the synthesizer. It is part of each clip's key: a new version makes new clips."""

    def speak(self, text: str) -> Waveform:
        """The text as speech. Raises UserError or EngineError; never returns silence instead."""


SYNTHESIZERS: Registry[type[Synthesizer]] = Registry(
    "synthesizer",
    "vibe_harness.synthesizers",
    {
        "espeak": "vibe_harness.speech_sets.espeak:EspeakVoice",
        "openai": "vibe_harness.speech_sets.server_voices:ServerVoice",
        "gemini": "vibe_harness.speech_sets.server_voices:GeminiVoice",
    },
)


@dataclass(frozen=True, slots=True)
class SpokenClip:
    """One text in one voice."""

    text: SpokenText
    voice: Voice
    file: str  # below the set's folder
    sha256: str  # of the waveform, see corpora.audio.decode.waveform_hash
    seconds: float


def spoken_clips(speech_set: SpeechSet, texts: Sequence[SpokenText], output: Path, tick: Tick) -> list[SpokenClip]:
    """Synthesise the clips that are not in `output`/spoken.jsonl, voice by voice. Raises UserError or EngineError."""
    by_item: dict[str, list[SpokenText]] = {}
    for text in texts:
        by_item.setdefault(text.item, []).append(text)
    path = output / "spoken.jsonl"
    done = {record["file"]: record for record in read_journal(path, as_object)}  # the last record of a file counts
    clips = []
    with Journal(path) as journal:
        for voice in speech_set.card.voices:
            rows = speech_set.items
            items = [item for item in rows if all(item.row[name] == cell for name, cell in voice.where.items())]
            if not items:
                raise UserError(f"the voice '{voice.voice}' speaks no row: no row has {dict(voice.where)}")
            own = [text for item in items for text in by_item[item.id]]
            files = _file_names(voice, own)
            synthesizer = open_voice(voice)
            for text in own:
                record = _spoken(synthesizer, voice, text, files[text.item, text.part], output, done, journal)
                clips.append(SpokenClip(text, voice, record["file"], record["sha256"], record["seconds"]))
                tick(1)
    return clips


def _spoken(
    synthesizer: Synthesizer,
    voice: Voice,
    text: SpokenText,
    file: str,
    output: Path,
    done: dict[str, dict[str, Any]],
    journal: Journal,
) -> dict[str, Any]:
    """The record of one text's speech, which is synthesised unless `done` has it. Updates `done` and the journal."""
    key = digest([voice.synthesizer, voice.settings, synthesizer.version(), text.text, file])
    if file in done and done[file]["key"] == key and (output / file).is_file():
        return done[file]
    if file in done:  # invalidate the record before the file is replaced
        journal.append({**done[file], "key": ""})
    sha256, seconds = _speak(synthesizer, text, output / file)
    done[file] = {
        "key": key, "file": file, "sha256": sha256, "seconds": seconds, "item": text.item, "part": text.part,
        "voice": voice.voice, "text": text.text, "made_by": synthesizer.version(),
    }  # fmt: skip
    journal.append(done[file])
    return done[file]


def open_voice(voice: Voice) -> Synthesizer:
    """The synthesizer of a voice. Raises UserError for invalid settings, or if it is not installed."""
    kind = SYNTHESIZERS.get(voice.synthesizer)
    refusal = f"'{voice.synthesizer}' takes no such setting"
    return kind(checked_options(kind.Settings, voice.settings, f"voice '{voice.voice}': settings.", refusal))


def _speak(synthesizer: Synthesizer, text: SpokenText, path: Path) -> tuple[str, float]:
    """Synthesise one text into a file. Returns the hash of the waveform in the file and its duration in seconds."""
    import soundfile

    wave = synthesizer.speak(text.text)
    at = f"item '{text.item}', {text.part}: the synthesizer gave"
    if not RATES[0] <= wave.rate <= RATES[1] or not np.isfinite(wave.samples).all():
        raise EngineError(
            f"{at} no speech for {text.text[:80]!r}, but samples that are no numbers, or at {wave.rate} Hz"
        )
    if not len(wave.samples) or np.abs(wave.samples).max() < QUIETEST:
        raise EngineError(f"{at} silence for {text.text[:80]!r}")
    data = wav_bytes(wave)
    with atomic_write(path) as aside:
        aside.write_bytes(data)
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    return waveform_hash(Waveform(samples, rate)), round(len(samples) / rate, 4)


def _file_names(voice: Voice, texts: Sequence[SpokenText]) -> Mapping[tuple[str, str], str]:
    """(item, part) -> file name that is valid on every system. Raises UserError if two texts get the same name."""
    names: dict[tuple[str, str], str] = {}
    taken: dict[str, SpokenText] = {}
    for text in texts:
        file = f"audio/{voice.voice}/{_UNSAFE.sub('-', text.item)}_{text.part}.wav"
        other = taken.setdefault(file.lower(), text)
        if other is not text:
            raise UserError(
                f"the items '{other.item}' ({other.part}) and '{text.item}' ({text.part}) would share a file name: "
                "rename one, in ASCII letters, digits, '.', '_' and '-'"
            )
        names[text.item, text.part] = file
    return names
