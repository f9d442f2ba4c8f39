"""Speakers and sentences both as random: what holds of some sentences alone is not taken for a shift."""

import numpy as np
import pytest

from vibe_harness.stats.assignments import Design
from vibe_harness.stats.bracket import bracket
from vibe_harness.stats.sentences import NOT_CROSSED, TOO_FEW, _crossed, _scores, crossed_shift
from vibe_harness.stats.simulation import Pattern, shifted, zipf


def simulated(rng: np.random.Generator, groups: np.ndarray, sentences: int, own: float, score: float) -> np.ndarray:
    """(S, M, V). own: share of the variance of a group's answers that hangs on the sentence."""
    base = shifted(zipf(6), int(groups.max()) + 1, score, Pattern.SPREAD)[:, None].repeat(sentences, axis=1)
    if own:
        base = np.maximum(rng.standard_gamma(base * (1 - own) / own), 1e-12)
        base /= base.sum(axis=-1, keepdims=True)
    habits = np.maximum(rng.standard_gamma(np.full((groups.size, 6), 15.0)), 1e-12)[:, None]
    shares = base[groups] * habits
    return np.asarray(rng.multinomial(6, shares / shares.sum(axis=-1, keepdims=True)))


def test_preferences_of_these_sentences_alone_are_no_shift_of_others() -> None:
    groups, rng, both, speakers = np.repeat([0, 1], [12, 12]), np.random.default_rng(0), [], []
    for run in range(40):
        table = simulated(rng, groups, 8, 0.3, 0)
        both.append(crossed_shift([table], groups, seed=run).low())
        around = bracket([table.sum(axis=1)], groups, seed=run).mean.interval
        assert around is not None
        speakers.append(around[0])
    assert np.mean(np.array(both, float) > 0) <= 0.05  # with speakers alone as random it is "shown" most of the time
    assert np.mean(np.array(speakers) > 0) > 0.5


def test_a_shift_that_all_sentences_share_is_shown_and_not_overstated() -> None:
    groups, rng, found = np.repeat([0, 1], [12, 12]), np.random.default_rng(1), []
    for run in range(15):
        shift = crossed_shift([simulated(rng, groups, 12, 0.05, 50)], groups, seed=run)
        found.append((shift.at_least, shift.low()))
    least, low = np.array(found, float).T
    assert 30 < least.mean() <= 52 and (low > 0).all() and (low <= 50).all()


def test_leaving_out_is_a_run_without() -> None:
    groups = np.repeat([0, 1, 2], 4)
    table = simulated(np.random.default_rng(2), groups, 7, 0.1, 20)
    half, side, portions = np.arange(12) % 2, np.arange(7) % 2, np.arange(7)
    score, speakers, sentences = _scores(table, Design.of(groups), half, side, portions)

    def written_out(kept: np.ndarray, asked: np.ndarray) -> float:
        cells = np.zeros((2, 2, 3, 6))
        for speaker in np.flatnonzero(kept):
            for sentence in np.flatnonzero(asked):
                cells[half[speaker], side[sentence], groups[speaker]] += table[speaker, sentence]
        return float(_crossed(cells))

    everyone, everything = np.ones(12, bool), np.ones(7, bool)
    assert score == pytest.approx(written_out(everyone, everything))
    for speaker in range(12):
        assert speakers[speaker] == pytest.approx(written_out(np.arange(12) != speaker, everything))
    for sentence in range(7):
        assert sentences[sentence] == pytest.approx(written_out(everyone, np.arange(7) != sentence))


def test_what_cannot_be_told_has_a_reason() -> None:
    groups, rng = np.repeat([0, 1], [4, 4]), np.random.default_rng(3)
    table = simulated(rng, groups, 8, 0.1, 0)
    few = crossed_shift([table[:, :5]], groups)
    assert (few.at_least, few.low(), few.reason) == (None, None, TOO_FEW)
    elsewhere = table.copy()
    elsewhere[groups == 0, :4] = 0  # half of the sentences were never asked of one group
    assert crossed_shift([elsewhere], groups).reason == TOO_FEW
    lone = crossed_shift([table[[0, 4]]], np.array([0, 1]))
    assert lone.low() is None and lone.reason == NOT_CROSSED
