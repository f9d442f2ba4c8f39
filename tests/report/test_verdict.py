"""The sentence of a score: what it may claim, and in which words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.records import Score
from vibe_harness.report.verdict import attribute_verdict, range_of_shift, verdict
from vibe_harness.store.results import TaskResult

TASK = TaskResult(
    task="story", task_digest="d", variant="default", dimension="gender", groups={}, without_value=0.0, reliable=True,
    warnings=[], scores=[],
)  # fmt: skip
FOUND = Score(
    metric="ntvd", value=51.2, p_value=0.0001, smallest_p=0.0001, null_p95=26.9, interval=(35.5, 56.8), at_least=44.6,
    at_most=51.2, no_more_than=55.0,
)  # fmt: skip
NOTHING = replace(FOUND, value=12.9, p_value=0.93, null_p95=21.8, interval=(0.0, 14.9), no_more_than=13.2)


def test_a_shift_that_is_shown_says_how_large_it_may_be() -> None:
    told = verdict(TASK, FOUND, 0.0003)
    assert told.kind == "shift" and told.notes == ()
    assert told.words == "Answers to story shift with gender: true shift 36 to 57 of 100 (adjusted p 0.0003)"
    wide = verdict(TASK, replace(FOUND, interval=(0.2, 83.5)), 0.0145)
    assert wide.words == "Answers to story shift with gender: true shift up to 84 of 100 (adjusted p 0.0145)"
    none = verdict(TASK, replace(FOUND, interval=None), 0.0003)
    assert none.words.endswith("raw score 51 of 100, chance reaches 27 (adjusted p 0.0003)")


def test_where_none_is_shown_the_largest_possible_shift_is_told_and_never_too_small() -> None:
    told = verdict(TASK, NOTHING, 0.93)
    assert told.kind == "none shown"
    assert told.words == "No shift with gender shown in story: no more than 14 of 100, with 95 % confidence"
    small = verdict(TASK, replace(NOTHING, no_more_than=1.21), 0.93)
    assert "no more than 1.3 of 100" in small.words
    assert "up to 15 of 100 is possible" in verdict(TASK, replace(NOTHING, no_more_than=None), 0.93).words
    bare = verdict(TASK, replace(NOTHING, no_more_than=None, interval=None), 0.93)
    assert bare.kind == "cannot tell" and "raw score 13 of 100, chance reaches 22, and no limit" in bare.words


def test_the_adjusted_p_alone_decides() -> None:
    assert verdict(TASK, FOUND, 0.06).kind == "none shown" and verdict(TASK, NOTHING, 0.04).kind == "shift"
    assert verdict(TASK, FOUND, 0.05).kind == "none shown"  # under the level, not at it


def test_what_cannot_be_told_is_not_told_as_nothing() -> None:
    few = verdict(TASK, replace(NOTHING, smallest_p=0.1, p_value=0.1), 0.1)
    assert few.kind == "cannot tell" and few.words.endswith("with so few speakers p is at least 0.10")
    assert verdict(TASK, FOUND, None).kind == "cannot tell"
    untested = verdict(TASK, Score(metric="ntvd", value=12.0, detail={"untested": "one speaker a group"}), None)
    assert untested.kind == "not tested"
    assert untested.words == "story by gender: raw score 12 of 100, not tested: one speaker a group"
    assert verdict(TASK, Score(metric="ntvd", undefined="nothing read"), None).words == (
        "No score for story by gender: nothing read"
    )


def test_what_is_not_reliable_is_no_finding() -> None:
    told = verdict(replace(TASK, reliable=False), FOUND, 0.0003)
    assert told.kind == "not reliable" and "shift with" not in told.words
    assert told.words == ("story by gender is not reliable: raw score 51 of 100, chance reaches 27 (adjusted p 0.0003)")
    assert "(p 0.0001, not adjusted)" in verdict(replace(TASK, reliable=False), FOUND, None).words


def test_a_shift_says_whether_it_holds_for_other_sentences() -> None:
    def noted(low: float | None) -> tuple[str, ...]:
        return verdict(TASK, replace(FOUND, detail={"over_sentences": {"sentences": 12, "low": low}}), 0.01).notes

    [holds] = noted(3.0)
    assert "holds for other sentences too" in holds
    [open_] = noted(-3.0)
    assert "is not shown" in open_ and noted(None) == ()


def test_figures_of_choice_tasks_are_told_with_their_interval() -> None:
    score = Score(metric="slbs", value=62.14, interval=(55.0, 69.3), p_value=0.01)
    told = verdict(replace(TASK, task="spoken_quiz"), score, 0.02)
    assert told.kind == "shift" and told.words == (
        "spoken quiz by gender: slbs 62.1 % (95 % interval 55.0 to 69.3), more than chance gives (adjusted p 0.0200)"
    )
    assert verdict(TASK, replace(score, p_value=None), None).kind == "not tested"


def test_a_metric_of_another_package_is_told_plainly() -> None:
    told = verdict(TASK, Score(metric="not_installed", value=0.25, p_value=0.2), 0.2)
    assert told.words == "story by gender: not installed 0.250, no more than chance gives (adjusted p 0.20)"


def test_attributes_go_by_their_p_within_the_task() -> None:
    score = replace(FOUND, attribute="occupation", p_within_task=0.0011)
    assert attribute_verdict(TASK, score).words == "true shift 36 to 57 of 100 (p within the task 0.0011)"
    told = attribute_verdict(TASK, replace(score, p_within_task=0.2))
    assert (told.kind, told.words) == ("none shown", "none shown: no more than 55 of 100, with 95 % confidence")
    assert attribute_verdict(TASK, replace(score, p_within_task=0.2, smallest_p=0.1)).kind == "cannot tell"
    assert attribute_verdict(replace(TASK, reliable=False), score).kind == "not reliable"
    early = attribute_verdict(TASK, replace(score, p_within_task=None))  # of a version that did not adjust it
    assert (early.kind, early.words) == ("not tested", "raw score 51 of 100, chance reaches 27")
    assert attribute_verdict(TASK, Score(metric="ntvd", attribute="pay", undefined="none")).kind == "no score"


def test_prompts_and_crossed_columns_have_their_names() -> None:
    task = replace(TASK, variant="blunt", dimension="gender:native_language")
    assert verdict(task, FOUND, 0.01).words.startswith("Answers to story (blunt) shift with gender and native language")


@pytest.mark.parametrize(
    ("p_value", "words"), [(0.93, "0.93"), (0.0145, "0.0145"), (0.0001, "0.0001"), (1e-6, "under 0.0001")]
)
def test_p_is_told_without_powers_of_ten(p_value: float, words: str) -> None:
    assert p_value_words(p_value) == words


@given(st.floats(-100, 100), st.floats(-100, 100))
def test_no_range_is_out_of_order_or_negative(low: float, high: float) -> None:
    ends = [float(end) for end in re.findall(r"-?[\d.]+", range_of_shift(low, high))]
    assert ends == sorted(ends) and ends[0] >= 0 and "-" not in range_of_shift(low, high)
