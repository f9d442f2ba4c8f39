"""Many runs looked at together: adjusted p-values, and whether tau, corpora and tasks rank the models alike.

Plain functions on the results of runs (`pipeline.results.read_results`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from vibe_harness.errors import UserError
from vibe_harness.pipeline.results import Results, TaskResult
from vibe_harness.records import Score
from vibe_harness.stats.adjust import ALPHA, adjusted
from vibe_harness.stats.agreement import Correlation, correlation, rank_agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The nTVD of one task by one dimension, of one model on one corpus; asked in the first wording of the run."""

    model: str
    corpus: str
    task: str
    task_digest: str
    dimension: str
    score: Score
    attributes: Mapping[str, float]  # attribute -> its nTVD, of those that have one
    by_tau: Mapping[int, float | None]  # tau -> the score with that threshold
    adjusted: float | None = None  # p over the family; see `with_adjusted`

    @property
    def place(self) -> tuple[str, str, str]:
        return self.corpus, self.task, self.dimension


def readings_of(runs: Sequence[Results]) -> list[Reading]:
    """The family of the runs' tests: one for each model, corpus, task and dimension.

    Raises UserError where two runs of one model have the same place, or where a task was asked with two cards: such
    figures are not of one family.
    """
    found: dict[tuple[str, ...], Reading] = {}
    digests: dict[str, tuple[str, str]] = {}
    for run in runs:
        first: dict[str, str] = {}
        for result in run.tasks:
            if first.setdefault(result.task, result.variant) != result.variant:
                continue
            reading = _reading(run, result)
            if reading is None:
                continue
            key = (run.model, *reading.place)
            if key in found:
                raise UserError(
                    f"two runs of '{run.model}' on '{run.corpus}' score {result.task} by {result.dimension}"
                )
            card, model = digests.setdefault(result.task, (result.task_digest, run.model))
            if card != result.task_digest:
                raise UserError(
                    f"the task '{result.task}' was asked with two different cards, of '{model}' and of '{run.model}': "
                    "their figures do not compare"
                )
            found[key] = reading
    return list(found.values())


def _reading(run: Results, result: TaskResult) -> Reading | None:
    scores = {score.attribute: score for score in result.scores if score.metric == "ntvd"}
    whole = scores.pop(None, None)
    if whole is None:
        return None  # the task's card does not ask for it
    return Reading(
        model=run.model,
        corpus=run.corpus,
        task=result.task,
        task_digest=result.task_digest,
        dimension=result.dimension,
        score=whole,
        attributes={name: score.value for name, score in scores.items() if name and score.value is not None},
        by_tau={int(tau): score for tau, score in whole.detail.get("by_tau", {}).items()},
    )


def with_adjusted(readings: Sequence[Reading], alpha: float = ALPHA) -> list[Reading]:
    """The readings with their p adjusted over all of them by Benjamini and Hochberg (`stats.adjust`).

    Raises UserError where a test drew too few permutations for so large a family.
    """
    p_values = [reading.score.p_value for reading in readings]
    drawn = [None if reading.score.exact else reading.score.permutations for reading in readings]
    return [
        replace(reading, adjusted=p_value)
        for reading, p_value in zip(readings, adjusted(p_values, drawn, alpha=alpha), strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How alike two columns of scores are over models; each score as `common_scores` has it."""

    first: str
    second: str
    where: str
    found: Correlation


def corpora_agreement(readings: Sequence[Reading]) -> list[Agreement]:
    """Spearman correlation of the models' ranks on every two corpora, for each task and dimension."""
    return _pairs(readings, lambda r: f"{r.task} by {r.dimension}", lambda r: r.corpus, rank_agreement)


def task_agreement(readings: Sequence[Reading]) -> list[Agreement]:
    """Pearson correlation over models of every two tasks, for each dimension and corpus."""
    return _pairs(readings, lambda r: f"{r.dimension} on {r.corpus}", lambda r: r.task, correlation)


def _pairs(
    readings: Sequence[Reading],
    where: Callable[[Reading], str],
    column: Callable[[Reading], str],
    measure: Callable[[Sequence[float], Sequence[float]], Correlation],
) -> list[Agreement]:
    found = []
    for place in sorted({where(reading) for reading in readings}):
        own = [reading for reading in readings if where(reading) == place]
        scores = common_scores(own)
        columns: dict[str, dict[str, float]] = {}
        for reading, score in zip(own, scores, strict=True):
            columns.setdefault(column(reading), {})[reading.model] = score
        models = sorted({reading.model for reading in own})
        for first, second in combinations(sorted(columns), 2):
            values = [[columns[name].get(model, np.nan) for model in models] for name in (first, second)]
            found.append(Agreement(first=first, second=second, where=place, found=measure(*values)))
    return found


def common_scores(readings: Sequence[Reading]) -> list[float]:
    """Each reading's mean nTVD over the attributes that every reading of its task by its dimension has, on any corpus.

    NaN where there are none. Means over different attributes would not compare.
    """
    shared: dict[tuple[str, str], set[str]] = {}
    for reading in readings:
        if reading.attributes:  # one without any score has no say in what the others are compared by
            own, key = set(reading.attributes), (reading.task, reading.dimension)
            shared[key] = shared.get(key, own) & own
    means = []
    for reading in readings:
        names = shared.get((reading.task, reading.dimension), set()) if reading.attributes else set()
        means.append(fmean(reading.attributes[name] for name in sorted(names)) if names else float("nan"))
    return means


def tau_agreement(readings: Sequence[Reading], reference: int = 10) -> dict[str, dict[int, Correlation]]:
    """For each "task by dimension on corpus": tau -> Spearman correlation of the models' ranks with those at tau 10.

    The scores themselves are in each reading's `by_tau`. Raises UserError where a run was scored by an older version,
    which did not look at other tau.
    """
    found: dict[str, dict[int, Correlation]] = {}
    for corpus, task, dimension in sorted({reading.place for reading in readings}):
        own = [reading for reading in readings if reading.place == (corpus, task, dimension)]
        for reading in own:
            if reference not in reading.by_tau:
                raise UserError(
                    f"the run of '{reading.model}' on '{corpus}' has no scores by tau: score it again with "
                    "`vibe-harness score`"
                )
        columns = {tau: [_number(reading.by_tau.get(tau)) for reading in own] for tau in own[0].by_tau}
        found[f"{task} by {dimension} on {corpus}"] = {
            tau: rank_agreement(scores, columns[reference]) for tau, scores in columns.items()
        }
    return found


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
