"""Permutation tests of the shift: is it larger than when the groups are exchanged among whole speakers?

One engine for both published levels. The rows that are exchanged are speakers (version 2 of VIBE, the default) or
single utterances (version 1). All attributes, tasks and models are permuted together, with one matrix product for each
block of assignments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vibe_harness.errors import UserError
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.engine import Engine
from vibe_harness.stats.ntvd import ONE_GROUP, Floats
from vibe_harness.stats.tables import Table

TOLERANCE = 1e-9
"""On the scale of 0 to 100. Two assignments whose scores differ by less are tied; rounding errors are below 1e-11."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A score with its permutation test.

    value is None where the score is undefined, p_value also where nothing could be permuted; `reason` says why.
    null_mean, null_p95: mean and 95th percentile over the assignments in which the score is defined.
    undefined_draws: assignments in which it is not; they count against significance (see `permutation_test`).
    """

    value: float | None
    p_value: float | None = None
    null_mean: float | None = None
    null_p95: float | None = None
    undefined_draws: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """Tests of one task: each attribute, and the mean over the attributes that have a score.

    permutations: assignments looked at, all of them if `exact`. left_out: attributes missing from the mean -> reason.
    refused: why there is no test at all (scores are given all the same), else None.
    """

    attributes: tuple[Tested, ...]
    mean: Tested
    permutations: int
    exact: bool
    left_out: dict[int, str]
    refused: str | None = None


def permutation_test(
    tables: Sequence[ArrayLike],
    groups: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    permutations: int = 10_000,
    seed: int = 0,
) -> PermutationTest:
    """Tests whether the answers of the groups differ more than those of randomly exchanged speakers.

    tables: one for each attribute, (S, V) counts of value v in the answers of speaker s, already filtered by tau; or
    (S, H, V), split by strata of utterances, which are then directly standardised: P_g(v) = sum_h w_h P_g(v|h) with w_h
    the stratum's share of all counts. A stratum that lacks a group is left out, in the data and in each draw; the
    draws' scores are brought to the precision that the data's spread over the strata allows (see `engine`).
    groups: (S,) codes. strata: (S,) codes; speakers are exchanged within their stratum only.

    p = (b + 1) / (m + 1), b of m draws being at least as large as the observed score; where there are at most
    `permutations` distinct assignments all are enumerated, and p is the share of them that is at least as large, the
    observed one among them.

    A draw that leaves a group without any value for an attribute has no score for it: it counts as at least as large,
    which keeps the test valid. The mean is taken over the attributes that have a score in that assignment, the same
    function of the assignment for the data and for each draw, so its test is exact too.

    Raises UserError for anything that is not a table of counts or a code.
    """
    return permutation_tests([tables], groups, strata, permutations=permutations, seed=seed)[0]


def permutation_tests(
    tasks: Sequence[Sequence[ArrayLike]],
    groups: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    permutations: int = 10_000,
    seed: int = 0,
) -> list[PermutationTest]:
    """`permutation_test` for many tasks and models that heard the same speakers, with the same draws for all."""
    if permutations < 1:
        raise UserError(f"permutations: at least 1, not {permutations}")
    design = Design.of(groups, strata)
    tables = [Table.of(table, design.groups.size) for task in tasks for table in task]
    engine = Engine(tables, design.group_count, design.block)
    scores, noise = engine.scores(design.groups[None, :])
    observed = scores[0]
    count = design.assignments()
    refused = _refusal(design, count)
    drawn = np.empty((0, len(tables)))
    if refused is None:
        drawn = np.concatenate([_drawn(*engine.scores(block), noise) for block in design.blocks(permutations, seed)])
    tests, start = [], 0
    for task in tasks:
        columns = slice(start, start + len(task))
        reasons = [table.why_undefined(design.group_count) for table in tables[columns]]
        tests.append(_test(observed[columns], drawn[:, columns], reasons, count <= permutations, refused))
        start += len(task)
    return tests


def _drawn(scores: Floats, noise: Floats, observed_noise: Floats) -> Floats:
    """Scores (B, A) of draws, brought to the precision of the data."""
    return scores * np.divide(observed_noise, noise, out=np.ones_like(noise), where=noise > 0)


def _refusal(design: Design, assignments: int) -> str | None:
    if design.group_count < 2:
        return ONE_GROUP
    if assignments == 1:
        return "nothing can be permuted: every stratum of speakers holds one group only"
    return None


def _test(observed: Floats, drawn: Floats, reasons: Sequence[str], exact: bool, refused: str | None) -> PermutationTest:
    upper = np.percentile(drawn, 95, axis=0) if len(drawn) else np.full(len(observed), np.nan)  # all at once: quicker
    attributes = tuple(
        _tested(value, drawn[:, column], exact, refused, reasons[column], float(upper[column]))
        for column, value in enumerate(observed)
    )
    left_out = {column: reasons[column] for column, test in enumerate(attributes) if test.value is None}
    nothing = "; ".join(sorted(set(left_out.values()))) or "no attribute"
    means = _mean(drawn)
    mean = _tested(_mean(observed[None, :])[0], means, exact, refused, nothing, _percentile(means))
    return PermutationTest(attributes, mean, len(drawn), exact and refused is None, left_out, refused)


def _mean(scores: Floats) -> Floats:
    """Mean (B,) over the attributes (B, A) that have a score; NaN where none has."""
    defined = np.isfinite(scores)
    total, number = np.where(defined, scores, 0.0).sum(axis=1), defined.sum(axis=1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _percentile(drawn: Floats) -> float:
    return float(np.percentile(drawn, 95)) if len(drawn) else float("nan")


def _tested(observed: float, drawn: Floats, exact: bool, refused: str | None, undefined: str, upper: float) -> Tested:
    """upper: the 95th percentile of the draws; NaN where some have no score."""
    if not np.isfinite(observed):
        return Tested(None, reason=undefined)
    if refused is not None:
        return Tested(float(observed), reason=refused)
    defined = drawn[np.isfinite(drawn)]
    missing = len(drawn) - len(defined)
    extreme = int((defined >= observed - TOLERANCE).sum()) + missing
    return Tested(
        value=float(observed),
        p_value=extreme / len(drawn) if exact else (extreme + 1) / (len(drawn) + 1),
        null_mean=float(defined.mean()) if len(defined) else None,
        null_p95=upper if not missing else _percentile(defined) if len(defined) else None,
        undefined_draws=missing,
    )
