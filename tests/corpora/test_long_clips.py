"""Long clips in pieces: nothing lost, no piece too long, cuts in the pauses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vibe_harness.corpora.long_clips import split
from vibe_harness.records import Waveform


@settings(deadline=None)
@given(st.integers(1, 40_000), st.floats(0.1, 3.0), st.integers(0, 9))
def test_nothing_is_lost_and_nothing_is_too_long(length: int, longest: float, seed: int) -> None:
    wave = Waveform(np.random.default_rng(seed).standard_normal(length).astype(np.float32), 8_000)
    pieces = split(wave, longest)
    np.testing.assert_array_equal(np.concatenate([piece.samples for piece in pieces]), wave.samples)
    assert all(0 < len(piece.samples) <= int(longest * 8_000) for piece in pieces)
    assert len(pieces) == -(-length // int(longest * 8_000))  # the fewest that will do


def test_the_cut_lies_in_the_pause() -> None:
    rate = 8_000
    loud = 0.3 * np.sin(np.arange(10 * rate) / 5).astype(np.float32)
    loud[int(4.8 * rate) : int(4.9 * rate)] = 0
    first, second = split(Waveform(loud, rate), 6.0)
    assert 4.8 * rate <= len(first.samples) <= 4.9 * rate and first.rate == second.rate == rate


def test_a_limit_that_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="too short to be heard"):
        split(Waveform(np.zeros(8_000, np.float32), 8_000), 0.05)
