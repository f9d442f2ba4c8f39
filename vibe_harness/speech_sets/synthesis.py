"""Second step: each text in each voice, a file a text, with what it was made from and by."""

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

QUIETEST = 0.001  # of full scale: under it there is nothing to hear
RATES = (4_000, 384_000)  # Hz; a server that names another rate than these does not speak
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Synthesizer(Protocol):
    """Text in, speech out, in one voice."""

    Settings: type[Options]

    def __init__(self, settings: Any) -> None:
        """Find what is needed. Raises UserError where it is not at hand, with what to do."""

    def version(self) -> str:
        """What made the speech: part of each clip's key, so that another version speaks anew."""

    def speak(self, text: str) -> Waveform:
        """The text as speech. Raises UserError or EngineError; never silence in its place."""


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
    """Speak what `output`/spoken.jsonl does not hold, voice by voice. Raises UserError or EngineError."""
    by_item: dict[str, list[SpokenText]] = {}
    for text in texts:
        by_item.setdefault(text.item, []).append(text)
    path = output / "spoken.jsonl"
    done = {
        record["file"]: record for record in read_journal(path, as_object)
    }  # a later record is what the file holds now
    clips = []
    with Journal(path) as journal:
        for voice in speech_set.card.voices:
            items = [
                item for item in speech_set.items if all(item.row[name] == cell for name, cell in voice.where.items())
            ]
            if not items:
                raise UserError(f"the voice '{voice.voice}' speaks no row: no row has {dict(voice.where)}")
            files = _file_names(voice, [text for item in items for text in by_item[item.id]])
            synthesizer = open_voice(voice)
            base = [voice.synthesizer, voice.settings, synthesizer.version()]
            for item in items:
                for text in by_item[item.id]:
                    file = files[text.item, text.part]
                    key = digest([*base, text.text, file])
                    if file not in done or done[file]["key"] != key or not (output / file).is_file():
                        if file in done:  # no longer what the record says, even where this is the last line written
                            journal.append({**done[file], "key": ""})
                        sha256, seconds = _speak(synthesizer, text, output / file)
                        done[file] = {"key": key, "file": file, "sha256": sha256, "seconds": seconds, "item": item.id,
                                      "part": text.part, "voice": voice.voice, "text": text.text,
                                      "made_by": synthesizer.version()}  # fmt: skip
                        journal.append(done[file])
                    tick(1)
                    clips.append(SpokenClip(text, voice, file, done[file]["sha256"], done[file]["seconds"]))
    return clips


def open_voice(voice: Voice) -> Synthesizer:
    """The synthesizer of a voice. Raises UserError for settings that it does not take, or where it is not at hand."""
    kind = SYNTHESIZERS.get(voice.synthesizer)
    refusal = f"'{voice.synthesizer}' takes no such setting"
    return kind(checked_options(kind.Settings, voice.settings, f"voice '{voice.voice}': settings.", refusal))


def _speak(synthesizer: Synthesizer, text: SpokenText, path: Path) -> tuple[str, float]:
    """Write one text's speech; its waveform's hash, as the file holds it, and its length in seconds."""
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
    """(item, part) -> a file that any disk takes. Raises UserError where two texts would share one."""
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
