"""Random words against Philox written out, and whole numbers against what chance allows."""

import numpy as np
import pytest
from scipy.stats import chisquare

from vibe_harness.stats.rng import picks, random_words


def philox(key: tuple[int, int], counter: int) -> list[int]:
    """One block of Philox4x64-10 (Salmon and others 2011, "Parallel random numbers: as easy as 1, 2, 3")."""
    a, b, c, d = counter, 0, 0, 0
    left, right = key
    for _ in range(10):
        first, second = a * 0xD2E7470EE14C6C93, c * 0xCA5A826395121157
        a, b = (second >> 64) ^ b ^ left, second % 2**64
        c, d = (first >> 64) ^ d ^ right, first % 2**64
        left, right = (left + 0x9E3779B97F4A7C15) % 2**64, (right + 0xBB67AE8584CAA73B) % 2**64
    return [a, b, c, d]


def test_philox_written_out_is_that_of_its_paper() -> None:
    # the known answer of the paper's own implementation (Random123, kat_vectors) for a key and a counter of 0
    expected = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert philox((0, 0), 0) == expected


@pytest.mark.parametrize(("seed", "number"), [(0, 0), (7, 3)])
def test_words_are_philox_of_the_seed_in_whatever_portions(seed: int, number: int) -> None:
    key = tuple(int(word) for word in np.random.SeedSequence([seed, number]).generate_state(2, np.uint64))
    expected = [word for counter in range(1, 6) for word in philox(key, counter)]
    words = random_words(seed, number)
    assert [int(word) for wanted in (1, 6, 13) for word in words(wanted)] == expected


def test_picks_are_uniform_and_within_their_bounds() -> None:
    found = picks(random_words(1), [[3], [7], [1]], (3, 21_000))
    for row, among in zip(found[:2], (3, 7), strict=True):
        counts = np.bincount(row)
        assert len(counts) == among and chisquare(counts).pvalue > 0.001
    assert not found[2].any()
    assert 2**31 < picks(random_words(1), 2**32, (50,)).max() < 2**32


def test_picks_are_made_of_64_bits_whatever_numpy_makes_of_32_times_a_number() -> None:
    """Numpy 1 keeps 32 bits where a 32-bit array meets a number alone: all picks would be 0."""
    bits = np.uint64(2**64 - 1).tobytes()
    found = picks(lambda wanted: np.frombuffer(bits * wanted, dtype="<u8"), np.uint64(7), (4,))
    assert found.tolist() == [6, 6, 6, 6]
