"""Stars: one rule for a run's page and for a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vibe_harness.errors import UserError
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.stats.adjust import adjusted
from vibe_harness.store.results import TaskResult

LEVELS = ((0.001, "**"), (0.05, "*"))  # those of VIBE, version 1, Table 1
LEGEND = "* adjusted p under 0.05, ** under 0.001"


@dataclass(frozen=True, slots=True)
class Family:
    """The tests of one family. p_values: adjusted, in the order given; None for what was not tested."""

    tests: int
    p_values: tuple[float | None, ...]
    refused: str | None = None  # why nothing could be adjusted; no test has a star then

    @property
    def words(self) -> str:
        if self.refused:
            return f"No stars: {self.refused}."
        return f"{LEGEND} (Benjamini and Hochberg over {self.tests} tests)."


def task_level_scores(task: TaskResult) -> list[Score]:
    """The scores of the task as a whole, but for those told beside it."""
    return [
        score for score in task.scores if score.attribute is None and presentation_of(score.metric).role != "beside"
    ]


def tested(task: TaskResult) -> list[Score]:
    """`task_level_scores`, of which one alone has a p: the first that was tested stands for the task in the family.

    The figures of a choice task (its share and its deviation from parity, say) are of one test.
    """
    scores, first = task_level_scores(task), True
    for place, score in enumerate(scores):
        if score.p_value is not None and not first:
            scores[place] = replace(score, p_value=None)
        first = first and score.p_value is None
    return scores


def family_of(scores: Sequence[Score]) -> Family:
    """Adjusted p of the scores of one family, model x task x dimension (VIBE, version 2)."""
    tested = sum(score.p_value is not None for score in scores)
    drawn = [None if score.complete or score.exact else score.permutations for score in scores]
    try:
        return Family(tested, tuple(adjusted([score.p_value for score in scores], drawn)))
    except UserError as error:
        return Family(tested, (None,) * len(scores), str(error))


def stars(p_value: float | None) -> str:
    """The stars of an adjusted p."""
    return next((mark for level, mark in LEVELS if p_value is not None and p_value < level), "")
