"""Whether a shift generalises to other sentences, with speakers and sentences as random factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.assignments import Codes, Design
from vibe_harness.stats.bracket import (
    cross_product,
    differences_from_mean,
    jackknife_parts,
    satterthwaite,
    speaker_halves,
)
from vibe_harness.stats.ntvd import Counts, Floats
from vibe_harness.stats.rng import Words, random_words

SPLITS = 20
FEWEST = 6
"""Fewest sentences from which the shift is generalised."""
MOST_LEFT_OUT = 40
"""Largest number of portions of sentences for the jackknife."""
TOO_FEW = f"fewer than {FEWEST} sentences were spoken in every group"
NOT_CROSSED = "too few speakers share a sentence to tell speakers from sentences"


@dataclass(frozen=True, slots=True)
class CrossedShift:
    """sentences: number of sentences spoken in every group. at_least: as in a bracket, for new sentences and new
    speakers. error: its standard error; freedom: degrees of freedom. None if `reason` says why."""

    sentences: int
    at_least: float | None = None
    error: float | None = None
    freedom: float | None = None
    reason: str | None = None

    def low(self, level: float = 0.95) -> float | None:
        """Lower end of the interval of the true score, at least 0."""
        from scipy.special import stdtrit

        if self.at_least is None or self.error is None or self.freedom is None:
            return None
        return float(np.clip(self.at_least - stdtrit(self.freedom, (1 + level) / 2) * self.error, 0, 100))


def crossed_shift(tables: Sequence[Counts], groups: Codes, *, splits: int = SPLITS, seed: int = 0) -> CrossedShift:
    """The cross-fitted score of a task with random speakers and random sentences.

    tables: for each attribute, counts (S, M, V) by speaker, sentence and value. groups: (S,).

    The speakers of each group are split into halves, and so are the sentences. Differences in one half of both are
    weighted by the signs of those in the other half of both, so that no speaker and no sentence is on both sides. A
    shift of these sentences only adds nothing on average. The variance is the sum of the jackknife variances over
    speakers and over sentences (or portions of them), which is at least that of two-way clustering, where the part that
    both share is subtracted (Cameron, Gelbach and Miller 2011).
    """
    design = Design.of(groups)
    spoken = np.stack([
        np.stack([table[groups == group].sum(axis=(0, 2)) > 0 for group in range(design.group_count)]).all(axis=0)
        for table in tables
    ]).all(axis=0)  # fmt: skip
    number = int(spoken.sum())
    if number < FEWEST:
        return CrossedShift(number, reason=TOO_FEW)
    kept = [table[:, spoken] for table in tables]
    words = random_words(seed)
    portions = _portions(number, words)
    values, by_speaker, by_portion = [], [], []
    for _ in range(splits):
        half, side = speaker_halves(design, words), _halved(number, words)
        found = [_scores(table, design, half, side, portions) for table in kept]
        values.append(np.mean([one[0] for one in found]))
        by_speaker.append(np.mean([one[1] for one in found], axis=0))
        by_portion.append(np.mean([one[2] for one in found], axis=0))
    usable = np.isfinite(values) & np.isfinite(by_speaker).all(axis=1) & np.isfinite(by_portion).all(axis=1)
    if not usable.any():
        return CrossedShift(number, reason=NOT_CROSSED)
    speakers = jackknife_parts(np.mean(np.array(by_speaker)[usable], axis=0), groups)
    sentences = jackknife_parts(np.mean(np.array(by_portion)[usable], axis=0), np.zeros(portions.max() + 1, np.int64))
    variance = float(speakers.sum() + sentences[0])
    if variance <= 0:
        return CrossedShift(number, reason="no answer differs from another")
    kinds = np.append(groups, np.full(portions.max() + 1, groups.max() + 1))  # sentences come last
    freedom = satterthwaite(np.append(speakers, sentences), kinds)
    return CrossedShift(number, float(np.mean(np.array(values)[usable])), float(np.sqrt(variance)), freedom)


def _portions(number: int, words: Words) -> Codes:
    """The portion of each sentence; portions have about equal size."""
    order = words(number).argsort(kind="stable")
    portions = np.empty(number, dtype=np.int64)
    portions[order] = np.arange(number) % min(number, MOST_LEFT_OUT)
    return portions


def _halved(number: int, words: Words) -> Codes:
    side = np.empty(number, dtype=np.int64)
    side[words(number).argsort(kind="stable")] = np.arange(number) % 2
    return side


def _scores(table: Counts, design: Design, half: Codes, side: Codes, portions: Codes) -> tuple[float, Floats, Floats]:
    """The cross-fitted score, with each speaker left out (S,), and with each portion of sentences left out (J,)."""
    speakers, sentences, values = table.shape
    parts = int(portions.max()) + 1
    place = np.zeros((sentences, parts * 2))
    place[np.arange(sentences), portions * 2 + side] = 1.0
    by_portion = (table.transpose(0, 2, 1).astype(np.float64) @ place).reshape(speakers, values, parts, 2)
    members = np.zeros((2, design.group_count, speakers))
    members[half, design.groups, np.arange(speakers)] = 1.0
    counted = np.einsum("hgs,svjk->jhkgv", members, by_portion, optimize=True)  # (J, halves, sides, G, V)
    cells = counted.sum(axis=0)
    without_speaker = np.repeat(cells[None], speakers, axis=0)
    without_speaker[np.arange(speakers), half, :, design.groups] -= by_portion.sum(axis=2).transpose(0, 2, 1)
    return float(_crossed(cells)), _crossed(without_speaker), _crossed(cells - counted)


def _crossed(cells: Floats) -> NDArray[np.float64]:
    """Score (...) of counts (..., 2, 2, G, V): the mean over the two pairs of disjoint halves."""
    totals = cells.sum(axis=-1, keepdims=True)
    shares = np.divide(cells, totals, out=np.full(cells.shape, np.nan), where=totals > 0)
    own = differences_from_mean(shares)
    first = cross_product(own[..., 0, 0, :, :], own[..., 1, 1, :, :])
    return (first + cross_product(own[..., 0, 1, :, :], own[..., 1, 0, :, :])) / 2
