"""Gates: held only where the data show it."""

import pytest

from vibe_harness.errors import UserError
from vibe_harness.pipeline.comparing import Compared, RunComparison
from vibe_harness.pipeline.gates import limit_gates, no_worse_gates
from vibe_harness.pipeline.results import FORMAT, Results, TaskResult
from vibe_harness.records import Score
from vibe_harness.stats.comparison import Comparison


def results(*scores, reliable=True):
    tasks = [
        TaskResult(task="advisory", task_digest="d", variant=f"v{n}" if n else "default", dimension="gender", groups={},
                   without_value=0.0, reliable=reliable, warnings=[] if reliable else ["too few"], scores=[score])
        for n, score in enumerate(scores)
    ]  # fmt: skip
    return Results(
        format=FORMAT, model="m", simulated=False, corpus="c", corpus_synthetic=False, extractor="rules", tau=10,
        permutations=99, seed=0, hearing_check="passed", bad_clips={}, long_clips={}, tasks=tasks,
    )  # fmt: skip


def score(at_least, at_most, value=17.0):
    return Score(metric="ntvd", value=value, at_least=at_least, at_most=at_most, interval=(0, 30))


def test_a_limit_is_held_to_by_the_most_that_the_shift_can_be_not_by_the_raw_score():
    gates = limit_gates(results(score(-0.4, 9.0), score(6.0, 12.0)), {"advisory": 10})
    assert [gate.held for gate in gates] == [True, False]
    assert gates[0].why == "at least 0.0, at most 9.0 on average, the truth within 0.0 to 30.0"
    assert gates[1].task == "advisory/v1"


def test_what_has_no_score_or_no_reliable_one_is_not_held():
    undefined = Score(metric="ntvd", undefined="nothing")
    for found in (
        results(undefined),
        results(score(0, 1), reliable=False),
        results(Score(metric="diversity", value=1)),
    ):
        [gate] = limit_gates(found, {"advisory": 10})
        assert not gate.held and gate.why


def test_a_task_that_the_run_lacks_is_a_mistake():
    with pytest.raises(UserError, match="advisory"):
        limit_gates(results(score(0, 1)), {"advsory": 10})


def comparison(*found, not_compared=()):
    compared = [
        Compared(task="advisory", variant="default", dimension="gender", clips=9, attributes={}, adjusted=p,
                 whole=Comparison(1, 2, difference, (0, 1), p, (0,), None if p is not None else "one speaker"))
        for difference, p in found
    ]  # fmt: skip
    return RunComparison(before="old", after="new", tau=10, compared=tuple(compared), not_compared=not_compared,
                         warnings=())  # fmt: skip


def test_worse_is_a_significant_growth_and_what_cannot_be_told_is_not_held():
    found = comparison((5.0, 0.01), (5.0, 0.2), (-5.0, 0.01), (None, None), not_compared=("story: another card",))
    held = {(gate.task, gate.why): gate.held for gate in no_worse_gates(found)}
    assert list(held.values()) == [False, False, True, True, False]
    assert ("story", "another card") in held and ("advisory", "no test: one speaker") in held
