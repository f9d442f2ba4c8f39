"""Gates for a model team's own checks: whether a run's shift is under a limit, or no larger than another run's.

A limit is held to only where the data show it: what cannot be told does not pass. "No worse" is held only within a
margin that growth is shown not to exceed. Without a margin nothing can be shown: that no growth was found may be for
lack of data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vibe_harness.analysis.compare import Compared, RunComparison
from vibe_harness.errors import UserError
from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.records import Score
from vibe_harness.registry import did_you_mean
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.store.results import Results, TaskResult

Verdict = Literal["held", "not held", "cannot tell", "no growth found"]
EVERY_TASK = ""
"""The name under which a margin holds for all tasks that have none of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate on one task by one dimension of a run, and why it is held or not, in words.

    simulated: what is held says nothing of any model.
    """

    gate: str
    run: str
    model: str
    simulated: bool
    task: str
    dimension: str
    verdict: Verdict
    why: str

    @property
    def held(self) -> bool:
        return self.verdict == "held"


def limit_gates(results: Results, limits: Mapping[str, float], run: Path) -> list[Gate]:
    """Whether each task's shift is at most its limit, in every prompt and dimension of the results. limits: by task.

    Judged by the interval of the true shift: held where it ends at the limit or under it, not held where it begins over
    it. Else the run cannot tell, which does not pass either. Neither can it tell what has no interval, no reliable
    score, or an attribute without a score (but for one to which all answers say the same, which does not shift).
    Raises UserError for a task that the results lack.
    """
    known = {task.task for task in results.tasks}
    gates = []
    for name, limit in limits.items():
        if name not in known:
            raise UserError(f"--max-ntvd {name}={limit:g}: the run has no task '{name}'. {did_you_mean(name, known)}")
        for task in results.tasks:
            if task.task == name:
                verdict, why = _under(task, limit)
                gates.append(
                    Gate(
                        gate=f"max-ntvd {limit:g}",
                        run=str(run),
                        model=results.model,
                        simulated=results.simulated,
                        task=_named(task.task, task.variant),
                        dimension=task.dimension,
                        verdict=verdict,
                        why=why,
                    )
                )
    return gates


def _named(task: str, variant: str) -> str:
    return task if variant == "default" else f"{task}/{variant}"


def _under(task: TaskResult, limit: float) -> tuple[Verdict, str]:
    score = next((score for score in task.scores if score.metric == "ntvd" and score.attribute is None), None)
    if score is None:
        return "cannot tell", "its card does not ask for nTVD"
    if score.value is None:
        return "cannot tell", f"no score: {score.undefined}"
    if score.interval is None or score.at_most is None:
        return "cannot tell", f"nTVD {score.value:.1f}, without an interval: {score.detail.get('no_interval', 'none')}"
    low, high = score.interval
    shown = f"the true shift is within {low:.1f} to {high:.1f}"
    if not task.reliable:
        return "cannot tell", f"the score is not reliable ({shown}): {task.warnings[0]}"
    if low > limit:
        return "not held", shown
    if without := _without_score(task):
        return "cannot tell", f"{shown}, without {', '.join(without)}, which have no score"
    if high <= limit:
        return "held", shown
    return "cannot tell", f"{shown}; {_needed(score.at_most, high, limit)}"


def _without_score(task: TaskResult) -> list[str]:
    """Attributes that have no score, and of which it is not known that they do not shift."""
    parts = [score for score in task.scores if score.metric == "ntvd" and score.attribute is not None]
    return [str(part.attribute) for part in parts if part.value is None and not _one_answer(part)]


def _one_answer(part: Score) -> bool:
    """Whether every group gives answers, and all of them say the same."""
    kept = part.detail.get("kept_share_by_group", {})
    return part.detail.get("distinct_values") == 1 and bool(kept) and None not in kept.values()


def _needed(at_most: float, high: float, limit: float) -> str:
    """What it would take to bring the interval's upper end under the limit: its reach goes with 1 / sqrt(speakers)."""
    if at_most >= limit:
        return "more speakers would not show it to be under the limit, unless the shift is smaller than it seems"
    times = ((high - at_most) / (limit - at_most)) ** 2
    return _more_speakers(times)


def no_worse_gates(
    comparison: RunComparison,
    scored: tuple[Results, Results],
    before: Path,
    after: Path,
    margins: Mapping[str, float] | None = None,
) -> list[Gate]:
    """Whether each task's shift grew from the first run to the second by no more than its margin.

    margins: by task, under EVERY_TASK for the tasks that have none of their own. Held where the one-sided 95 % bound of
    the difference is at most the margin; not held where growth is shown (difference above 0, adjusted p under 0.05) and
    may exceed it; else the runs cannot tell. A task without a margin is never held: either growth is shown, or no
    growth is found.

    scored: the results of the two runs; before, after: their folders. What could not be compared or tested is not held,
    nor what is not reliable in one of them, nor an attribute that cannot be compared (but for one to which all answers
    of the second run say the same, which does not shift). Nor is anything held where the two are the same run.

    Raises UserError for a margin of a task that the first run lacks.
    """
    margins = margins or {}
    known = {task.task for results in scored for task in results.tasks}
    for name in margins.keys() - known - {EVERY_TASK}:
        raise UserError(
            f"--margin {name}={margins[name]:g}: the runs have no task '{name}'. {did_you_mean(name, known)}"
        )

    def gate(task: str, variant: str, dimension: str, margin: float | None, verdict: Verdict, why: str) -> Gate:
        within = "" if margin is None else f", margin {margin:g}"
        return Gate(
            gate=f"no-worse-than {before} ({comparison.before}){within}",
            run=str(after),
            model=comparison.after,
            simulated=scored[1].simulated,
            task=_named(task, variant),
            dimension=dimension,
            verdict=verdict,
            why=why,
        )

    gates = [
        gate(line.partition(":")[0], "default", "", None, "cannot tell", line.partition(": ")[2])
        for line in comparison.not_compared
    ]
    for one in comparison.compared:
        margin = margins.get(one.task, margins.get(EVERY_TASK))
        if comparison.same_run:
            verdict, why = _SAME
        else:
            verdict, why = _worse(one, [_scored(results, one) for results in scored], margin)
        gates.append(gate(one.task, one.variant, one.dimension, margin, verdict, why))
    return gates


_SAME: tuple[Verdict, str] = ("cannot tell", "the two are the same run: give the one before")


def _scored(results: Results, one: Compared) -> TaskResult | None:
    """What a run's results say of the task, prompt and dimension that are compared."""
    place = one.task, one.variant, one.dimension
    return next((task for task in results.tasks if (task.task, task.variant, task.dimension) == place), None)


def _worse(one: Compared, scored: Sequence[TaskResult | None], margin: float | None) -> tuple[Verdict, str]:
    found = one.whole
    if found.difference is None or found.interval is None or found.upper is None or one.adjusted is None:
        return "cannot tell", f"no test: {found.reason}"
    low, high = found.interval
    shown = f"{found.difference:+.1f} ({low:+.1f} to {high:+.1f}), adjusted p {p_value_words(one.adjusted)}"
    if unusable := _unusable(one, scored, shown):
        return "cannot tell", unusable
    within = margin is not None and found.upper <= margin
    if found.difference > 0 and one.adjusted < ALPHA and not within:
        return "not held", shown
    if left_out := _not_compared(one, scored[1]):
        return "cannot tell", f"{shown}, without {', '.join(sorted(left_out))}, which have no score in both runs"
    bound = f"{shown}; growth is at most {max(found.upper, 0.0):.1f} (one-sided 95 %)"
    if within:
        return "held", bound
    smallest = (
        f"{bound}; the smallest margin that these runs could hold is {math.ceil(10 * found.upper - 1e-9) / 10:.1f}"
    )
    if margin is None:
        return "no growth found", f"{smallest}: nothing is shown without --margin"
    return "cannot tell", f"{smallest}; {_needed_for_margin(found.difference, found.upper, margin)}"


def _unusable(one: Compared, scored: Sequence[TaskResult | None], shown: str) -> str | None:
    """Why the scores of the two runs are no ground for a verdict; None where they are."""
    for task, run in zip(scored, ("first", "second"), strict=True):
        if task is None:
            return f"the {run} run is not scored by {one.dimension}: score it so ({shown})"
        if not task.reliable:
            return f"the score of the {run} run is not reliable ({shown}): {task.warnings[0]}"
    return None


def _not_compared(one: Compared, after: TaskResult | None) -> set[str]:
    """Attributes without a score in both runs, but for those to which all answers of the second run say the same."""
    left_out = {name for index, name in enumerate(one.attributes) if index not in one.whole.attributes}
    parts = [score for score in after.scores if score.metric == "ntvd"] if after else []
    return left_out - {str(part.attribute) for part in parts if part.value is None and _one_answer(part)}


def _more_speakers(times: float) -> str:
    """A rough figure: the interval's reach is itself estimated."""
    shown = f"{math.ceil(times):,}" if times >= 10 else f"{math.ceil(10 * times) / 10:.1f}"
    return f"about {shown} times as many speakers are needed to tell"


def _needed_for_margin(difference: float, upper: float, margin: float) -> str:
    """What it would take to bring the bound of growth within the margin: its reach goes with 1 / sqrt(speakers)."""
    if difference >= margin:
        return "more speakers would not show it to be within the margin, unless the growth is smaller than it seems"
    times = ((upper - difference) / (margin - difference)) ** 2
    return _more_speakers(times)
