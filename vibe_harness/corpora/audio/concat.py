"""Recordings joined into one, with pauses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vibe_harness.errors import UserError
from vibe_harness.records import Waveform


def joined(pieces: Sequence[Waveform], pause_s: float) -> Waveform:
    """The pieces one after the other, `pause_s` seconds of silence between two.

    Raises UserError where there is none, or where their rates differ: resample them first.
    """
    if not pieces:
        raise UserError("nothing to join: give at least one recording")
    rates = {piece.rate for piece in pieces}
    if len(rates) > 1:
        raise UserError(f"recordings at {' and '.join(map(str, sorted(rates)))} Hz cannot be joined: resample them")
    rate = rates.pop()
    pause = np.zeros(round(pause_s * rate), dtype=np.float32)
    parts = [pieces[0].samples]
    for piece in pieces[1:]:
        parts += [pause, piece.samples]
    return Waveform(np.concatenate(parts), rate)
