"""Gates: held only where the data show it."""

from dataclasses import replace
from pathlib import Path

import pytest

from vibe_harness.analysis.compare import Compared, RunComparison
from vibe_harness.analysis.gates import limit_gates, no_worse_gates
from vibe_harness.errors import UserError
from vibe_harness.records import Score
from vibe_harness.stats.comparison import Comparison
from vibe_harness.store.results import FORMAT, Results, TaskResult


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


def score(low, high, at_most=9.0, **detail):
    return Score(metric="ntvd", value=17.0, at_least=low, at_most=at_most, interval=(low, high), detail=detail)


def limited(*scores, limit=10, reliable=True):
    return limit_gates(results(*scores, reliable=reliable), {"advisory": limit}, Path("new"))


def test_a_limit_is_held_to_only_where_the_whole_interval_is_under_it():
    gates = limited(score(0, 10.0), score(10.1, 30), score(2, 14))
    assert [gate.verdict for gate in gates] == ["held", "not held", "cannot tell"]
    assert [gate.held for gate in gates] == [True, False, False]
    assert gates[0].why == "the true shift is within 0.0 to 10.0"
    assert [gate.task for gate in gates] == ["advisory", "advisory/v1", "advisory/v2"]
    assert {(gate.run, gate.model) for gate in gates} == {("new", "m")}


def test_what_cannot_be_told_says_how_many_speakers_would_tell():
    # The interval reaches 10 over its bracket and has 5 to the limit: half the reach, four times the speakers.
    [gate] = limited(score(0, 15, at_most=5))
    assert gate.why.endswith("about 4.0 times as many speakers are needed to tell")
    [gate] = limited(score(0, 15, at_most=12))
    assert "more speakers would not" in gate.why


def test_what_has_no_score_or_no_interval_or_no_reliable_one_does_not_pass():
    undefined = Score(metric="ntvd", undefined="nothing")
    alone = Score(metric="ntvd", value=3.0, at_most=3.0, detail={"no_interval": "a single speaker"})
    for gates, said in (
        (limited(undefined, limit=100), "nothing"),
        (limited(alone, limit=100), "a single speaker"),
        (limited(score(0, 1), reliable=False), "too few"),
        (limited(Score(metric="diversity", value=1)), "does not ask"),
    ):
        [gate] = gates
        assert gate.verdict == "cannot tell" and said in gate.why


def part(**detail):
    return Score(metric="ntvd", attribute="activity", undefined="why", detail=detail)


@pytest.mark.parametrize(
    ("detail", "verdict"),
    [
        ({"distinct_values": 1, "kept_share_by_group": {"f": 1.0, "m": 1.0}}, "held"),  # all say the same: no shift
        ({"distinct_values": 9, "kept_share_by_group": {"f": 0.0, "m": 0.1}}, "cannot tell"),  # too rare to be kept
        ({"distinct_values": 1, "kept_share_by_group": {"f": 1.0, "m": None}}, "cannot tell"),  # one group is silent
        ({}, "cannot tell"),
    ],
)
def test_an_attribute_without_a_score_does_not_pass_in_silence(detail, verdict):
    found = results(score(0, 5))
    found = replace(found, tasks=[replace(found.tasks[0], scores=[score(0, 5), part(**detail)])])
    [gate] = limit_gates(found, {"advisory": 10}, Path("new"))
    assert gate.verdict == verdict and ("activity" in gate.why) == (verdict != "held")


def test_a_task_that_the_run_lacks_is_a_mistake():
    with pytest.raises(UserError, match="advisory"):
        limit_gates(results(score(0, 1)), {"advsory": 10}, Path("new"))


def comparison(*found, not_compared=(), upper=6.0, same_run=False):
    compared = [
        Compared(task="advisory", variant="default", dimension="gender", clips=9, adjusted=p,
                 attributes=dict.fromkeys(("activity", "mood")),
                 whole=Comparison(1, 2, difference, (0, 1), p, (0,), None if p is not None else "one speaker", upper))
        for difference, p in found
    ]  # fmt: skip
    return RunComparison(before="old", after="new", tau=10, compared=tuple(compared), not_compared=not_compared,
                         warnings=(), same_run=same_run)  # fmt: skip


def test_worse_is_a_significant_growth_and_what_cannot_be_told_does_not_pass():
    found = comparison((5.0, 0.01), (5.0, 0.2), (-5.0, 0.01), (None, None), not_compared=("story: another card",))
    gates = no_worse_gates(found, (with_mood(),) * 2, Path("runs/a"), Path("runs/b"))
    verdicts = [gate.verdict for gate in gates]
    assert verdicts == ["cannot tell", "not held", "no growth found", "no growth found", "cannot tell"]
    assert not any(gate.held for gate in gates)  # without a margin nothing can be shown
    assert (gates[0].task, gates[0].why) == ("story", "another card") and gates[4].why == "no test: one speaker"
    assert gates[1].why == "+5.0 (+0.0 to +1.0), adjusted p 0.0100"
    assert {(gate.gate, gate.run, gate.model) for gate in gates} == {("no-worse-than runs/a (old)", "runs/b", "new")}


def against(found, **margins):
    [gate] = no_worse_gates(found, (with_mood(),) * 2, Path("a"), Path("b"), margins.get("margins", margins))
    return gate


def test_a_margin_is_held_to_only_where_growth_beyond_it_is_excluded():
    assert against(comparison((1.0, 0.4), upper=5.0), advisory=5).verdict == "held"
    gate = against(comparison((1.0, 0.4), upper=5.01), advisory=5)
    assert gate.verdict == "cannot tell" and "the smallest margin that these runs could hold is 5.1" in gate.why
    # The bound reaches 8 over the difference, and has 4 to the margin: half the reach, four times the speakers.
    gate = against(comparison((1.0, 0.4), upper=9.0), advisory=5)
    assert gate.why.endswith("could hold is 9.0; about 4.0 times as many speakers are needed to tell")
    assert "more speakers would not" in against(comparison((5.0, 0.4), upper=9.0), advisory=5).why


def test_growth_that_is_shown_fails_unless_it_is_within_the_margin():
    assert against(comparison((3.0, 0.01), upper=6.0), advisory=5).verdict == "not held"
    gate = against(comparison((3.0, 0.01), upper=4.5), advisory=5)
    assert gate.verdict == "held" and gate.why.endswith("growth is at most 4.5 (one-sided 95 %)")


def test_a_margin_of_one_task_goes_before_that_of_all():
    found = comparison((1.0, 0.4), upper=6.0)
    assert against(found, margins={"": 10}).verdict == "held"
    gate = against(found, margins={"": 10, "advisory": 5})
    assert gate.verdict == "cannot tell" and gate.gate == "no-worse-than a (old), margin 5"
    with pytest.raises(UserError, match=r"--margin advsory=5: the runs have no task 'advsory'\. Did you mean"):
        against(found, advsory=5)


def test_a_run_is_not_held_against_itself():
    gate = against(comparison((0.0, 1.0), upper=0.0, same_run=True), advisory=5)
    assert gate.verdict == "cannot tell" and "the same run" in gate.why


@pytest.mark.parametrize("found", [comparison((None, None)), comparison((1.0, 0.2), upper=None)])
def test_what_has_no_test_or_bound_is_within_no_margin(found):
    assert against(found, advisory=100).verdict == "cannot tell"


ALL_SAY_THE_SAME = {"distinct_values": 1, "kept_share_by_group": {"f": 1.0, "m": 1.0}}


def with_mood(reliable=True, **detail):
    """Results in which the attribute "mood" has no score."""
    found = results(score(0, 5), reliable=reliable)
    mood = Score(metric="ntvd", attribute="mood", undefined="why", detail=detail or ALL_SAY_THE_SAME)
    return replace(found, tasks=[replace(found.tasks[0], scores=[score(0, 5), mood])])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (with_mood(reliable=False), with_mood(), "first run is not reliable"),
        (with_mood(), with_mood(reliable=False), "second run is not reliable (-5.0"),
        (with_mood(), replace(with_mood(), tasks=[]), "second run is not scored by gender"),
        (with_mood(), with_mood(distinct_values=9, kept_share_by_group={"f": 0.1, "m": 0.0}), "without mood"),
        (with_mood(), results(score(0, 5)), "without mood"),
    ],
)
def test_no_worse_is_not_told_of_a_run_whose_answers_failed_or_that_lacks_an_attribute(before, after, said):
    [gate] = no_worse_gates(comparison((-5.0, 0.01)), (before, after), Path("a"), Path("b"))
    assert gate.verdict == "cannot tell" and said in gate.why
