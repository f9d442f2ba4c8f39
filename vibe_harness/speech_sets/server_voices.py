"""Voices of servers: any that speaks OpenAI's /audio/speech, and Gemini's speech models."""

from __future__ import annotations

import io
import re
from typing import Any, Literal

import numpy as np
from pydantic import Field

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden, read_key
from vibe_harness.backends.remote.reply_limits import GOOGLE, LONGEST_SPEECH, MISREAD, UNREADABLE, failed
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Waveform

MOST_SAMPLES = 1 << 26  # of one text's speech, 46 minutes at 24 kHz: a small file may hold silence for days
TRIES = 5  # the SDKs wait between them, longer each time, and as long as the server asks


class ServerVoiceSettings(Options):
    """A voice behind /audio/speech."""

    base_url: str = Field(pattern=r"^https?://[^@?]+$", description="address of the server, /v1 included")
    model: str
    voice: str
    instructions: str | None = Field(None, description="how to speak, for models that take it: accent, pace")
    speed: float | None = Field(None, ge=0.25, le=4)
    format: Literal["flac", "wav"] = "flac"
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    timeout_s: float = Field(120, gt=0)


class ServerVoice:
    """A voice of a server that speaks OpenAI's protocol."""

    Settings = ServerVoiceSettings

    def __init__(self, settings: ServerVoiceSettings) -> None:
        self._settings = settings
        self._client = open_client(
            settings.base_url, settings.api_key_env, settings.timeout_s, LONGEST_SPEECH, "synthesizer 'openai'"
        )
        self._key = read_key(settings.api_key_env)

    def version(self) -> str:
        return f"{self._settings.model} at {self._settings.base_url}"

    def speak(self, text: str) -> Waveform:
        import openai

        settings = self._settings
        optional = {"instructions": settings.instructions, "speed": settings.speed}
        try:
            reply = self._client.audio.speech.create(
                model=settings.model,
                voice=settings.voice,
                input=text,
                response_format=settings.format,
                **{name: value for name, value in optional.items() if value is not None},
            )
        except (openai.APIError, *UNREADABLE) as error:
            raise failed(settings.base_url, "speech", error, self._key) from None
        return decoded(reply.content, f"{settings.base_url}: the speech")


class GeminiVoiceSettings(Options):
    """A prebuilt voice of a Gemini speech model."""

    model: str = Field(description="gemini-2.5-flash-preview-tts, which BiasInEar was made with")
    voice: str = Field(description="Orus, Zephyr, ...")
    instructions: str | None = Field(None, description="put ahead of the text: language, accent, manner")
    api_key_env: str = Field("GEMINI_API_KEY", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    base_url: str | None = Field(None, pattern=r"^https?://[^@?]+$", description="another address than Google's")
    timeout_s: float = Field(120, gt=0)


class GeminiVoice:
    """A voice of Google's API."""

    Settings = GeminiVoiceSettings

    def __init__(self, settings: GeminiVoiceSettings) -> None:
        try:
            import httpx2
            from google import genai
            from google.genai import types
        except ImportError:
            raise UserError(
                "the synthesizer 'gemini' needs the google-genai package: pip install 'vibe-harness[gemini]'"
            ) from None
        from vibe_harness.backends.remote.transport import client_arguments

        self._settings = settings
        self._key = read_key(settings.api_key_env)
        self._client: Any = genai.Client(
            api_key=self._key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=settings.base_url,
                api_version="v1beta",
                timeout=int(settings.timeout_s * 1000),
                retry_options=types.HttpRetryOptions(attempts=TRIES),
                httpx_client=httpx2.Client(**client_arguments(LONGEST_SPEECH, settings.timeout_s)),
            ),
        )

    def version(self) -> str:
        return self._settings.model

    def speak(self, text: str) -> Waveform:
        import httpx2
        from google.genai import errors, types

        settings = self._settings
        voice = types.VoiceConfig(prebuilt_voice_config=types.PrebuiltVoiceConfig(voice_name=settings.voice))
        config = types.GenerateContentConfig(
            response_modalities=["AUDIO"], speech_config=types.SpeechConfig(voice_config=voice)
        )
        words = f"{settings.instructions}\n\n{text}" if settings.instructions else text
        try:
            reply = self._client.models.generate_content(model=settings.model, contents=words, config=config)
        except (errors.APIError, httpx2.HTTPError, *MISREAD) as error:
            raise failed(settings.base_url or GOOGLE, "speech", error, self._key) from None
        return _pcm(reply, self._key)


def open_client(base_url: str, api_key_env: str | None, timeout_s: float, longest: int, who: str) -> Any:
    """A client of OpenAI's SDK. longest: bytes of a reply.

    Raises UserError where the package is missing or the key is not set.
    """
    try:
        import openai
    except ImportError:
        raise UserError(f"the {who} needs the openai package: pip install 'vibe-harness[openai]'") from None
    from vibe_harness.backends.remote.transport import client_arguments

    return openai.OpenAI(
        base_url=base_url,
        api_key=read_key(api_key_env) or "none",
        max_retries=TRIES,
        timeout=timeout_s,
        http_client=openai.DefaultHttpxClient(**client_arguments(longest, timeout_s)),
    )


def decoded(data: bytes, what: str) -> Waveform:
    """The bytes of an audio file as a mono waveform. Raises EngineError for what is none."""
    import soundfile

    try:
        with soundfile.SoundFile(io.BytesIO(data)) as audio:
            most, rate = MOST_SAMPLES // audio.channels, audio.samplerate
            samples = audio.read(most + 1, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise EngineError(f"{what} is no audio ({len(data)} bytes): {error.error_string}") from None
    if len(samples) > most:
        raise EngineError(f"{what} is longer than {most / rate:.0f} s")
    return Waveform(samples.mean(axis=1, dtype=np.float32), rate)


def _pcm(reply: Any, key: str | None) -> Waveform:
    """Gemini's speech: 16-bit PCM, its rate in the MIME type ("audio/L16;codec=pcm;rate=24000")."""
    candidates = reply.candidates or []
    parts = (candidates[0].content.parts if candidates and candidates[0].content else None) or []
    blob = next((part.inline_data for part in parts if part.inline_data), None)
    rate = re.search(r"rate=(\d+)", blob.mime_type or "") if blob else None
    if blob is None or rate is None or not blob.data or len(blob.data) % 2:
        reason = candidates[0].finish_reason if candidates else "no candidate"
        raise EngineError(f"Gemini gave no speech: {hidden(str(getattr(reason, 'value', reason)), key)}")
    samples = np.frombuffer(blob.data, dtype="<i2").astype(np.float32) / np.float32(32_768)
    return Waveform(samples, int(rate[1]))
