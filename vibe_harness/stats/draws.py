"""Null distributions of the permutation tests: scores under the null hypothesis, scaled to a common noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vibe_harness.stats.assignments import Design
from vibe_harness.stats.batched_ntvd import BatchedNtvd
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.residuals import residuals_of
from vibe_harness.stats.tables import Table

ALIKE = 0.2
"""Largest standard deviation of the speakers' numbers of answers, as a share of their mean, with which whole speakers
are permuted: draws are then about as precise as the data."""

UNLIKE_NOISE = 0.1
"""Largest p of the test for equal noise in all groups with which the tests of residuals are made too."""

OPEN = 0.2
"""p of the test with permuted speakers above which the tests of residuals are not needed."""

TIED = 1e-9
"""Spreads of noise that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Draws:
    """The null distribution of the attributes of a task and, last, of their mean (A + 1).

    observed: compared with `drawn` (B, A + 1); NaN for no test. NaN in `drawn` is a draw without a score. scale: factor
    from a draw to a score at the noise of the data. complete: whether the draws are all assignments. exchanged: whether
    whole speakers were permuted, and not residuals. effective: smallest effective number of speakers behind a group's
    noise.
    """

    observed: Floats
    drawn: Floats
    scale: Floats
    complete: bool = False
    exchanged: bool = False
    effective: Floats = field(default_factory=lambda: np.empty(0))


def null_draws(
    tasks: Sequence[Sequence[Table]],
    values: Sequence[Floats],
    design: Design,
    permutations: int,
    seed: int,
    *,
    studentised: bool,
) -> list[list[Draws]]:
    """The draws of each test that is made, for each task; see `permutation_test`. values: scores (A,)."""
    found: list[list[Draws]] = [[] for _ in tasks]
    unlike = [np.isfinite(np.append(value, _mean(value[None])[0])) for value in values]
    exchanged = [index for index, task in enumerate(tasks) if not studentised or all(map(speakers_alike, task))]
    own = _exchange([tasks[index] for index in exchanged], design, permutations, seed, studentised)
    for index, (draws, p_values) in zip(exchanged, own, strict=True):
        found[index].append(draws)
        larger = (draws.drawn >= draws.observed - TIED) | np.isnan(draws.drawn)
        unlike[index] &= (p_values <= UNLIKE_NOISE) & (larger.mean(axis=0) <= OPEN) & studentised
    for index, wanted in enumerate(unlike):
        if wanted.any() or not found[index]:
            found[index] += _residual(tasks[index], values[index], wanted, design, permutations, seed)
    return found


def speakers_alike(table: Table) -> bool:
    """Whether speakers have about as many answers, in one stratum of utterances."""
    number = table.counts.sum(axis=(1, 2))
    return table.degenerate or (len(table.weights) == 1 and float(number.std()) <= ALIKE * float(number.mean()))


def _mean(scores: Floats) -> Floats:
    """Mean (B,) over the attributes (B, A) that have a score; NaN where none has."""
    defined = np.isfinite(scores)
    total, number = np.where(defined, scores, 0.0).sum(axis=1), defined.sum(axis=1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _with_mean(scores: Floats) -> Floats:
    return np.concatenate([scores, _mean(scores)[:, None]], axis=1)


def _exchange(
    tasks: Sequence[Sequence[Table]], design: Design, permutations: int, seed: int, studentised: bool
) -> list[tuple[Draws, Floats]]:
    """For each task the draws in which whole speakers are exchanged, and p (A + 1) of the groups having one noise."""
    tables = [table for task in tasks for table in task]
    if not tables:
        nothing = np.full((1, 1), np.nan)
        return [(Draws(nothing[0], nothing, np.ones(1), effective=nothing[0]), np.ones(1)) for _ in tasks]
    batched = BatchedNtvd(tables, design.group_count, design.block)
    slices = _columns(tasks)
    data = batched.scores(design.groups[None, :], noise=studentised)
    spread = _task_means(data.spread, slices)
    ratios, unlike = [_over(data.score, data.noise)], np.zeros(spread.shape[1])
    complete = design.assignments() <= permutations
    noise = np.zeros(len(tables)) if complete else data.noise[0].copy()
    for block in design.blocks(permutations, seed):
        one = batched.scores(block, noise=studentised)
        ratios.append(_over(one.score, one.noise))
        noise += one.noise.sum(axis=0)
        unlike += (_task_means(one.spread, slices) >= spread - TIED).sum(axis=0)
    statistic = np.concatenate(ratios)
    draws = len(statistic) - 1
    usual = noise / (draws if complete else draws + 1)  # over all assignments or, once each, the draws and the data
    statistic *= np.where(usual > 0, usual, 1.0)
    p_values = unlike / draws if complete else (unlike + 1) / (draws + 1)
    found, start = [], 0
    for columns in slices:
        own = _with_mean(statistic[:, columns])
        scale = _scale(own[0], data.score[0, columns], data.noise[0, columns], usual[columns])
        tests = len(scale)
        found.append(
            (Draws(own[0], own[1:], scale, complete, True, np.full(tests, np.nan)), p_values[start : start + tests])
        )
        start += tests
    return found


def _columns(tasks: Sequence[Sequence[Table]]) -> list[slice]:
    """The columns of each task among those of all tasks."""
    ends = np.cumsum([len(task) for task in tasks]).tolist()
    return [slice(end - len(task), end) for end, task in zip(ends, tasks, strict=True)]


def _task_means(values: Floats, slices: Sequence[slice]) -> Floats:
    """The values (B, all attributes) with each task's mean after its own attributes."""
    return np.concatenate([_with_mean(values[:, columns]) for columns in slices], axis=1)


def _over(scores: Floats, noise: Floats) -> Floats:
    """Scores divided by their noise; unchanged if there is none, because speakers do not differ."""
    return np.divide(scores, noise, out=scores.copy(), where=noise > 0)


def _scale(observed: Floats, scores: Floats, noise: Floats, usual: Floats) -> Floats:
    """Factors (A + 1) from a draw to a score at the noise of the data. For the mean, the factor turns the statistic of
    the data into its score."""
    each = np.divide(noise, usual, out=np.ones_like(noise), where=usual > 0)
    mean = _mean(scores[None])[0]
    whole = mean / observed[-1] if observed[-1] > 0 else float(each.mean()) if len(each) else 1.0
    return np.append(each, whole)


def _residual(
    tables: Sequence[Table], values: Floats, wanted: Floats, design: Design, permutations: int, seed: int
) -> list[Draws]:
    """The draws with permuted and with sign-flipped residuals, for the wanted columns (A + 1)."""
    needed = np.isfinite(values) & (wanted[:-1] | wanted[-1])
    fitted = {column: residuals_of(tables[column], design) for column in np.flatnonzero(needed).tolist()}
    shape = (permutations, len(tables))
    permuted, flipped = np.full(shape, np.nan), np.full(shape, np.nan)
    effective = np.full(len(tables), np.nan)
    observed, noise, usual = np.full(len(tables), np.nan), np.ones(len(tables)), np.ones(len(tables))
    for column, residuals in fitted.items():
        noise[column], usual[column] = residuals.noise, residuals.usual_noise
        observed[column] = residuals.studentised(values[column], residuals.noise)
        effective[column] = residuals.effective.min()
    first = 0
    for places, signs in design.shuffles(permutations, seed):
        rows = slice(first, first + len(places))
        first += len(places)
        for column, residuals in fitted.items():
            permuted[rows, column] = residuals.studentised(*residuals.permuted(places))
            flipped[rows, column] = residuals.flipped(signs)
    fewest = np.append(effective, np.fmin.reduce(effective, initial=np.nan))

    def draws(data: Floats, drawn: Floats, scale: Floats) -> Draws:
        return Draws(np.where(wanted, _with_mean(data[None])[0], np.nan), _with_mean(drawn), scale, effective=fewest)

    return [
        draws(observed, permuted, _scale(_with_mean(observed[None])[0], values, noise, usual)),
        draws(values, flipped, np.ones(len(tables) + 1)),
    ]
