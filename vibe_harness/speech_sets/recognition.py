"""Third step: transcribe each clip with each speech recogniser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import Field

from vibe_harness.backends.protocol import Options, checked_options
from vibe_harness.backends.remote.api_keys import hidden, kept_words, read_key
from vibe_harness.backends.remote.reply_limits import LONGEST_TEXT, members
from vibe_harness.backends.request_audio import wav_bytes
from vibe_harness.cards.digest import digest
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.errors import EngineError, UserError
from vibe_harness.progress import Tick
from vibe_harness.records import Waveform
from vibe_harness.registry import Registry
from vibe_harness.speech_sets.card import Recognition
from vibe_harness.speech_sets.server_voices import open_client
from vibe_harness.speech_sets.synthesis import SpokenClip
from vibe_harness.store.journal import Journal, as_object, read_journal

if TYPE_CHECKING:
    import aiohttp

RATE = 16_000  # Hz; what recognisers are trained on


class Recogniser(Protocol):
    """Speech in, text out."""

    Settings: type[Options]

    def __init__(self, settings: Any) -> None:
        """Load what is needed. Raises UserError, with the remedy, if something is not installed."""

    def version(self) -> str:
        """Name and version of the recogniser. It is part of each transcript's key."""

    def transcribe(self, wave: Waveform, language: str | None) -> str:
        """What is said, "" where nothing was understood. wave: at RATE. Raises UserError or EngineError."""


RECOGNISERS: Registry[type[Recogniser]] = Registry(
    "recogniser",
    "vibe_harness.recognisers",
    {
        "openai": "vibe_harness.speech_sets.recognition:ServerRecogniser",
        "pocketsphinx": "vibe_harness.speech_sets.recognition:PocketSphinx",
    },
)


def transcripts(
    recognitions: Sequence[Recognition], clips: Sequence[SpokenClip], output: Path, tick: Tick
) -> dict[str, dict[str, str]]:
    """Recogniser -> file -> transcript. Transcribes the clips that are not in `output`/transcripts.jsonl.

    Recognisers run one after the other. Raises UserError if one is not installed, EngineError if one fails.
    """
    path = output / "transcripts.jsonl"
    done = {record["key"]: record["text"] for record in read_journal(path, as_object)}
    heard: dict[str, dict[str, str]] = {}
    with Journal(path) as journal:
        for recognition in recognitions:
            recogniser = open_recogniser(recognition)
            base = [recognition.recogniser, recognition.settings, recogniser.version()]
            heard[recognition.name] = {}
            for clip in clips:
                language = clip.voice.groups.get("language")
                key = digest([*base, clip.sha256, language])
                if key not in done:
                    done[key] = recogniser.transcribe(read_audio(output / clip.file, RATE), language)
                    journal.append(
                        {
                            "key": key,
                            "file": clip.file,
                            "recogniser": recognition.name,
                            "made_by": recogniser.version(),
                            "text": done[key],
                        }
                    )
                tick(1)
                heard[recognition.name][clip.file] = done[key]
    return heard


def open_recogniser(recognition: Recognition) -> Recogniser:
    """Open a recogniser. Raises UserError for invalid settings, or if it is not installed."""
    kind = RECOGNISERS.get(recognition.recogniser)
    ahead = f"recogniser '{recognition.name}': settings."
    refusal = f"'{recognition.recogniser}' takes no such setting"
    return kind(checked_options(kind.Settings, recognition.settings, ahead, refusal))


class ServerRecogniserSettings(Options):
    """A recogniser behind /audio/transcriptions: Whisper on a server of vLLM's, for one."""

    base_url: str = Field(pattern=r"^https?://[^@?]+$", description="address of the server, /v1 included")
    model: str
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    timeout_s: float = Field(120, gt=0)


class ServerRecogniser:
    """A recogniser of a server that speaks OpenAI's protocol."""

    Settings = ServerRecogniserSettings

    def __init__(self, settings: ServerRecogniserSettings) -> None:
        self._settings = settings
        self._client = open_client(settings.base_url, settings.api_key_env, settings.timeout_s, LONGEST_TEXT)
        self._key = read_key(settings.api_key_env)

    def version(self) -> str:
        return f"{self._settings.model} at {self._settings.base_url}"

    def transcribe(self, wave: Waveform, language: str | None) -> str:
        settings = self._settings
        fields = {"model": settings.model, "response_format": "json", "temperature": "0"}
        if language:
            fields["language"] = language
        clip = wav_bytes(wave)
        reply = self._client.post("transcript", "/audio/transcriptions", lambda: _form(fields, clip))
        text = members(reply.json_or_none()).get("text")
        if not isinstance(text, str):
            said = hidden(reply.body[:300].decode("utf-8", "replace"), self._key)[:100]
            raise EngineError(f"{settings.base_url}: the reply holds no transcript: {said!r}")
        return kept_words(text, self._key)


def _form(fields: Mapping[str, str], clip: bytes) -> aiohttp.FormData:
    import aiohttp

    form = aiohttp.FormData(fields)
    form.add_field("file", clip, filename="clip.wav", content_type="audio/wav")
    return form


class PocketSphinxSettings(Options):
    """None: the recogniser comes with one model, of American English."""


class PocketSphinx:
    """CMU PocketSphinx: small, old, English only, and its model is in the package. Far more errors than Whisper."""

    Settings = PocketSphinxSettings

    def __init__(self, settings: PocketSphinxSettings) -> None:
        try:
            self._version = f"pocketsphinx {version('pocketsphinx')}"
        except ImportError:
            raise UserError(
                "the recogniser 'pocketsphinx' needs the package of that name: pip install 'vibe-harness[speech]'"
            ) from None

    def version(self) -> str:
        return self._version

    def transcribe(self, wave: Waveform, language: str | None) -> str:
        import numpy as np
        import pocketsphinx

        if language not in (None, "en"):
            raise UserError(f"the recogniser 'pocketsphinx' knows English alone, not '{language}'")
        # A decoder adapts to what it hears: a new one a clip hears the same in whatever order.
        decoder = pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL")
        samples = (np.clip(wave.samples, -1, 1) * 32_767).astype("<i2")
        decoder.start_utt()
        decoder.process_raw(samples.tobytes(), full_utt=True)
        decoder.end_utt()
        hypothesis = decoder.hyp()
        return str(hypothesis.hypstr) if hypothesis else ""
