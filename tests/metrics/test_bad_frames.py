"""What a frame can hold that has no score: a defined answer or a clear refusal, never a 0 that looks like fairness."""

import numpy as np
import pandas as pd
import pytest

from vibe_harness.errors import UserError
from vibe_harness.metrics.frame_counts import speakers_of
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import ntvd
from vibe_harness.metrics.refusal_ntvd import refusal_ntvd

SETTINGS = Settings(tau=1, permutations=199)


def frame_of(answers):
    """answers: speaker (the first letter is his group) -> his values."""
    rows = [(speaker, value) for speaker, values in answers.items() for value in values]
    return pd.DataFrame(
        {
            "request": [str(n) for n in range(len(rows))], "clip": "c", "speaker": [speaker for speaker, _ in rows],
            "group": [speaker[0] for speaker, _ in rows], "group_sex": [speaker[0] for speaker, _ in rows],
            "attribute": "job", "outcome": "ok", "reading": ["value" if value else "none" for _, value in rows],
            "raw": [[value] if value else [] for _, value in rows],
            "values": [[value] if value else [] for _, value in rows],
        }
    )  # fmt: skip


FOUR = {"f1": "xy", "f2": "xx", "m1": "yy", "m2": "xy"}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({**FOUR, "m1": [None] * 2, "m2": [None] * 2}, "a group is left with no value"),
        (dict.fromkeys(FOUR, "xx"), "fewer than two values are kept"),
        ({"f1": "xy", "f2": "xx"}, "fewer than two groups"),
        ({name: [None] for name in FOUR}, "no answer gives a value: 4 silent on it"),
    ],
    ids=["a group without values", "all the same", "one group", "no value at all"],
)
def test_without_a_score_there_is_a_reason(answers, why):
    for score in ntvd(frame_of(answers), SETTINGS):
        assert score.value is None and score.p_value is None and score.interval is None
        assert score.undefined.startswith(why)


def test_a_filter_that_leaves_one_value_leaves_no_score():
    whole = ntvd(frame_of({**FOUR, "f2": "xxxxxxxxxx"}), Settings(tau=10, permutations=99))[0]
    assert whole.value is None and whole.undefined.startswith("fewer than two values are kept")
    assert "tau is 10" in whole.undefined and "--tau" in whole.undefined


@pytest.mark.parametrize("answers", [{"f1": "xx", "m1": "xx"}, {"f1": "xy", "m1": [None]}])
def test_a_lower_tau_is_no_remedy_where_the_filter_is_not_to_blame(answers):
    whole = ntvd(frame_of(answers), Settings(tau=10, permutations=9))[0]
    assert whole.value is None and "--tau" not in whole.undefined


def test_one_speaker_a_group_has_a_score_that_is_never_significant_and_no_interval():
    [whole, _] = ntvd(frame_of({"f1": "xxxx", "m1": "yyyy"}), SETTINGS)
    assert whole.value == pytest.approx(100) and whole.p_value == 1 and whole.exact
    assert whole.interval is None and whole.at_least is None and "single speaker" in whole.detail["no_interval"]


def test_a_value_in_one_group_only_counts():
    [whole, _] = ntvd(frame_of({"f1": "xx", "f2": "xx", "m1": "xy", "m2": "xy"}), SETTINGS)
    assert whole.value == pytest.approx(50)


def test_strata_that_leave_nothing_to_permute_keep_the_score_and_say_why_there_is_no_test():
    settings = Settings(tau=1, permutations=199, speaker_strata=("sex",))
    frame = frame_of(FOUR)
    for score in ntvd(frame, settings):
        assert score.value is not None and score.p_value is None and score.permutations is None
        assert score.detail["untested"].startswith("nothing can be permuted")
    frame.loc[0, "outcome"] = "refused"
    [refusals] = refusal_ntvd(frame, settings)
    assert refusals.value is not None and refusals.p_value is None


def test_what_is_missing_is_refused_and_counted():
    frame = frame_of(FOUR)
    for column in ("group", "speaker"):
        broken = frame.copy()
        broken.loc[:1, column] = np.nan
        with pytest.raises(UserError, match=f"column '{column}': 2 of 8 rows are empty"):
            ntvd(broken, SETTINGS)
        with pytest.raises(UserError):
            speakers_of(broken)
    frame.at[0, "values"] = [np.nan]
    with pytest.raises(UserError, match="1 values are missing"):
        ntvd(frame, SETTINGS)
