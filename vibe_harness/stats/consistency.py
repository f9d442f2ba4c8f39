"""How alike the answers to one question are over conditions: entropy, APES and Fleiss' kappa (arXiv 2602.01030).

Answers are codes 0 .. K - 1 of what was chosen, whatever its letter; -1 is an answer that could not be read, which is
left out and never a category. All arrays have one entry an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.rng import random_words

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
    totals = counts.sum(axis=-1, keepdims=True)
    shares = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    logs = np.log(shares, out=np.zeros(counts.shape), where=shares > 0)
    found: Floats = -(shares * logs).sum(axis=-1) / np.log(counts.shape[-1])
    return found + 0.0  # no -0.0


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
    found = level_entropies(answers)
    shifts = np.abs(found[:, :, None] - found[:, None, :])
    first, second = np.triu_indices(found.shape[1], 1)
    pairs = shifts[:, first, second]
    there = np.isfinite(pairs)
    total = np.where(there, pairs, 0.0).sum(axis=1)
    count = there.sum(axis=1)
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
    counts = _counts(answers, cell, len(there))
    if modal:
        shares = (np.arange(answers.options) == counts.argmax(axis=1)[:, None]).astype(np.float64)
    else:
        shares = counts / counts.sum(axis=1, keepdims=True)
    item = there // max(levels, 1)
    raters, ratings = np.bincount(item, minlength=items), _sums(item, shares, items)
    pairs = np.square(ratings).sum(axis=1) - np.bincount(item, np.square(shares).sum(axis=1), items)
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


def shuffled(answers: Answers, within: Codes, statistic: Callable[[Answers], float], times: int, seed: int) -> Floats:
    """The statistic (times,) of the answers shuffled among the entries that have one code of `within`.

    Within items: the variable is without effect. Within nothing (all codes alike): answers follow the same shares
    whatever is asked.
    """
    words = random_words(seed)
    order = np.argsort(within, kind="stable")
    place, found = np.empty(len(order), dtype=np.int64), np.empty(times)
    # One number to sort by, twice as quick as two: the code in the first bits, a random rest without ties.
    first = np.uint64(max(_size(within) - 1, 0).bit_length())
    high = within.astype(np.uint64) << (np.uint64(64) - first) if first else np.uint64(0)
    for index in range(times):
        place[order] = np.argsort(high | (words(len(within)) >> first))
        mixed = Answers(answers.answer[place], answers.question, answers.level, answers.item, answers.options)
        found[index] = statistic(mixed)
    return found


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
