"""How alike the answers to one question are over conditions: entropy, APES and Fleiss' kappa (arXiv 2602.01030).

Answers are codes 0 .. K - 1 of what was chosen, whatever its letter; -1 is an answer that could not be read, which is
left out and never a category. All arrays have one entry an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.rng import Words, picks, random_words

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


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


def entropy(counts: Floats) -> Floats:
    """Shannon entropy with the number of options as base, over the last axis: -sum p log_K p, from 0 to 1.

    Equation 1. NaN where nothing was counted.
    """
    totals = counts.sum(axis=-1)
    numbers = np.arange(float(totals.max(initial=0)) + 1)
    logs = numbers * np.log(np.maximum(numbers, 1.0))  # n log n: -sum p log p = log N - sum n log n / N
    parts = logs[counts.astype(np.int64)].sum(axis=-1)
    found: Floats = np.full(totals.shape, np.nan)
    np.divide(logs[totals.astype(np.int64)] - parts, totals * np.log(counts.shape[-1]), out=found, where=totals > 0)
    return np.maximum(found, 0.0, out=found)


def question_entropies(answers: Answers) -> Floats:
    """Entropy (Q,) of each question over all its answers; NaN for one without a readable answer."""
    return entropy(_counts(answers, answers.question))


def level_entropies(answers: Answers) -> Floats:
    """Entropy (Q, L) of each question at each level; equation 2."""
    levels = _size(answers.level)
    cells = _counts(answers, answers.question * levels + answers.level, _size(answers.question) * levels)
    return entropy(cells.reshape(-1, levels, answers.options))


def apes(answers: Answers) -> Floats:
    """Average pairwise entropy shift (Q,): mean of |H_i - H_j| over the pairs of levels of each question; equation 3.

    NaN for a question with fewer than two levels that have an answer.
    """
    found = np.sort(level_entropies(answers), axis=1)  # NaN last
    levels = np.isfinite(found).sum(axis=1)
    # The sum over pairs of n sorted numbers is the sum of (2 r - n + 1) h_r, r from 0.
    signs = 2 * np.arange(found.shape[1]) - levels[:, None] + 1
    total = (np.nan_to_num(found) * signs).sum(axis=1)
    count = levels * (levels - 1) / 2
    mean: Floats = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
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


def resampled(questions: int, times: int, seed: int) -> Floats:
    """Weights (times, questions): how often each question stands in each bootstrap sample of the questions."""
    words = random_words(seed)
    drawn = [np.bincount(picks(words, questions, (questions,)), minlength=questions) for _ in range(times)]
    return np.array(drawn, dtype=np.float64)


def shuffled(answers: Answers, within: Codes, statistic: Callable[[Answers], float], times: int, seed: int) -> Floats:
    """The statistic (times,) of the answers shuffled among the entries that have one code of `within`.

    Within items: the variable is without effect. Within nothing (all codes alike): answers follow the same shares
    whatever is asked.
    """
    shuffle, found = _Shuffle(within, random_words(seed)), np.empty(times)
    for index in range(times):
        mixed = Answers(answers.answer[shuffle()], answers.question, answers.level, answers.item, answers.options)
        found[index] = statistic(mixed)
    return found


class _Shuffle:
    """Draws orders (n,) of entries that are shuffled among those of one code. Small groups of entries take one of all
    their orders at random; larger ones are sorted by random numbers, which takes several times as long."""

    LARGEST = 5

    def __init__(self, within: Codes, words: Words) -> None:
        self._words = words
        self._place = np.arange(len(within))
        sizes = np.bincount(within)[within] if len(within) else within
        order = np.argsort(within, kind="stable")
        self._small = []
        for size in range(2, self.LARGEST + 1):
            members = order[sizes[order] == size].reshape(-1, size)
            if len(members):
                self._small.append((members, np.array(list(permutations(range(size))))))
        large = np.flatnonzero(sizes > self.LARGEST)
        self._sorted = large[np.argsort(within[large], kind="stable")]
        # One number to sort by, twice as quick as two: the code in the first bits, a random rest without ties.
        self._first = np.uint64(max(_size(within) - 1, 0).bit_length())
        shift = np.uint64(64) - self._first
        self._high = within[large].astype(np.uint64) << shift if self._first else np.uint64(0)
        self._large = large

    def __call__(self) -> Codes:
        for members, orders in self._small:
            chosen = orders[picks(self._words, len(orders), (len(members),))]
            self._place[members] = np.take_along_axis(members, chosen, axis=1)
        if len(self._large):
            drawn = self._words(len(self._large)) >> self._first
            self._place[self._sorted] = self._large[np.argsort(self._high | drawn)]
        return self._place


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
