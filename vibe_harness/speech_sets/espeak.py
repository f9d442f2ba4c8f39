"""eSpeak NG, a synthesizer that runs anywhere: robotic, in over a hundred languages, with no model to fetch."""

from __future__ import annotations

import _ctypes
import ctypes
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vibe_harness.backends.protocol import Options
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Waveform


class Espeak:
    """The library, through ctypes. It carries state from one text to the next, so the order of texts matters."""

    _SYNCHRONOUS, _RATE, _PITCH, _RANGE, _UTF8 = 2, 1, 3, 4, 1
    _CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

    def __init__(self) -> None:
        import espeakng_loader

        self._data = Path(espeakng_loader.get_data_path())
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.sample_rate: int = self._library.espeak_Initialize(self._SYNCHRONOUS, 0, str(self._data).encode(), 0)
        if self.sample_rate <= 0:
            raise EngineError("eSpeak NG does not start")
        self._pieces: list[NDArray[np.int16]] = []
        self._callback = self._CALLBACK(self._collect)  # kept: ctypes does not
        self._library.espeak_SetSynthCallback(self._callback)

    def _collect(self, wave: ctypes._Pointer[ctypes.c_short], count: int, _: int | None) -> int:
        if wave and count > 0:
            self._pieces.append(np.ctypeslib.as_array(wave, (count,)).copy())
        return 0

    def say(self, voice: str, text: str, rate: int, pitch: int, pitch_range: int) -> NDArray[np.float32]:
        """Samples at self.sample_rate, full scale [-1, 1].

        voice: "LANGUAGE" or "LANGUAGE+VARIANT". rate: words a minute. pitch, pitch_range: 0 to 99.
        Raises UserError where there is no such voice.
        """
        self._pieces.clear()
        _, plus, variant = voice.partition("+")
        known = not plus or (self._data / "voices" / "!v" / variant).is_file()
        if not known or self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise UserError(f"eSpeak NG has no voice '{voice}': write a language, as 'en-us', and a variant, as '+f2'")
        for parameter, value in ((self._RATE, rate), (self._PITCH, pitch), (self._RANGE, pitch_range)):
            self._library.espeak_SetParameter(parameter, value, 0)
        self._library.espeak_ng_SetRandSeed(1)  # else the breath in some variants is seeded by the clock
        data = text.encode("utf-8")
        self._library.espeak_Synth(data, len(data) + 1, 0, 1, 0, self._UTF8, None, None)
        self._library.espeak_Synchronize()
        if not self._pieces:
            return np.zeros(0, dtype=np.float32)
        return np.concatenate(self._pieces).astype(np.float32) / np.float32(32_768)

    def unload(self) -> None:
        """Take the library out of the process, and with it all that it remembers. The object is of no use then."""
        self._library.espeak_Terminate()
        _ctypes.dlclose(self._library._handle)


class EspeakSettings(Options):
    """A voice of eSpeak NG."""

    voice: str = Field(pattern=r"^[A-Za-z0-9_-]+(\+[A-Za-z0-9_-]+)?$", description="'en-us', or 'en-us+f2'")
    rate: int = Field(165, ge=80, le=450, description="words a minute")
    pitch: int = Field(50, ge=0, le=99)
    pitch_range: int = Field(50, ge=0, le=99)


class EspeakVoice:
    """One voice. Each text is spoken by a library loaded anew, so that it sounds the same in whatever order."""

    Settings = EspeakSettings

    def __init__(self, settings: EspeakSettings) -> None:
        try:
            self._version = f"espeakng-loader {version('espeakng-loader')}"
        except ImportError:
            raise UserError(
                "the synthesizer 'espeak' needs the package 'espeakng-loader': pip install 'vibe-harness[speech]'"
            ) from None
        self._settings = settings

    def version(self) -> str:
        return self._version

    def speak(self, text: str) -> Waveform:
        settings = self._settings
        library = Espeak()
        try:
            samples = library.say(settings.voice, text, settings.rate, settings.pitch, settings.pitch_range)
            return Waveform(samples, library.sample_rate)
        finally:
            library.unload()
