"""Recordings joined with pauses, and cut into pieces that are whole again when joined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.corpora.joining import joined, split
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


@given(st.integers(1, 200), st.floats(0.25, 60))
def test_pieces_are_short_and_joined_they_are_whole(length: int, seconds: float) -> None:
    whole = wave(*range(length))
    pieces = split(whole, seconds)
    assert all(0 < len(piece.samples) / piece.rate <= seconds for piece in pieces)
    assert joined(pieces, 0).samples.tolist() == whole.samples.tolist()


def test_thirty_seconds() -> None:
    pieces = split(Waveform(np.ones(70 * 16_000, dtype=np.float32), 16_000), 30)
    assert [len(piece.samples) / 16_000 for piece in pieces] == [30, 30, 10]
    with pytest.raises(UserError, match="hold nothing"):
        split(wave(1, 2), 0.1)
