"""The scale of a forest plot: it holds all that is drawn, its ticks are round, and marks stand where they belong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.sound_results import TASK as SOUND
from vibe_harness.records import Score
from vibe_harness.report.forest import axis_for, ends_of, marks_of
from vibe_harness.report.shifts import Shift, ValueShares, figures_by_group, share_scale, shifts_of
from vibe_harness.store.results import TaskResult

FIGURES = st.lists(st.floats(0, 100), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([57.0, 26.9, 0.0], (0, 10, 20, 30, 40, 50, 60)),
        ([3.6, 1.2], (0, 1, 2, 3, 4)),
        ([100.0], (0, 20, 40, 60, 80, 100)),
        ([0.21, 0.29], (0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)),
        ([-12.0, 30.0], (-20, -10, 0, 10, 20, 30)),
    ],
)
def test_ticks_are_round_and_few(values: list[float], ticks: tuple[float, ...]) -> None:
    assert axis_for(values).ticks == pytest.approx(ticks)


def test_nothing_to_draw_still_has_a_scale() -> None:
    assert axis_for([]).ticks == axis_for([0.0, None]).ticks == (0, 20, 40, 60, 80, 100)
    assert axis_for([0.0], 0, 1).labels()[-1] == ("1.0", 100.0)
    assert axis_for([float("nan"), 5.0]).high == 5


@given(FIGURES)
def test_the_scale_holds_every_value_in_order(values: list[float]) -> None:
    axis = axis_for(values)
    assert axis.low <= min(values) and axis.high >= max(values) - 1e-6
    assert 2 <= len(axis.ticks) <= 8 and list(axis.ticks) == sorted(set(axis.ticks))
    places = [axis.place(value) for value in sorted(values)]
    assert places == sorted(places) and all(0 <= place <= 100 for place in places)
    assert len({label for label, _ in axis.labels()}) == len(axis.ticks)


def test_marks_stand_in_proportion() -> None:
    score = Score(metric="ntvd", value=25.0, interval=(10.0, 40.0), null_p95=20.0)
    marks = marks_of(score, axis_for([*ends_of([score]), 50.0]))
    assert (marks.low, marks.value, marks.high, marks.chance, marks.neutral) == (20, 50, 80, 40, None)
    assert marks.words == "raw score 25.0, 95 % interval 10.0 to 40.0, chance reaches 20.0"
    none = marks_of(Score(metric="ntvd", undefined="nothing"), axis_for([1.0]))
    assert (none.value, none.words) == (None, "no score")


def test_a_figure_shows_where_no_effect_lies() -> None:
    marks = marks_of(Score(metric="slbs", value=75.0), axis_for([100.0]))
    assert (marks.neutral, marks.words) == (50, "slbs 75.0")


def carrying(task: TaskResult, named: bool) -> TaskResult:
    def part(value: str, named_here: bool) -> dict[str, object]:
        return {"value": value, "adds": 1.0, "by_group": {g: {"difference": 1, "interval": None, "named": named_here}
                                                          for g in ("women", "men")}}  # fmt: skip

    detail = {
        "distribution": {"women": {"nurse": 0.4, "cook": 0.45, "judge": 0.15}, "men": {"nurse": 0.06, "cook": 0.94}},
        "contributions": [part("cook", False), part("nurse", named)],
    }
    return replace(task, scores=[Score(metric="ntvd", attribute="job", value=20.0, detail=detail)])


def test_named_values_stand_first_and_in_words() -> None:
    [shift] = shifts_of(carrying(SOUND, named=True))
    assert [row.value for row in shift.rows] == ["nurse", "cook", "judge"]
    assert [shift.words(row) for row in shift.named] == ["nurse: women 40 %, men 6 %"]
    assert shift.rows[2].shares == (0.15, 0.0)  # a value that one group never gave
    assert share_scale([shift]) == 1.0 and share_scale([]) == 1.0


def test_no_value_is_named_where_the_score_is_not_reliable_or_the_test_names_none() -> None:
    [shift] = shifts_of(carrying(replace(SOUND, reliable=False), named=True))
    assert shift.named == []
    [shift] = shifts_of(carrying(SOUND, named=False))
    assert shift.named == [] and shift.rows[0].value == "cook"


def test_of_many_groups_the_named_ones_are_told() -> None:
    groups = tuple(f"g{number}" for number in range(10))
    row = ValueShares("nurse", (0.5, *[0.1] * 8, 0.0), (True, *[False] * 8, True))
    shift = Shift("job", "job", groups, ("",) * 10, (row,), 0)
    assert shift.words(row) == "nurse: g0 50 %, g9 0 %, mean of the groups 13 %"
    assert not shift.as_bars


def test_figures_of_groups_are_shares_where_they_are_in_per_cent() -> None:
    accuracy = Score(metric="accuracy", value=60.0, detail={"by_group": {"women": 80.0, "men": 40.0}})
    entropy = Score(metric="question_entropy", value=0.3, detail={"by_group": {"women": 0.2, "men": 0.4}})
    lacking = Score(metric="slifs", value=0.3, detail={"by_group": {"women": 0.2}})
    shift = figures_by_group(replace(SOUND, scores=[entropy, accuracy, lacking]))
    assert shift is not None and [(row.value, row.shares) for row in shift.rows] == [("accuracy", (0.8, 0.4))]
    assert figures_by_group(replace(SOUND, scores=[entropy])) is None
