"""Westfall and Young's step-down procedure: against loops, and by hand."""

import numpy as np
import pytest

from vibe_harness.stats.stepdown import StepDown, adjusted_p_values


def by_loops(observed: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """As Westfall and Young (1993), algorithm 4.1, states it. drawn: (M, B)."""
    order = sorted(range(observed.size), key=lambda one: -observed[one])
    found, least = np.zeros(observed.size), 0.0
    for rank, one in enumerate(order):
        rest = order[rank:]
        larger = sum(max(drawn[other, draw] for other in rest) >= observed[one] for draw in range(drawn.shape[1]))
        least = max(least, (larger + 1) / (drawn.shape[1] + 1))
        found[one] = least
    return found


def test_step_down_is_that_of_the_book_in_blocks_of_any_size() -> None:
    rng = np.random.default_rng(0)
    observed, drawn = np.abs(rng.normal(1, 1, 7)), np.abs(rng.normal(0, 1, (7, 60)))
    for sizes in ((60,), (1, 9, 50)):
        procedure, start = StepDown(observed), 0
        for size in sizes:
            procedure.add(drawn[:, start : start + size])
            start += size
        np.testing.assert_allclose(procedure.p_values(complete=False), by_loops(observed, drawn))


def test_by_hand_with_all_assignments() -> None:
    # Draws (3, 1), (0, 2), (1, 0), (2, 1); observed (2, 1), which is the last of them.
    procedure = StepDown(np.array([2.0, 1.0]))
    procedure.add(np.array([[3.0, 0.0, 1.0, 2.0], [1.0, 2.0, 0.0, 1.0]]))
    # Largest of both: 3, 2, 1, 2, three of four at least 2. The second alone: 1, 2, 0, 1, three of four at least 1.
    np.testing.assert_allclose(procedure.p_values(complete=True), [0.75, 0.75])


def test_infinite_statistics_are_larger_than_all_and_tied_with_each_other() -> None:
    procedure = StepDown(np.array([np.inf, 0.5]))
    procedure.add(np.array([[np.inf, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.6]]))
    np.testing.assert_allclose(procedure.p_values(complete=True), [0.25, 0.25])


def test_smallest_p_does_not_care_about_scales() -> None:
    rng = np.random.default_rng(1)
    observed, drawn = rng.normal(1, 1, 4), rng.normal(0, 1, (500, 4))
    plain = adjusted_p_values(observed, drawn, complete=False)
    scales = np.array([1.0, 1e6, 1e-6, 7.0])
    np.testing.assert_allclose(adjusted_p_values(observed * scales, drawn * scales, complete=False), plain)
    assert adjusted_p_values(observed[:1], drawn[:, :1], complete=False)[0] == pytest.approx(
        (1 + (drawn[:, 0] >= observed[0]).sum()) / 501
    )


def test_what_is_not_tested_stays_out_and_draws_without_a_score_count_against() -> None:
    observed = np.array([np.nan, 2.0])
    drawn = np.array([[9.0, 1.0], [9.0, np.nan], [9.0, 0.0]])
    found = adjusted_p_values(observed, drawn, complete=False)
    assert np.isnan(found[0]) and found[1] == pytest.approx(2 / 4)


@pytest.mark.parametrize("tests", [2, 20])
def test_one_or_more_false_findings_in_at_most_one_family_in_twenty(tests: int) -> None:
    rng, found = np.random.default_rng(2), []
    for _ in range(400):
        everything = np.abs(rng.normal(size=(100, tests)) + rng.normal(size=(100, 1)))
        found.append(adjusted_p_values(everything[0], everything[1:], complete=False).min() <= 0.05)
    assert np.mean(found) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
