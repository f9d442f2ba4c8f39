"""Strata of utterances: found unbalanced, evened out, and left alone where they are even."""

import numpy as np
import pandas as pd
import pytest

from vibe_harness.errors import UserError
from vibe_harness.metrics.balance import balance_of
from vibe_harness.metrics.frame_counts import speakers_of
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import ntvd
from vibe_harness.metrics.refusal_ntvd import refusal_ntvd

SETTINGS = Settings(tau=1, permutations=199, strata=("emotion",))


def answered(emotions_by_group, answer, speakers=6):
    """Observations in which every speaker of a group is asked with the same list of emotions.

    answer: the value given to an emotion, in whatever group.
    """
    rows = []
    for group, emotions in emotions_by_group.items():
        for speaker in range(speakers):
            for emotion in emotions:
                value = answer(emotion)
                rows.append(
                    {
                        "request": f"r{len(rows):04}", "clip": f"r{len(rows):04}", "speaker": f"{group}{speaker}",
                        "group": group, "attribute": "mood", "outcome": "ok", "reading": "value",
                        "raw": [value], "values": [value], "group_emotion": emotion, "sentence_id": f"s{len(rows) % 2}",
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


UNEVEN = {"f": ["anger"] * 3 + ["joy"], "m": ["anger"] + ["joy"] * 3}
EVEN = {"f": ["anger", "joy"], "m": ["joy", "anger"]}


def test_answers_that_follow_the_emotion_alone_are_no_shift():
    frame = answered(UNEVEN, lambda emotion: f"felt {emotion}")
    pooled = ntvd(frame, Settings(tau=1, permutations=199))[0]
    assert pooled.value == pytest.approx(50) and pooled.p_value is not None and pooled.p_value < 0.05
    whole, mood = ntvd(frame, SETTINGS)
    assert whole.value == pytest.approx(0) and whole.p_value == 1
    assert whole.detail["standardised_over"] == ["emotion"] and whole.detail["imbalance"] == {"emotion": 50}
    assert mood.detail["distribution"]["f"] == pytest.approx({"felt anger": 0.5, "felt joy": 0.5})
    assert all(score == pytest.approx(0) for score in whole.detail["by_tau"].values() if score is not None)


def test_even_strata_are_left_alone():
    frame = answered(EVEN, lambda emotion: f"felt {emotion}")
    found = balance_of(frame, speakers_of(frame), SETTINGS)
    assert found.columns == () and found.imbalance == {"emotion": 0}
    assert ntvd(frame, SETTINGS)[0].value == ntvd(frame, Settings(tau=1, permutations=199))[0].value


def test_what_differs_between_speakers_by_chance_is_left_alone():
    rng = np.random.default_rng(0)
    frame = answered({"f": ["anger"] * 6, "m": ["anger"] * 6}, lambda emotion: emotion)
    frame["group_emotion"] = rng.choice(["anger", "joy", "fear", "sad"], size=len(frame))
    found = balance_of(frame, speakers_of(frame), SETTINGS)
    assert found.columns == () and found.imbalance["emotion"] > 5


def test_a_cell_that_lacks_a_group_is_left_out_and_named():
    uneven = {"f": ["anger"] * 3 + ["joy"], "m": ["anger"] + ["joy"] * 2 + ["fear"]}
    mood = ntvd(answered(uneven, lambda emotion: f"felt {emotion}"), SETTINGS)[1]
    assert mood.detail["cells_left_out"] == {"fear": pytest.approx(1 / 8)}
    assert mood.value == pytest.approx(0)


def test_refusals_that_follow_the_emotion_are_no_shift():
    frame = answered(UNEVEN, lambda emotion: emotion)
    refused = frame["group_emotion"] == "anger"
    frame.loc[refused, ["outcome", "reading"]] = ["refused", "none"]
    assert refusal_ntvd(frame, Settings(permutations=199))[0].value == pytest.approx(50)
    [score] = refusal_ntvd(frame, SETTINGS)
    assert score.value == pytest.approx(0) and score.detail["standardised_over"] == ["emotion"]


def test_cells_that_would_be_too_many_are_said_to_be_left_uneven():
    frame = answered({"f": [f"e{n}" for n in range(101)], "m": [f"e{n}" for n in range(50, 151)]}, lambda emotion: "x")
    whole = ntvd(frame, SETTINGS)[0]
    assert whole.detail["standardised_over"] == [] and "151 cells" in whole.detail["not_standardised"]["emotion"]


def test_a_stratum_that_the_data_lack_is_refused():
    frame = answered(EVEN, lambda emotion: emotion)
    with pytest.raises(UserError, match="'level'"):
        ntvd(frame, Settings(tau=1, strata=("level",)))
    assert ntvd(frame, Settings(tau=1, permutations=99, strata=("sentence_id",)))[0].value is not None
