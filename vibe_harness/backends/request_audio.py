"""The clip of a request, checked against the model card, and as bytes for engines that take files."""

from __future__ import annotations

import base64
import io
import math

import numpy as np

from vibe_harness.backends.long_clips import split
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError
from vibe_harness.records import Request, Waveform


def clip_of(request: Request, card: ModelCard) -> Waveform | None:
    """As `pieces_of`, for engines that take one clip in a request; `check_options` refuses cards that split clips."""
    pieces = pieces_of(request, card)
    if len(pieces) > 1:
        raise EngineError(f"{request.clip}: came in {len(pieces)} pieces, and the backend '{card.backend}' takes one")
    return pieces[0] if pieces else None


def pieces_of(request: Request, card: ModelCard) -> list[Waveform]:
    """The decoded clip of a request, in pieces if the card splits long clips; an empty list without a clip.

    Raises EngineError for faults of the harness itself: a clip for a model that takes none, at another rate than the
    model's, too long, empty, or not finite. Engines answer such requests as if the clip was fine.
    """
    if request.audio is None:
        return []
    if not card.audio:
        raise EngineError(f"{request.clip}: the model '{card.model}' takes no audio (audio: false on its card)")
    wave = request.audio()
    if wave.rate != card.sample_rate:
        raise EngineError(f"{request.clip}: came at {wave.rate} Hz, but '{card.model}' takes {card.sample_rate} Hz")
    if wave.samples.ndim != 1 or not len(wave.samples) or not np.isfinite(wave.samples).all():
        raise EngineError(f"{request.clip}: not a mono clip of finite samples")
    # rounded up, since resampling may add part of a sample to a clip of exactly the maximum length
    if card.max_seconds is not None and len(wave.samples) > math.ceil(card.max_seconds * wave.rate):
        seconds = len(wave.samples) / wave.rate
        if card.long_clips == "refuse":
            raise EngineError(f"{request.clip}: lasts {seconds:.1f} s, but '{card.model}' takes {card.max_seconds:g} s")
        if card.long_clips == "split":
            return split(wave, card.max_seconds)
        return [Waveform(wave.samples[: int(card.max_seconds * wave.rate)], wave.rate)]
    return [wave]


def wav_bytes(wave: Waveform) -> bytes:
    """Encode as a mono 16-bit PCM WAV file. Samples beyond full scale are clipped."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, wave.samples, wave.rate, format="WAV", subtype="PCM_16")
    return file.getvalue()


def wav_data_uri(wave: Waveform) -> str:
    """The WAV file as a data URI."""
    return "data:audio/wav;base64," + base64.b64encode(wav_bytes(wave)).decode("ascii")
