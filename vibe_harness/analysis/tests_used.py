"""Which test made the p of a finished run, and whether the test of version 0.1.0 was wrong there.

That version exchanged whole speakers and did not studentise: where speakers have unequal numbers of answers, its p was
too small or too large (docs/statistics.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from vibe_harness.metrics.frame_counts import attributes_of, speakers_of, value_counts
from vibe_harness.stats.draws import ALIKE
from vibe_harness.store.results import Results, TaskResult, read_verified_results
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.store.run_tables import read_frame

EARLIER = "speakers, not studentised (version 0.1.0)"
PERMUTED = ("ntvd", "refusal_ntvd")
"""Metrics whose p that test made."""


@dataclass(frozen=True, slots=True)
class TestsUsed:
    """The tests of one run, by name, and where the earlier one was wrong: task, prompt and dimension, and why."""

    tests: tuple[str, ...]
    affected: tuple[str, ...]


def test_of(task: TaskResult) -> str | None:
    """Name of the test that made the p of a task's scores; None where nothing was tested."""
    scores = [score for score in task.scores if score.metric in PERMUTED and score.p_value is not None]
    return next((score.test or EARLIER for score in scores), None)


def test_names(results: Results) -> tuple[str, ...]:
    """Names of the tests that made a run's p, sorted."""
    return tuple(sorted({name for task in results.tasks if (name := test_of(task)) is not None}))


def tests_used(folder: RunFolder) -> TestsUsed:
    """The tests of a run, and where the earlier one was wrong. Raises UserError for what is no finished run."""
    results = read_verified_results(folder)
    affected = []
    for task in results.tasks:
        if test_of(task) == EARLIER and (spread := _spread(folder, task)) > ALIKE:
            affected.append(
                f"{task.task}/{task.variant} by {task.dimension}: answers a speaker vary by {spread:.0%} of their mean"
            )
    return TestsUsed(test_names(results), tuple(affected))


def _spread(folder: RunFolder, task: TaskResult) -> float:
    """The largest standard deviation of the speakers' numbers of values, as a share of their mean, over attributes."""
    frame = read_frame(folder.observations, task.task, task.variant, task.dimension)
    speakers = speakers_of(frame)
    spreads = [0.0]
    for name in attributes_of(frame):
        _, counts = value_counts(frame[frame["attribute"] == name], speakers)
        totals = counts.sum(axis=1)
        if totals.sum():
            spreads.append(float(totals.std() / totals.mean()))
    return max(spreads)
