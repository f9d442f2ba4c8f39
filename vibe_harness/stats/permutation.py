"""Permutation tests of the shift: is it larger than when the groups are exchanged among whole speakers?

The default test is studentised: each draw's score is divided by its own noise, as that of the data is, so that the test
holds where speakers of one group have more answers than those of another, or groups are unlike in how much their
speakers differ (Janssen 1997; Chung and Romano 2013). The published tests compare the scores themselves; their units
are speakers (version 2 of VIBE) or single utterances (version 1).

All attributes, tasks and models are permuted together, with one matrix product for each block of assignments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.draws import Draws, null_draws
from vibe_harness.stats.ntvd import ONE_GROUP, Floats, standardised_ntvd
from vibe_harness.stats.stepdown import adjusted_p_values
from vibe_harness.stats.tables import Table

TOLERANCE = 1e-9
"""On the scale of 0 to 100. Two assignments whose scores differ by less are tied; rounding errors are below 1e-11."""

STUDENTISED = "studentised-speakers"
"""The name of the default test in results."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """A score with its permutation test.

    value is None where the score is undefined, p_value also where nothing could be permuted; `reason` says why.
    null_mean, null_p95: mean and 95th percentile over the assignments in which the score is defined, each brought to
    the noise of the data: what chance reaches.
    undefined_draws: assignments in which it is not; they count against significance (see `permutation_test`).
    effective_speakers: the fewest speakers, of any group, that the noise comes from, where the test had to go by
    residuals; None where whole speakers were exchanged.
    adjusted: p adjusted over the attributes of the task by the smallest p in each draw (Westfall and Young 1993); None
    for the mean, which is one test.
    level: how often this test rejects a true null at 0.05 in this design, where that was simulated (`stats.level`).
    """

    __test__ = False  # no class of tests

    value: float | None
    p_value: float | None = None
    null_mean: float | None = None
    null_p95: float | None = None
    undefined_draws: int = 0
    reason: str | None = None
    effective_speakers: float | None = None
    adjusted: float | None = None
    level: float | None = None


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """Tests of one task: each attribute, and the mean over the attributes that have a score.

    permutations: assignments looked at, all of them if `complete`. exact: all of them, and all speakers have as many
    answers, so that p is at most alpha in at most alpha of true nulls, whatever the answers. left_out: attributes
    missing from the mean -> reason. smallest_p: what p can come down to in this design. refused: why there is no test
    at all (scores are given all the same), else None.
    """

    attributes: tuple[TestResult, ...]
    mean: TestResult
    permutations: int
    complete: bool
    exact: bool
    left_out: dict[int, str]
    smallest_p: float = 1.0
    refused: str | None = None


def permutation_test(
    tables: Sequence[ArrayLike],
    groups: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    permutations: int = 10_000,
    seed: int = 0,
    studentised: bool = True,
) -> PermutationTest:
    """Tests whether the answers of the groups differ more than those of randomly exchanged speakers.

    tables: one for each attribute, (S, V) counts of value v in the answers of speaker s, already filtered by tau; or
    (S, H, V), split by strata of utterances, which are then directly standardised: P_g(v) = sum_h w_h P_g(v|h) with w_h
    the stratum's share of all counts. A stratum that lacks a group is left out.
    groups: (S,) codes. strata: (S,) codes; speakers are exchanged within their stratum only.
    studentised: the default test. False: the published ones, for tables (S, V).

    The null hypothesis of the studentised test is that the groups have the same expected shares, answers weighing
    alike. Where the speakers' numbers of answers vary by no more than a fifth of their mean (`draws.ALIKE`) and nothing
    is standardised, whole speakers are exchanged, and each score is divided by its noise, the root of the sum over the
    groups g and their speakers i of |c_i - n_i p|^2 / N_g^2, p the pooled shares. With equal numbers that is exact,
    whatever the answers, where speakers are exchangeable. p = (b + 1) / (m + 1), b of m draws being at least as large
    as the observed statistic; where there are at most `permutations` distinct assignments all are enumerated, and p is
    the share of them that is at least as large, the observed one among them. Where the groups are unlike in noise, and
    for other numbers of answers, the tests of `stats.residuals` are made, and the largest p is given.

    A draw that leaves a group without any value for an attribute has no score for it: it counts as at least as large,
    which keeps the test valid. The mean is taken over the attributes that have a score in that assignment, each
    studentised and then scaled by a noise that is the same for all assignments.

    Raises UserError for anything that is not a table of counts or a code.
    """
    return permutation_tests([tables], groups, strata, permutations=permutations, seed=seed, studentised=studentised)[0]


def permutation_tests(
    tasks: Sequence[Sequence[ArrayLike]],
    groups: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    permutations: int = 10_000,
    seed: int = 0,
    studentised: bool = True,
) -> list[PermutationTest]:
    """`permutation_test` for many tasks and models that heard the same speakers, with the same draws for all."""
    if permutations < 1:
        raise UserError(f"permutations: at least 1, not {permutations}")
    design = Design.of(groups, strata)
    tables = [[Table.of(table, design.groups.size) for table in task] for task in tasks]
    values = [np.array([_score(table, design) for table in task]) for task in tables]
    refused = _refusal(design)
    if refused is not None:
        return [_untested(task, design, value, refused) for task, value in zip(tables, values, strict=True)]
    drawn = null_draws(tables, values, design, permutations, seed, studentised=studentised)
    return [_test(task, design, value, own) for task, value, own in zip(tables, values, drawn, strict=True)]


def _refusal(design: Design) -> str | None:
    if design.group_count < 2:
        return ONE_GROUP
    if design.assignments() == 1:
        return "nothing can be permuted: every stratum of speakers holds one group only"
    return None


def _score(table: Table, design: Design) -> float:
    """nTVD of the data; NaN where there is none."""
    by_group = np.zeros((design.group_count, *table.counts.shape[1:]), dtype=np.int64)
    np.add.at(by_group, design.groups, table.counts)
    return standardised_ntvd(by_group)


def _untested(tables: Sequence[Table], design: Design, values: Floats, refused: str) -> PermutationTest:
    reasons, mean, left_out = _undefined(tables, design, values)
    results = [
        TestResult(None, reason=reason) if np.isnan(value) else TestResult(float(value), reason=refused)
        for value, reason in zip(np.append(values, mean), reasons, strict=True)
    ]
    return PermutationTest(tuple(results[:-1]), results[-1], 0, False, False, left_out, refused=refused)


def _test(tables: Sequence[Table], design: Design, values: Floats, draws: Sequence[Draws]) -> PermutationTest:
    reasons, mean, left_out = _undefined(tables, design, values)
    results = tuple(
        _result(float(value), column, reason, draws)
        for column, (value, reason) in enumerate(zip(np.append(values, mean), reasons, strict=True))
    )
    adjusted = _adjusted(draws)
    attributes = [
        replace(one, adjusted=float(p_value)) if np.isfinite(p_value) and one.p_value is not None else one
        for one, p_value in zip(results[:-1], adjusted, strict=True)
    ]
    first = draws[0]
    numbers = [table.counts.sum(axis=(1, 2)) for table in tables if not table.degenerate]
    exact = first.complete and all((own == own[0]).all() for own in numbers)
    return PermutationTest(
        tuple(attributes), results[-1], len(first.drawn), first.complete, exact, left_out, _smallest_p(design, draws)
    )


def _adjusted(draws: Sequence[Draws]) -> Floats:
    """p (A,) adjusted over the attributes, the largest of those that each test gives; NaN where none does."""
    each = [adjusted_p_values(own.observed[:-1], own.drawn[:, :-1], own.complete) for own in draws]
    return np.asarray(np.fmax.reduce(each))


def _smallest_p(design: Design, draws: Sequence[Draws]) -> float:
    """Exchanged speakers are limited by their number; residuals by the signs that they can have besides.

    Residuals could come to a smaller p with few speakers, yet no test of so few holds its level there: what the
    exchange of speakers can reach is the limit for both.
    """
    permutations = max(len(own.drawn) for own in draws)
    smallest = design.smallest_p(permutations)
    if any(own.exchanged for own in draws):
        return smallest
    return max(1 / (permutations + 1), 2.0 ** (1 - design.groups.size), smallest)


def _undefined(tables: Sequence[Table], design: Design, values: Floats) -> tuple[list[str], float, dict[int, str]]:
    """Why each attribute, and at last the mean, would be without a score; the mean; and the attributes left out."""
    reasons = [table.why_undefined(design.group_count) for table in tables]
    left_out = {column: reasons[column] for column, value in enumerate(values) if np.isnan(value)}
    mean = float(np.nanmean(values)) if len(left_out) < len(tables) else float("nan")
    return [*reasons, "; ".join(sorted(set(left_out.values()))) or "no attribute"], mean, left_out


def _result(value: float, column: int, reason: str, draws: Sequence[Draws]) -> TestResult:
    """The test of one column whose p is the largest; what chance reaches is the most that any test gives."""
    if np.isnan(value):
        return TestResult(None, reason=reason)
    results = [_one_result(value, column, own) for own in draws if np.isfinite(own.observed[column])]
    largest = max(results, key=lambda result: result.p_value or 0.0)
    upper = [result.null_p95 for result in results if result.null_p95 is not None]
    effective = [own.effective[column] for own in draws if np.isfinite(own.observed[column] + own.effective[column])]
    return replace(
        largest,
        null_p95=max(upper, default=None),
        effective_speakers=float(min(effective)) if effective else None,
    )


def _one_result(value: float, column: int, draws: Draws) -> TestResult:
    drawn = draws.drawn[:, column]
    defined = drawn[np.isfinite(drawn)]
    missing = len(drawn) - len(defined)
    extreme = int((defined >= draws.observed[column] - TOLERANCE).sum()) + missing
    scale = float(draws.scale[column])
    return TestResult(
        value=value,
        p_value=extreme / len(drawn) if draws.complete else (extreme + 1) / (len(drawn) + 1),
        null_mean=float(defined.mean()) * scale if len(defined) else None,
        null_p95=float(np.percentile(defined, 95)) * scale if len(defined) else None,
        undefined_draws=missing,
    )
