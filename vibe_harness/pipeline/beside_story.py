"""Free answers beside a forced choice: story nTVD and Spoken StereoSet's deviation from parity, model by model.

After table 2 of VIBE, version 1 (arXiv 2604.17248): the two come from different corpora, so ranks and tests are
compared and never the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vibe_harness.errors import UserError
from vibe_harness.pipeline.results import Results
from vibe_harness.records import Score
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.stats.agreement import Correlation, correlation, rank_agreement

FREE = ("story", "ntvd")  # task and metric
FORCED = ("spoken_stereoset", "parity_deviation")


@dataclass(frozen=True, slots=True)
class Beside:
    """One model: its two scores, None where a run has none."""

    model: str
    free: Score | None
    forced: Score | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """models: sorted by name. ranks, values: Spearman's and Pearson's correlation of the two scores over models.

    free_found, forced_found: models whose test has p under 0.05, not adjusted, as in the paper's table.
    """

    models: tuple[Beside, ...]
    ranks: Correlation
    values: Correlation
    free_found: int
    forced_found: int


def beside_story(runs: Sequence[Results], dimension: str = "gender") -> Comparison:
    """Compare the story task with Spoken StereoSet over the models of some runs, each asked in its first prompt.

    Raises UserError where a model has one of the two scores twice.
    """
    found: dict[str, dict[tuple[str, str], Score]] = {}
    for run in runs:
        seen = set()
        for result in run.tasks:
            for task, metric in (FREE, FORCED):
                if result.task != task or result.dimension != dimension or task in seen:
                    continue
                seen.add(task)  # the first prompt alone compares with what was published
                whole = [score for score in result.scores if score.metric == metric and score.attribute is None]
                if whole and (task, metric) in found.setdefault(run.model, {}):
                    raise UserError(f"'{run.model}' has two scores of {task} by {dimension}: leave one of the runs out")
                if whole:
                    found[run.model][task, metric] = whole[0]
    models = tuple(Beside(name, own.get(FREE), own.get(FORCED)) for name, own in sorted(found.items()))
    free, forced = (np.array([_value(score) for score in column]) for column in _columns(models))
    return Comparison(
        models=models,
        ranks=rank_agreement(free, forced),
        values=correlation(free, forced),
        free_found=sum(_significant(one.free) for one in models),
        forced_found=sum(_significant(one.forced) for one in models),
    )


def _columns(models: Sequence[Beside]) -> tuple[list[Score | None], list[Score | None]]:
    return [one.free for one in models], [one.forced for one in models]


def _value(score: Score | None) -> float:
    return float("nan") if score is None or score.value is None else score.value


def _significant(score: Score | None) -> bool:
    return score is not None and score.p_value is not None and score.p_value < ALPHA
