"""How alike the answers to one question are over conditions: entropy, APES and Fleiss' kappa (arXiv 2602.01030).

Answers are codes 0 .. K - 1 of what was chosen, whatever its letter; -1 is an answer that could not be read, which is
left out and never a category. All arrays have one entry an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vibe_harness.stats.rng import Words, random_words, scaled

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

ELEMENTS = 1 << 17
"""Shuffled answers held at a time: few enough to stay in a core's cache."""


@dataclass(frozen=True, eq=False)
class Answers:
    """answer, question, level, item: (n,) codes. options: K.

    level: of the variable that is looked at. item: the question together with the other variables, within which answers
    differ by that variable alone.
    """

    answer: Codes
    question: Codes
    level: Codes
    item: Codes
    options: int

    def readable(self) -> Answers:
        """Those with a category."""
        kept = self.answer >= 0
        return Answers(self.answer[kept], self.question[kept], self.level[kept], self.item[kept], self.options)


def entropy(counts: ArrayLike) -> Floats:
    """Shannon entropy with the number of options as base, over the last axis: -sum p log_K p, from 0 to 1.

    Equation 1. NaN where nothing was counted.
    """
    counts = np.asarray(counts).astype(np.int64, copy=False)
    totals = counts.sum(axis=-1)
    numbers = np.arange(float(totals.max(initial=0)) + 1)
    logs = numbers * np.log(np.maximum(numbers, 1.0))  # n log n: -sum p log p = log N - sum n log n / N
    parts = logs[counts].sum(axis=-1)
    found: Floats = np.full(totals.shape, np.nan)
    np.divide(logs[totals] - parts, totals * np.log(counts.shape[-1]), out=found, where=totals > 0)
    return np.maximum(found, 0.0, out=found)


def question_entropies(answers: Answers) -> Floats:
    """Entropy (Q,) of each question over all its answers; NaN for one without a readable answer."""
    return entropy(_counts(answers, answers.question))


def level_entropies(answers: Answers) -> Floats:
    """Entropy (..., Q, L) of each question at each level; equation 2. `answers.answer` may be (B, n), several answers
    to the same questions: the entropies are then (B, Q, L)."""
    questions, levels, options = _size(answers.question), _size(answers.level), answers.options
    cell = (answers.question * levels + answers.level) * options
    several = np.atleast_2d(answers.answer)
    size = questions * levels * options
    place = several + cell
    place += np.arange(len(several))[:, None] * size
    counts = np.bincount(place.ravel(), minlength=len(several) * size)
    return entropy(counts.reshape(*answers.answer.shape[:-1], questions, levels, options))


def apes(answers: Answers) -> Floats:
    """Average pairwise entropy shift (..., Q): mean of |H_i - H_j| over the pairs of levels of each question; equation
    3. NaN for a question with fewer than two levels that have an answer. Shapes as for `level_entropies`."""
    found = np.sort(level_entropies(answers), axis=-1)  # NaN last
    levels = np.isfinite(found).sum(axis=-1)
    # The sum over pairs of n sorted numbers is the sum of (2 r - n + 1) h_r, r from 0.
    signs = 2 * np.arange(found.shape[-1]) - levels[..., None] + 1
    total = (np.nan_to_num(found) * signs).sum(axis=-1)
    count = levels * (levels - 1) / 2
    mean: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


@dataclass(frozen=True, eq=False)
class Agreement:
    """What kappa is made of, by question. ratings: (Q, K), how often each option was chosen. agreeing: (Q,), the sum of
    n_i P_i over the question's items."""

    ratings: Floats
    agreeing: Floats


def agreement(answers: Answers, modal: bool = False) -> Agreement:
    """Agreement of the levels of a variable, as raters of items; items with fewer than two levels are left out.

    n_i is the number of levels with an answer. Where a level holds several answers to one item (the accents of a
    language), each counts in part, so that P_i is the share of agreeing pairs of answers at different levels; `modal`
    takes the most frequent one instead, of equals the first, as the published package does. Equations 5 to 7.
    """
    levels, items, questions = _size(answers.level), _size(answers.item), _size(answers.question)
    there, cell = _present(answers.item * levels + answers.level)  # item and level with an answer
    if len(there) == len(cell):  # one answer each, which is most often so: no shares to work out
        raters = np.bincount(answers.item, minlength=items)
        ratings, alone = _counts(answers, answers.item, items), raters.astype(np.float64)
    else:
        counts = _counts(answers, cell, len(there))
        if modal:
            shares = (np.arange(answers.options) == counts.argmax(axis=1)[:, None]).astype(np.float64)
        else:
            shares = counts / counts.sum(axis=1, keepdims=True)
        item = there // max(levels, 1)
        raters, ratings = np.bincount(item, minlength=items), _sums(item, shares, items)
        alone = np.bincount(item, np.square(shares).sum(axis=1), items).astype(np.float64)
    pairs = np.square(ratings).sum(axis=1) - alone
    kept = raters > 1
    question = np.zeros(items, dtype=np.int64)
    question[answers.item] = answers.question
    agreeing = np.bincount(question[kept], pairs[kept] / (raters[kept] - 1), questions)
    return Agreement(_sums(question[kept], ratings[kept], questions), agreeing.astype(np.float64))


def pooled_kappa(parts: Agreement, weights: Floats | None = None) -> Floats:
    """Fleiss' kappa over all questions, as the paper's appendix C.4 defines it: equations 6 to 8.

    weights: (B, Q), how often each question counts, for a bootstrap; each once where None. Returns (B,); NaN where
    chance alone agrees wholly, or nothing was rated.
    """
    weights = np.ones((1, len(parts.agreeing))) if weights is None else weights
    ratings = weights @ parts.ratings
    return _kappa(ratings, weights @ parts.agreeing)


def averaged_kappa(parts: Agreement, weights: Floats | None = None) -> Floats:
    """The mean over questions of a kappa of each, as the published package has it; (B,), weights as `pooled_kappa`.

    A question on which all answers agree has no kappa and is left out, so the mean is over the others: it is about the
    same small negative number at any agreement.
    """
    weights = np.ones((1, len(parts.agreeing))) if weights is None else weights
    return weighted_mean(_kappa(parts.ratings, parts.agreeing), weights)


def _kappa(ratings: Floats, agreeing: Floats) -> Floats:
    total = ratings.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = ((ratings / total[:, None]) ** 2).sum(axis=1)
        found: Floats = np.where(chance < 1 - 1e-12, (agreeing / total - chance) / (1 - chance), np.nan)
    return found


def weighted_mean(values: Floats, weights: Floats) -> Floats:
    """Mean (B,) of values (Q,) with weights (B, Q), those that are NaN left out; NaN where none is left."""
    there = np.isfinite(values)
    total = weights[:, there].sum(axis=1)
    sums = weights[:, there] @ values[there]
    mean: Floats = np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0)
    return mean


def shuffled(answers: Answers, within: Codes, statistic: Callable[[Answers], Floats], times: int, seed: int) -> Floats:
    """The statistic (times,) of the answers shuffled among the entries that have one code of `within`.

    Within items: the variable is without effect. Within nothing (all codes alike): answers follow the same shares
    whatever is asked. statistic: is given answers of shape (B, n), and returns (B,).
    """
    shuffle, found = _Shuffle(answers.answer, within, random_words(seed)), np.empty(times)
    size = max(ELEMENTS // max(len(within), 1), 1)
    for first in range(0, times, size):
        mixed = shuffle(min(size, times - first))
        found[first : first + size] = statistic(
            Answers(mixed, answers.question, answers.level, answers.item, answers.options)
        )
    return found


def one_by_one(statistic: Callable[[Answers], float]) -> Callable[[Answers], Floats]:
    """A statistic of answers (n,) as one of answers (B, n), for `shuffled`."""

    def of_each(answers: Answers) -> Floats:
        rows = (Answers(row, answers.question, answers.level, answers.item, answers.options) for row in answers.answer)
        return np.array([statistic(one) for one in rows])

    return of_each


class _Shuffle:
    """Answers (n,) shuffled among the entries of one code. Small groups of entries take one of all their orders at
    random; larger ones are sorted by random numbers, which takes several times as long. Groups whose answers are all
    the same are passed over, with the numbers that they would have taken."""

    LARGEST = 5

    def __init__(self, answer: Codes, within: Codes, words: Words) -> None:
        self._answer, self._words = answer, words
        sizes = np.bincount(within)[within] if len(within) else within
        order = np.argsort(within, kind="stable")
        self._small, self._large = [], []
        for size in np.unique(sizes[sizes > 1]).tolist():
            members = order[sizes[order] == size].reshape(-1, size)
            given = answer[members]
            varied = np.flatnonzero((given != given[:, :1]).any(axis=1))
            if size <= self.LARGEST:
                orders = np.array(list(permutations(range(size))))
                self._small.append((len(members), varied, members[varied], given[varied][:, orders]))
            elif varied.size:
                self._large.append((members[varied], given[varied]))
        self._place = np.cumsum(sizes > self.LARGEST) - 1  # of an entry among the random numbers to sort by
        self._sorted = int((sizes > self.LARGEST).sum())
        # The code in the first bits, were all sorted at once; the random rest is what is sorted by.
        self._first = np.uint64(max(_size(within) - 1, 0).bit_length())

    def __call__(self, draws: int) -> Codes:
        """Answers (draws, n)."""
        wanted = sum(-(-number // 2) for number, *_ in self._small) + self._sorted
        random = self._words(draws * wanted).reshape(draws, wanted)
        mixed, start = np.tile(self._answer, (draws, 1)), 0
        for number, varied, members, orders in self._small:
            own = np.ascontiguousarray(random[:, start : start + -(-number // 2)]).view("<u4")[:, varied]
            start += -(-number // 2)
            mixed[:, members] = orders[np.arange(len(members)), scaled(own, orders.shape[1])]
        for members, given in self._large:
            drawn = random[:, start:][:, self._place[members]] >> self._first
            mixed[:, members] = np.take_along_axis(given[None], np.argsort(drawn, axis=-1), axis=-1)
        return mixed


def _counts(answers: Answers, cell: Codes, cells: int | None = None) -> Floats:
    """How often each option was chosen in each cell: (cells, K)."""
    size = (_size(cell) if cells is None else cells) * answers.options
    counts = np.bincount(cell * answers.options + answers.answer, minlength=size)
    return counts.reshape(-1, answers.options).astype(np.float64)


def _sums(cell: Codes, rows: Floats, cells: int) -> Floats:
    """Rows (n, K) added up by cell: (cells, K)."""
    sums: Floats = np.stack([np.bincount(cell, column, cells) for column in rows.T], axis=1)
    return sums


def _present(codes: Codes) -> tuple[Codes, Codes]:
    """The codes that occur, in order, and the place of each entry's code among them: `np.unique` without sorting."""
    occurs = np.bincount(codes) > 0
    return np.flatnonzero(occurs).astype(np.int64), (np.cumsum(occurs) - 1)[codes]


def _size(codes: Codes) -> int:
    return int(codes.max()) + 1 if len(codes) else 0
