"""Clips encoded for servers: WAV in base64, each encoded once for all of its requests."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from vibe_harness.backends.request_audio import pieces_of, wav_bytes
from vibe_harness.cards.schema import ModelCard
from vibe_harness.records import Request, Waveform

KEPT = 8  # clips; few are enough, since requests are sorted by clip


@dataclass(eq=False, slots=True)
class _Clip:
    lock: threading.Lock = field(default_factory=threading.Lock)
    pieces: list[str] | None = None


class EncodedClips:
    """A cache of the latest clips. Safe to use from several threads."""

    def __init__(self, card: ModelCard) -> None:
        self._card = card
        self._lock = threading.Lock()
        self._kept: OrderedDict[Callable[[], Waveform], _Clip] = OrderedDict()

    def of(self, request: Request) -> list[str]:
        """The request's clip, in pieces if the card splits long clips; an empty list without a clip.

        Requests share a clip if they share the function that decodes it. Raises EngineError as `pieces_of` does.
        """
        if request.audio is None:
            return []
        with self._lock:
            clip = self._kept.setdefault(request.audio, _Clip())
            self._kept.move_to_end(request.audio)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        with clip.lock:  # held by a thread that encodes the same clip
            if clip.pieces is None:
                waves = pieces_of(request, self._card)
                clip.pieces = [base64.b64encode(wav_bytes(wave)).decode("ascii") for wave in waves]
            return clip.pieces
