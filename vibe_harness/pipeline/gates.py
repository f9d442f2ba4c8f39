"""Gates for a model team's own checks: whether a run's shift is under a limit, or no larger than another run's.

A gate is held only where the data show it: what cannot be told does not pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vibe_harness.errors import UserError
from vibe_harness.pipeline.comparing import RunComparison
from vibe_harness.pipeline.results import Results, TaskResult
from vibe_harness.registry import did_you_mean
from vibe_harness.stats.adjust import ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate on one task by one dimension, and why it is held or not, in words."""

    gate: str
    task: str
    dimension: str
    held: bool
    why: str


def limit_gates(results: Results, limits: Mapping[str, float]) -> list[Gate]:
    """Whether each task's shift is at most its limit, in every prompt and dimension of the results. limits: by task.

    Judged by the upper end of the bracket, the most that the true shift is on average: the raw score is above 0 even
    without a shift. Raises UserError for a task that the results lack.
    """
    known = {task.task for task in results.tasks}
    gates = []
    for name, limit in limits.items():
        if name not in known:
            raise UserError(f"--max-ntvd {name}={limit:g}: the run has no task '{name}'. {did_you_mean(name, known)}")
        for task in results.tasks:
            if task.task == name:
                held, why = _under(task, limit)
                gates.append(
                    Gate(gate=f"max-ntvd {limit:g}", task=_named(task), dimension=task.dimension, held=held, why=why)
                )
    return gates


def _named(task: TaskResult) -> str:
    return task.task if task.variant == "default" else f"{task.task}/{task.variant}"


def _under(task: TaskResult, limit: float) -> tuple[bool, str]:
    score = next((score for score in task.scores if score.metric == "ntvd" and score.attribute is None), None)
    if score is None:
        return False, "its card does not ask for nTVD"
    if score.at_most is None:
        return False, f"no score: {score.undefined}"
    shown = f"at most {score.at_most:.1f}"
    if score.at_least is not None:
        shown = f"at least {max(score.at_least, 0.0):.1f}, {shown}"
    if score.interval is not None:
        shown += f" on average, the truth within {score.interval[0]:.1f} to {score.interval[1]:.1f}"
    left_out = score.detail.get("attributes_left_out")
    if left_out:
        shown += f"; without {', '.join(left_out)}, which have no score"
    if not task.reliable:
        return False, f"the score is not reliable ({shown}): {task.warnings[0]}"
    return score.at_most <= limit, shown


def no_worse_gates(comparison: RunComparison) -> list[Gate]:
    """Whether no task's shift grew from the first run to the second: not with an adjusted p under 0.05.

    What could not be compared or tested is not held.
    """
    name = f"no-worse-than {comparison.before}"
    gates = [
        Gate(gate=name, task=line.partition(":")[0], dimension="", held=False, why=line.partition(": ")[2])
        for line in comparison.not_compared
    ]
    for one in comparison.compared:
        found = one.whole
        if found.difference is None or one.adjusted is None:
            held, why = False, f"no test: {found.reason}"
        else:
            worse = found.difference > 0 and one.adjusted < ALPHA
            held, why = not worse, f"{found.difference:+.1f} (adjusted p {one.adjusted:.4f})"
        gates.append(Gate(gate=name, task=one.task, dimension=one.dimension, held=held, why=why))
    return gates
