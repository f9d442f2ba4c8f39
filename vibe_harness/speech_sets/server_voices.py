"""Voices of servers: any that speaks OpenAI's /audio/speech, and Gemini's speech models."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import Field

from vibe_harness.backends.protocol import Options
from vibe_harness.backends.remote.api_keys import hidden, read_key
from vibe_harness.backends.remote.blocking_client import BlockingClient
from vibe_harness.backends.remote.gemini import GOOGLE, open_gemini, path_of
from vibe_harness.backends.remote.openai_server import open_openai
from vibe_harness.backends.remote.reply_limits import LONGEST_SPEECH, members
from vibe_harness.errors import EngineError
from vibe_harness.records import Waveform

MOST_SAMPLES = 1 << 26  # of one text's speech, 46 minutes at 24 kHz: a small file may hold silence for days


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
        self._client = open_client(settings.base_url, settings.api_key_env, settings.timeout_s, LONGEST_SPEECH)

    def version(self) -> str:
        return f"{self._settings.model} at {self._settings.base_url}"

    def speak(self, text: str) -> Waveform:
        settings = self._settings
        optional = {"instructions": settings.instructions, "speed": settings.speed}
        body = {
            "model": settings.model,
            "voice": settings.voice,
            "input": text,
            "response_format": settings.format,
            **{name: value for name, value in optional.items() if value is not None},
        }
        reply = self._client.post("speech", "/audio/speech", lambda: json.dumps(body).encode("ascii"))
        return decoded(reply.body, f"{settings.base_url}: the speech")


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
        self._settings = settings
        self._key = read_key(settings.api_key_env)
        self._client = BlockingClient(
            lambda: open_gemini(settings.base_url, self._key, LONGEST_SPEECH),
            settings.base_url or GOOGLE,
            settings.timeout_s,
            self._key,
        )

    def version(self) -> str:
        return self._settings.model

    def speak(self, text: str) -> Waveform:
        settings = self._settings
        words = f"{settings.instructions}\n\n{text}" if settings.instructions else text
        voice = {"prebuiltVoiceConfig": {"voiceName": settings.voice}}
        body = {
            "contents": [{"role": "user", "parts": [{"text": words}]}],
            "generationConfig": {"responseModalities": ["AUDIO"], "speechConfig": {"voiceConfig": voice}},
        }
        path = f"{path_of(settings.model)}:generateContent"
        reply = self._client.post("speech", path, lambda: json.dumps(body).encode("ascii"))
        return _pcm(reply.json_or_none(), self._key)


def open_client(base_url: str, api_key_env: str | None, timeout_s: float, longest: int) -> BlockingClient:
    """A client of a server that speaks OpenAI's API. longest: bytes of a reply. Raises UserError without the key."""
    key = read_key(api_key_env)
    return BlockingClient(lambda: open_openai(base_url, key, longest), base_url, timeout_s, key)


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


def _pcm(reply: object, key: str | None) -> Waveform:
    """Gemini's speech: 16-bit PCM in base64, its rate in the MIME type ("audio/L16;codec=pcm;rate=24000")."""
    candidates = members(reply).get("candidates")
    candidate = members(candidates[0]) if isinstance(candidates, list) and candidates else {}
    parts = members(candidate.get("content")).get("parts")
    blobs = [members(members(part).get("inlineData")) for part in (parts if isinstance(parts, list) else [])]
    blob: Mapping[str, object] = next((blob for blob in blobs if blob), {})
    rate = re.search(r"rate=(\d+)", str(blob.get("mimeType", "")))
    try:
        data = base64.b64decode(str(blob.get("data", "")), validate=True)
    except ValueError:
        data = b""
    if rate is None or not data or len(data) % 2:
        reason = candidate.get("finishReason") or ("no speech in it" if candidate else "no candidate")
        raise EngineError(f"Gemini gave no speech: {hidden(str(reason), key)}")
    samples = np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32_768)
    return Waveform(samples, int(rate[1]))
