"""Long clips in pieces: nothing lost, no piece too long, cuts in the pauses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vibe_harness.backends.long_clips import split
from vibe_harness.backends.protocol import check_options
from vibe_harness.backends.request_audio import clip_of, pieces_of
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Generation, Request, Waveform


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


def _card(long_clips: str, backend: str = "openai") -> ModelCard:
    return ModelCard.model_validate(
        {"model": "m", "backend": backend, "id": "x", "sample_rate": 8_000, "max_seconds": 1, "long_clips": long_clips}
    )


def _asked(samples: int) -> Request:
    wave = Waveform(np.random.default_rng(0).standard_normal(samples).astype(np.float32), 8_000)
    return Request("r", "t", "v", "the-clip", "p", Generation(1), lambda: wave)


def test_what_the_card_says_of_long_clips_is_done() -> None:
    assert [len(one.samples) for one in pieces_of(_asked(20_000), _card("truncate"))] == [8_000]
    pieces = pieces_of(_asked(20_000), _card("split"))
    assert len(pieces) == 3 and sum(len(one.samples) for one in pieces) == 20_000
    with pytest.raises(EngineError, match=r"the-clip: lasts 2.5 s, but 'm' takes 1 s"):
        pieces_of(_asked(20_000), _card("refuse"))
    with pytest.raises(EngineError, match="the-clip: came in 3 pieces, and the backend 'openai' takes one"):
        clip_of(_asked(20_000), _card("split"))


def test_a_clip_as_long_as_the_limit_is_left_alone() -> None:
    limit = _card("refuse").model_copy(update={"max_seconds": 1.00001})  # no whole number of samples
    assert [len(one.samples) for one in pieces_of(_asked(8_001), limit)] == [8_001]
    assert len(pieces_of(_asked(8_001), limit.model_copy(update={"long_clips": "split"}))) == 1


@pytest.mark.parametrize("backend", ["hf", "vllm"])
def test_a_backend_that_takes_one_clip_refuses_to_split(backend: str) -> None:
    check_options(_card("truncate", backend))
    with pytest.raises(UserError, match=f"the backend '{backend}' takes one clip in a request.*refuse or truncate"):
        check_options(_card("split", backend))
