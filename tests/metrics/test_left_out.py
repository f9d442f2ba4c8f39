"""What the filter leaves out: a shift that lives under tau is found, and a filter that takes more from one group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import ntvd
from vibe_harness.scoring.reliability import filter_warnings

SETTINGS = Settings(permutations=999)


def frame(rows: list[tuple[str, str, str]]) -> pd.DataFrame:
    """rows: group, speaker, value of an answer each."""
    return pd.DataFrame([
        {
            "request": f"r{number}", "clip": f"r{number}", "speaker": speaker, "group": group, "attribute": "job",
            "outcome": "ok", "reading": "value", "raw": [value], "values": [value],
        }
        for number, (group, speaker, value) in enumerate(rows)
    ])  # fmt: skip


def answers(rare_of: dict[str, float], own: bool) -> pd.DataFrame:
    """20 speakers a group with 12 answers each; a share of them rare values, which one group alone ever gets (`own`),
    or both, each under ten times."""
    rng, rows = np.random.default_rng(0), []
    for group, share in rare_of.items():
        seen = 0
        for speaker in range(20):
            for answer in range(12):
                if answer < 12 * share:
                    value = f"{group if own else 'all'} rare {seen % 20 if own else rng.integers(40)}"
                    seen += 1
                else:
                    value = str(rng.choice(["nurse", "chef", "judge"]))
                rows.append((group, f"{group}{speaker}", value))
    return frame(rows)


def detail(made: pd.DataFrame) -> tuple[dict[str, Any], list[str]]:
    scores = ntvd(made, SETTINGS)
    return scores[1].detail["filter"], filter_warnings(scores, SETTINGS.tau)


def test_values_that_one_group_alone_ever_gets_are_found_under_tau() -> None:
    # A third of each group's answers, four a speaker, 80 in all over 20 values: four times each.
    made = answers({"f": 1 / 3, "m": 1 / 3}, own=True)
    found, warnings = detail(made)
    assert found["left_out_share"] == pytest.approx(1 / 3) and found["left_out_ntvd"] == pytest.approx(100)
    assert found["left_out_p"] < 0.05 and found["kept_difference"] == 0
    # Nothing of it is in the score, all of it at tau 1: a third of the way from no shift to none in common.
    scores = ntvd(made, SETTINGS)
    assert scores[0].value is not None and scores[0].value < 10 and scores[0].detail["by_tau"]["1"] > 33
    [line] = warnings
    assert "33%" in line and "nTVD 100 among themselves" in line and "lower --tau" in line


def test_rare_values_that_both_groups_get_are_no_finding() -> None:
    found, warnings = detail(answers({"f": 1 / 3, "m": 1 / 3}, own=False))
    assert found["left_out_p"] > 0.05 and warnings == []


def test_a_filter_that_takes_more_from_one_group_is_named() -> None:
    found, warnings = detail(answers({"f": 1 / 2, "m": 1 / 6}, own=False))
    assert found["kept_p"] < 0.05 and found["kept_difference"] > 30
    assert any("of the values of f and" in line and "of m" in line for line in warnings)


def test_nothing_left_out_nothing_said() -> None:
    made = answers({"f": 0, "m": 0}, own=False)
    scores = ntvd(made, SETTINGS)
    assert "filter" not in scores[1].detail and filter_warnings(scores, SETTINGS.tau) == []


def test_a_little_that_is_left_out_is_not_tested() -> None:
    rows = [(g, f"{g}{s}", v) for g in "fm" for s in range(10) for v in ["nurse"] * 6 + ["chef"] * 6]
    found, warnings = detail(frame([*rows, ("f", "f0", "astronaut")]))
    assert found["left_out_p"] is None and found["left_out_shift"] is None and warnings == []


def test_all_values_rare_has_a_defined_answer() -> None:
    rows = [(g, f"{g}{s}", f"{g}{s}{n}") for g in "fm" for s in range(6) for n in range(4)]
    scores = ntvd(frame(rows), SETTINGS)
    found = scores[1].detail["filter"]
    assert scores[1].value is None and found["left_out_share"] == 1 and found["kept_p"] == 1
    # All different: every way to part the speakers gives 100.
    assert found["left_out_ntvd"] == 100 and found["left_out_p"] == 1
