"""Recordings joined with pauses."""

import numpy as np
import pytest

from vibe_harness.corpora.audio.concat import joined
from vibe_harness.errors import UserError
from vibe_harness.records import Waveform


def wave(*samples: float, rate: int = 4) -> Waveform:
    return Waveform(np.array(samples, dtype=np.float32), rate)


def test_pauses_stand_between_pieces_only() -> None:
    whole = joined([wave(1, 2), wave(3), wave(4)], 0.5)
    assert whole.samples.tolist() == [1, 2, 0, 0, 3, 0, 0, 4] and whole.rate == 4
    assert whole.samples.dtype == np.float32
    assert joined([wave(1), wave(2)], 0).samples.tolist() == [1, 2]


def test_what_cannot_be_joined() -> None:
    with pytest.raises(UserError, match="at least one"):
        joined([], 0.5)
    with pytest.raises(UserError, match="4 and 8 Hz cannot be joined"):
        joined([wave(1), wave(2, rate=8)], 0.5)
