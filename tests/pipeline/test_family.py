"""Many runs at once, each figure worked out by hand."""

import math

import pytest

from vibe_harness.errors import UserError
from vibe_harness.pipeline.family import (
    common_scores,
    corpora_agreement,
    readings_of,
    task_agreement,
    tau_agreement,
    with_adjusted,
)
from vibe_harness.pipeline.results import FORMAT, Results, TaskResult
from vibe_harness.records import Score


def task(name, attributes, p=0.01, card="d", variant="default", by_tau=None, permutations=9_999):
    """A task's result: the nTVD of its attributes, and p and tau study of the whole."""
    mean = sum(attributes.values()) / len(attributes) if attributes else None
    whole = Score(metric="ntvd", value=mean, undefined=None if attributes else "nothing", p_value=p,
                  permutations=permutations, exact=False, detail={"by_tau": by_tau or {"10": mean}})  # fmt: skip
    parts = [Score(metric="ntvd", attribute=key, value=value) for key, value in attributes.items()]
    other = Score(metric="diversity", value=2.0)
    return TaskResult(task=name, task_digest=card, variant=variant, dimension="accent", groups={}, without_value=0.0,
                      reliable=True, warnings=[], scores=[whole, *parts, other])  # fmt: skip


def run(model, tasks, corpus="one"):
    return Results(
        format=FORMAT, model=model, simulated=False, corpus=corpus, corpus_synthetic=False, extractor="rules", tau=10,
        permutations=9_999, seed=0, hearing_check="passed", bad_clips={}, tasks=tasks,
    )  # fmt: skip


def test_adjusted_over_model_task_dimension_and_corpus():
    runs = [
        run("a", [task("story", {"x": 1}, 0.01), task("casting", {"x": 1}, 0.04)]),
        run("b", [task("story", {"x": 1}, 0.03), task("casting", {}, None)]),
        run("b", [task("story", {"x": 1}, 0.02)], "two"),
    ]
    # Four tests: p x 4 / rank is 0.04 for each, and the task without a test is not of the family.
    found = with_adjusted(readings_of(runs))
    assert [reading.adjusted for reading in found] == [
        pytest.approx(0.04), pytest.approx(0.04), pytest.approx(0.04), None, pytest.approx(0.04),
    ]  # fmt: skip


def test_too_few_permutations_for_the_family_are_refused():
    runs = [run(f"m{n}", [task("story", {"x": 1}, permutations=99)]) for n in range(5)]
    with pytest.raises(UserError, match="--permutations 100"):
        with_adjusted(readings_of(runs))


def test_the_first_wording_counts_and_no_place_is_filled_twice():
    one = run("a", [task("story", {"x": 1}), task("story", {"x": 9}, variant="bedtime")])
    assert [reading.score.value for reading in readings_of([one])] == [1]
    with pytest.raises(UserError, match="'a' on 'one'"):
        readings_of([one, one])
    with pytest.raises(UserError, match="two different cards, of 'a' and of 'b'"):
        readings_of([one, run("b", [task("story", {"x": 1}, card="other")])])


def test_columns_are_means_over_the_attributes_that_all_have():
    runs = [
        run("a", [task("story", {"x": 1, "y": 5})]),
        run("b", [task("story", {"x": 2})]),
        run("c", [task("story", {})]),
    ]
    first, second, third = common_scores(readings_of(runs))
    assert (first, second) == (1, 2) and math.isnan(third)


def test_ranks_on_two_corpora_and_correlation_of_tasks_by_hand():
    scores = {"a": (1, 10, 1), "b": (2, 30, 2), "c": (3, 20, 4), "d": (4, 40, 6)}
    runs = [run(m, [task("story", {"x": s}), task("casting", {"x": c})]) for m, (s, _, c) in scores.items()]
    runs += [run(m, [task("story", {"x": s})], "two") for m, (_, s, _) in scores.items()]
    [corpora] = corpora_agreement(readings_of(runs))
    # Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 x 2 / (4 x 15)
    assert (corpora.first, corpora.second, corpora.where) == ("one", "two", "story by accent")
    assert corpora.found.value == pytest.approx(0.8) and corpora.found.models == 4
    [tasks] = task_agreement(readings_of(runs))
    # 1 2 3 4 with 1 2 4 6: covariance 8.5, sums of squares 5 and 14.75
    assert (tasks.first, tasks.second) == ("casting", "story")
    assert tasks.found.value == pytest.approx(8.5 / math.sqrt(5 * 14.75))


def test_ranks_over_tau_by_hand():
    by_tau = {"a": (1, 9), "b": (2, 7), "c": (3, 8)}
    runs = [run(m, [task("story", {"x": ten}, by_tau={"10": ten, "50": fifty})]) for m, (ten, fifty) in by_tau.items()]
    found = tau_agreement(readings_of(runs))["story by accent on one"]
    assert found[10].value == pytest.approx(1) and found[50].value == pytest.approx(-0.5)  # 1 - 6 x 6 / (3 x 8)
    old = run("d", [task("story", {"x": 1}, by_tau={"1": 1.0})])
    with pytest.raises(UserError, match="'d' on 'one' has no scores by tau"):
        tau_agreement(readings_of([*runs, old]))
