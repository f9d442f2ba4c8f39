"""Coverage and reliability, each figure worked out by hand."""

import pandas as pd
import pytest

from vibe_harness.cards.loading import CardIndex
from vibe_harness.metrics.metric import Settings
from vibe_harness.scoring.score import score_task
from vibe_harness.store.run_folder import TaskRecord

SETTINGS = Settings(tau=1, permutations=99)
READ = ("ok", "value")
LOST = ("error", "none")  # the model's call failed
UNREAD = ("ok", "error")  # the extractor's call failed
CUT = ("truncated", "value")
DECLINED = ("refused", "none")
VAGUE = ("ok", "unknown")


def frame_of(groups, attributes=("activity",)):
    """Observations. groups: group -> what came of its requests, for all attributes or for each; two to a speaker.

    A value is "x", and one of three words of the group.
    """
    rows = []
    for group, ends in groups.items():
        for number, end in enumerate(ends):
            each = [end] * len(attributes) if isinstance(end[0], str) else end
            for attribute, (outcome, reading) in zip(attributes, each, strict=True):
                values = ["x", f"{group}-{number % 3}"] if reading == "value" else []
                rows.append(
                    {
                        "request": f"{group}{number}", "clip": f"{group}{number}", "speaker": f"{group}{number // 2}",
                        "sentence_id": None, "group": group, "group_gender": group, "attribute": attribute,
                        "outcome": outcome, "reading": reading, "raw": values, "values": values,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def scored(frame, settings=SETTINGS):
    [task] = CardIndex().tasks(["advisory"])
    record = TaskRecord(card=task.card, digest=task.digest, prompts={}, variants=["default"], sources={})
    return score_task(frame, record, "default", "gender", settings)


def score_of(result, metric, attribute=None):
    return next(s for s in result.scores if s.metric == metric and s.attribute == attribute)


def test_what_came_of_the_requests_is_counted_by_group():
    result = scored(frame_of({"f": [READ, READ, CUT, LOST], "m": [READ, DECLINED, VAGUE, UNREAD]}))
    female, male = result.groups["f"], result.groups["m"]
    assert (female.speakers, female.clips, female.requests) == (2, 4, 4)
    assert female.outcomes == {"ok": 2, "truncated": 1, "empty": 0, "refused": 0, "blocked": 0, "error": 1}
    assert female.readings["activity"] == {"value": 3, "unknown": 0, "none": 1, "unparsed": 0, "error": 0}
    assert male.outcomes["refused"] == 1 and male.readings["activity"]["error"] == 1
    assert female.items_per_response["activity"] == 2.0
    assert result.without_value == 4 / 8 and not result.reliable


def test_refusals_are_compared_over_all_requests_less_errors_of_model_and_extractor():
    result = scored(frame_of({"f": [DECLINED, READ, VAGUE, LOST], "m": [READ, READ, UNREAD, LOST]}))
    score = score_of(result, "refusal_ntvd")
    assert score.detail["refused_share_by_group"] == {"f": pytest.approx(1 / 3), "m": 0.0}
    assert score.value == pytest.approx(100 / 3)  # two groups: the difference of the shares


def test_an_attribute_past_the_limit_makes_a_task_unreliable_however_well_the_others_are_read():
    both, half = (READ, READ), (READ, VAGUE)
    ends = [both] * 9 + [half]
    result = scored(frame_of({"f": ends, "m": ends}, ("activity", "billing")))
    assert result.reliable and result.without_value == 1 / 20  # billing: 10 %, which is not past it
    ends = [both] * 8 + [half] * 2
    result = scored(frame_of({"f": ends, "m": ends}, ("activity", "billing")))
    assert result.without_value == 2 / 20 and not result.reliable
    assert result.warnings == ["billing: 20% of the responses gave no value (limit 10%)"]


def test_a_task_without_a_score_is_not_reliable_and_says_why():
    result = scored(frame_of({"f": [READ] * 6, "m": [READ] * 6}), Settings(tau=1000, permutations=9))
    assert score_of(result, "ntvd").value is None and not result.reliable
    assert any(warning.startswith("no ntvd: ") for warning in result.warnings)


def test_attributes_that_lack_a_score_for_one_reason_share_a_line():
    ends = [(READ, READ, VAGUE)] * 20
    result = scored(
        frame_of({"f": ends, "m": ends}, ("activity", "billing", "vibe")), Settings(tau=1000, permutations=9)
    )
    told = [warning for warning in result.warnings if ": no ntvd: " in warning]
    assert [warning.partition(": no ntvd: ")[0] for warning in told] == ["activity, billing", "vibe"]


def test_nothing_hangs_on_the_order_of_arrival():
    frame = frame_of({"f": [READ, DECLINED, READ, CUT] * 3, "m": [READ, READ, VAGUE, READ] * 3})
    assert scored(frame) == scored(frame.sample(frac=1, random_state=3)) == scored(frame.iloc[::-1])


def test_the_shares_kept_by_the_filter_are_those_of_each_group():
    frame = frame_of({"f": [READ] * 4, "m": [READ] * 6})
    score = score_of(scored(frame, Settings(tau=2, permutations=9)), "ntvd", "activity")
    # x 10 times; f-0 twice, f-1 and f-2 once each; m-0, m-1 and m-2 twice each
    assert score.detail["kept_share_by_group"] == {"f": 6 / 8, "m": 12 / 12}
    assert score.detail["kept_share"] == 18 / 20
    assert (score.detail["distinct_values"], score.detail["kept_values"], score.detail["items"]) == (7, 5, 20)
    assert score.detail["distribution"]["f"]["x"] == pytest.approx(4 / 6)
