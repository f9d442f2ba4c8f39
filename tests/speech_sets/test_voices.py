"""Synthesizers and recognisers: the local ones for real, those of servers over the wire."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from tests.speech_sets.stand_in import RATE, speech_server, tone
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Waveform
from vibe_harness.speech_sets.card import Recognition, Voice
from vibe_harness.speech_sets.espeak import EspeakSettings, EspeakVoice
from vibe_harness.speech_sets.recognition import ServerRecogniser, ServerRecogniserSettings, open_recogniser
from vibe_harness.speech_sets.server_voices import GeminiVoice, GeminiVoiceSettings, ServerVoice, ServerVoiceSettings
from vibe_harness.speech_sets.synthesis import _speak, open_voice
from vibe_harness.speech_sets.texts import SpokenText

TEXTS = ("The kettle is on the stove.", "Which planet is this?", "Four.")


def test_espeak_speaks_a_text_alike_in_whatever_order() -> None:
    voice, other = (EspeakVoice(EspeakSettings(voice=name)) for name in ("en+f2", "en-us+m3"))
    first = {text: voice.speak(text).samples for text in TEXTS}
    other.speak("Something in between.")
    for text in reversed(TEXTS):
        np.testing.assert_array_equal(voice.speak(text).samples, first[text])
    assert len(first[TEXTS[0]]) > len(first[TEXTS[2]]) > 0
    assert not np.array_equal(other.speak(TEXTS[2]).samples, first[TEXTS[2]])


@pytest.mark.parametrize("name", ["en+nobody", "xx-nowhere"])
def test_a_voice_that_espeak_lacks_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"has no voice '{name}'".replace("+", r"\+")):
        EspeakVoice(EspeakSettings(voice=name)).speak("Hello.")


@pytest.mark.slow
def test_pocketsphinx_hears_what_espeak_says() -> None:
    pytest.importorskip("pocketsphinx")
    recogniser = open_recogniser(Recognition(name="s", recogniser="pocketsphinx"))
    said = EspeakVoice(EspeakSettings(voice="en+f2", rate=150)).speak("What is the capital of France?")
    wave = Waveform(soxr.resample(said.samples, said.rate, 16_000), 16_000)
    assert recogniser.transcribe(wave, "en").startswith("what is the capital of")
    assert recogniser.transcribe(wave, "en") == recogniser.transcribe(wave, None)  # nothing is carried over
    with pytest.raises(UserError, match="knows English alone, not 'ko'"):
        recogniser.transcribe(wave, "ko")


def test_a_server_speaks_and_what_it_is_told_arrives() -> None:
    with speech_server() as server:
        server.busy = 2  # waited for, as the server asks
        settings = ServerVoiceSettings(base_url=f"{server.url}/v1", model="tts", voice="alloy", instructions="calm")
        wave = ServerVoice(settings).speak("Hello there.")
        asked = server.asked[0]
    assert wave.rate == RATE
    np.testing.assert_allclose(wave.samples, tone("Hello there."), atol=1e-3)
    assert {"model": "tts", "voice": "alloy", "instructions": "calm", "input": "Hello there."}.items() <= asked.items()
    assert "speed" not in asked


def test_gemini_speaks_with_the_instructions_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEECH_KEY", "secret-of-ours")
    with speech_server() as server:
        settings = GeminiVoiceSettings(
            model="tts", voice="Orus", instructions="In Korean:", base_url=server.url, api_key_env="SPEECH_KEY"
        )
        wave = GeminiVoice(settings).speak("Hello.")
        asked = server.asked[0]
    assert wave.rate == RATE
    np.testing.assert_allclose(wave.samples, tone("In Korean:\n\nHello."), atol=1e-3)
    speech = asked["generationConfig"]["speechConfig"]  # whose keys differ between versions of the SDK
    assert "Orus" in json.dumps(speech) and asked["generationConfig"]["responseModalities"] == ["AUDIO"]


def test_a_server_transcribes_at_its_own_rate_and_language() -> None:
    with speech_server() as server:
        server.heard = "Guten Tag."
        settings = ServerRecogniserSettings(base_url=f"{server.url}/v1", model="whisper")
        wave = Waveform(np.full(8_000, 0.1, np.float32), 16_000)
        assert ServerRecogniser(settings).transcribe(wave, "de") == "Guten Tag."
        asked = server.asked[0]
    assert asked["language"] == "de" and asked["model"] == "whisper" and asked["rate"] == 16_000


def test_a_server_that_is_not_there_is_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vibe_harness.backends.remote.blocking_client.RETRIES", 0)
    settings = ServerVoiceSettings(base_url="http://127.0.0.1:9/v1", model="m", voice="v")
    with pytest.raises(EngineError, match="no speech"):
        ServerVoice(settings).speak("Hello.")


@pytest.mark.parametrize(
    ("voice", "said"),
    [
        ({"settings": {"voise": "en"}}, "takes no such setting. Did you mean 'voice'"),
        ({"settings": {}}, "settings.voice"),
        ({"synthesizer": "espeek", "settings": {}}, "unknown synthesizer 'espeek'. Did you mean 'espeak'"),
        ({"synthesizer": "gemini", "settings": {"model": "m", "voice": "v", "api_key_env": "NOT_SET"}}, "NOT_SET"),
    ],
)
def test_settings_are_checked_before_anything_is_spoken(voice: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        open_voice(Voice(voice="v", groups={"gender": "female"}, **voice))


@pytest.mark.parametrize(
    ("wave", "said"),
    [
        (Waveform(np.array([0.5, np.nan], np.float32), RATE), "but samples that are no numbers, or at 24000 Hz"),
        (Waveform(np.array([0.5, 0.5], np.float32), 10**20), "or at 100000000000000000000 Hz"),
        (Waveform(np.zeros(9, np.float32), RATE), "silence"),
    ],
)
def test_what_is_no_speech_is_not_written(wave: Waveform, said: str, tmp_path: Path) -> None:
    class Odd:
        Settings = EspeakSettings

        def version(self) -> str:
            return "odd"

        def speak(self, text: str) -> Waveform:
            return wave

    with pytest.raises(EngineError, match=said):
        _speak(Odd(), SpokenText("1", "q", "Hi.", "Hi.", "Hi."), tmp_path / "a.wav")
    assert not list(tmp_path.iterdir())
