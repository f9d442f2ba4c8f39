"""Values are named only where the attribute and the value have both passed a test over the whole task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import ntvd
from vibe_harness.metrics.value_details import level_of_named, named_values, value_rows
from vibe_harness.records import Score
from vibe_harness.stats.values import contributions

GROUPS = np.repeat([0, 1], [8, 8])
TABLE = np.random.default_rng(0).multinomial(20, [0.6, 0.3, 0.1], size=16)


def test_both_the_attribute_and_the_value_have_to_pass() -> None:
    found, small = contributions(TABLE, GROUPS), np.array([[0.01, 0.2, 0.05]] * 2)
    for attribute, expected in ((0.04, [True, False, True]), (0.06, [False] * 3), (None, [False] * 3)):
        [named] = named_values([found], [small], [attribute])
        assert named is not None and named.tolist() == [expected] * 2
    assert named_values([found], [None], [0.01]) == [None]


def test_intervals_of_the_values_named_are_wider_the_fewer_of_many_are_named() -> None:
    # Benjamini and Yekutieli: 1 - 0.05 R / m; of two groups one counts, so two of six values.
    named = [np.array([[True, False, True]] * 2), np.zeros((2, 3), bool), None]
    assert level_of_named(named) == pytest.approx(1 - 0.05 * 2 / 6)
    assert level_of_named([np.zeros((2, 3), bool)]) == 0.95
    assert level_of_named([np.eye(3, dtype=bool)]) == pytest.approx(1 - 0.05 * 3 / 9)  # of three groups all


def test_rows_hold_what_pages_show() -> None:
    found = contributions(TABLE, GROUPS)
    p_values, named = np.full((2, 3), 0.03), np.array([[True, False, False]] * 2)
    rows = value_rows(["x", "y", "z"], ["f", "m"], found, p_values, named, 0.99)
    assert sorted(row["value"] for row in rows) == ["x", "y", "z"]
    assert [row["adds"] for row in rows] == sorted((row["adds"] for row in rows), reverse=True)
    own = next(row for row in rows if row["value"] == "x")["by_group"]["f"]
    assert own["named"] and own["p_value"] == 0.03
    assert own["named_interval"][0] < own["interval"][0] < own["interval"][1] < own["named_interval"][1]
    other = next(row for row in rows if row["value"] == "y")["by_group"]["f"]
    assert not other["named"] and other["named_interval"] is None and other["interval"] is not None


def frame(shift: float, seed: int) -> pd.DataFrame:
    """Two attributes, ten speakers a group with twelve answers each; of one attribute a share moves to "nurse"."""
    rng, rows = np.random.default_rng(seed), []
    for group in "fm":
        for speaker in range(10):
            for answer in range(12):
                for attribute in ("job", "mood"):
                    value = str(rng.choice(["nurse", "chef", "judge", "pilot"]))
                    if attribute == "job" and group == "f" and rng.random() < shift:
                        value = "nurse"
                    rows.append({
                        "request": f"{group}{speaker}-{answer}", "clip": f"{answer}", "speaker": f"{group}{speaker}",
                        "group": group, "attribute": attribute, "outcome": "ok", "reading": "value", "raw": [value],
                        "values": [value], "sentence_id": f"s{answer}",
                    })  # fmt: skip
    return pd.DataFrame(rows)


def named_in(scores: list[Score]) -> set[tuple[str | None, str]]:
    return {
        (score.attribute, row["value"])
        for score in scores
        for row in score.detail.get("contributions", [])
        if any(one["named"] for one in row["by_group"].values())
    }


def test_with_a_shift_its_values_are_named_and_those_of_other_attributes_are_not() -> None:
    whole, job, mood = scores = ntvd(frame(0.5, 1), Settings(permutations=499))
    assert ("job", "nurse") in named_in(scores) and all(attribute == "job" for attribute, _ in named_in(scores))
    assert job.p_within_task is not None and job.p_value is not None and job.p_within_task >= job.p_value
    assert whole.p_within_task is None and mood.p_within_task is not None
    assert job.no_more_than is not None and job.interval is not None and job.no_more_than <= job.interval[1]
    assert whole.smallest_p == job.smallest_p == pytest.approx(1 / 500)
    over = whole.detail["over_sentences"]
    assert over["sentences"] == 12 and over["low"] > 0 and over["at_least"] < 60


@pytest.mark.slow
def test_without_a_shift_values_are_named_in_at_most_one_task_in_twenty() -> None:
    named = [bool(named_in(ntvd(frame(0.0, seed), Settings(permutations=99)))) for seed in range(2, 32)]
    assert np.mean(named) <= 0.1


def test_too_few_speakers_to_find_anything_is_in_the_score() -> None:
    made = frame(0.9, 1)
    few = made[made["speaker"].isin(["f0", "f1", "f2", "m0", "m1", "m2"])]
    whole = ntvd(few, Settings(tau=1))[0]
    assert whole.p_value == pytest.approx(0.1) and whole.smallest_p == pytest.approx(0.1)


def test_a_bracket_is_shown_in_order_and_kept_as_it_is() -> None:
    score = Score(metric="ntvd", value=54.0, at_least=53.6, at_most=53.3)
    assert score.bracket == (53.3, 53.3) and score.at_least == 53.6
    assert Score(metric="ntvd", value=1.0, at_least=-0.4, at_most=0.0).bracket == (-0.4, 0.0)
    assert Score(metric="ntvd", value=1.0, at_most=0.0).bracket is None
