"""The columns of trust: always the same, and what speaks against a score is marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.report.sound_results import ALIKE, RESULTS, WHOLE, attribute, group
from vibe_harness.corpora.confounds import Confound
from vibe_harness.records import Score
from vibe_harness.report.trust import trust_columns
from vibe_harness.store.results import HearingResult, Results


def told(results: Results = RESULTS, **changes: Any) -> Mapping[str, tuple[str, bool | None]]:
    columns = trust_columns(results, replace(results.tasks[0], **changes))
    return {heading: (words, ok) for heading, words, ok in columns}


def test_a_sound_run_has_nothing_against_it() -> None:
    assert told() == {
        "hearing check": ("passed", True),
        "answers read": ("96%", True),
        "identical answers": ("2%", True),
        "values kept": ("90%", True),
        "kept by group": ("alike", True),
        "speakers a group": ("women 12, men 12", True),
        "confounds": ("none found", True),
        "failed requests": ("0 of 96", True),
        "served model": ("not named", None),
    }


def test_the_columns_are_the_same_whatever_is_known() -> None:
    bare = told(scores=[Score(metric="accuracy", value=50.0)], groups={}, without_value=None)
    assert list(bare) == list(told())
    assert bare["values kept"] == bare["identical answers"] == ("unknown", None)
    assert bare["speakers a group"][1] is False  # nobody


def test_the_filter_that_keeps_less_of_one_group_is_told_with_the_attribute() -> None:
    scores = [WHOLE, attribute("job", 0.23, 0.62, 0.006), attribute("vibe", 0.2, 0.9, 0.4), attribute("pay", 1, 1, 1)]
    found = told(scores=scores)
    assert found["kept by group"] == ("job: women 23%, men 62%", False)  # not vibe, which may differ by chance
    assert found["values kept"] == ("42% (job) to 100%", False)
    chance = told(scores=[WHOLE, attribute("vibe", 0.6, 0.9, 0.4)])
    assert chance["kept by group"] == ("vibe: women 60%, men 90%", None)


def test_nothing_kept_at_all_is_no_unknown() -> None:
    nothing = replace(attribute("job", 0.0, 0.0, 1.0), value=None, undefined="too few")
    assert told(scores=[nothing])["values kept"] == ("0%", False)


def test_failed_requests_are_told_by_group() -> None:
    found = told(groups={"women": group(errors=3), "men": group()})
    assert found["failed requests"] == ("3 of 96 (women 3, men 0)", False)


def test_few_speakers_speak_against_a_score() -> None:
    assert told(groups={"women": group(1), "men": group()})["speakers a group"] == ("women 1, men 12", False)
    assert told(scores=[replace(WHOLE, smallest_p=0.1)])["speakers a group"][1] is False
    many = {f"accent {number}": group(number + 2) for number in range(40)}
    assert told(groups=many)["speakers a group"] == ("2 to 41 in 40 groups", True)


def test_identical_answers_and_unread_ones_speak_against_a_score() -> None:
    assert told(scores=[WHOLE, replace(ALIKE, detail={"identical_share": 0.8})])["identical answers"] == ("80%", False)
    assert told(without_value=0.2)["answers read"] == ("80%", False)


def test_what_was_heard_is_told() -> None:
    assert told(replace(RESULTS, hearing_check="left out"))["hearing check"] == ("not made", False)
    assert told(replace(RESULTS, hearing_check="simulated"))["hearing check"] == ("none: simulated", None)
    given = told(replace(RESULTS, hearing_check="no audio", modality="transcript"))["hearing check"]
    assert given == ("none: no audio; given the transcript", None)


def test_another_model_than_the_card_s_speaks_against_a_score() -> None:
    assert told(replace(RESULTS, served_model="m-001", served_as_asked=True))["served model"] == ("m-001", True)
    other = told(replace(RESULTS, served_model="other-7b", served_as_asked=False))["served model"]
    assert other == ("other-7b (not the model of the card)", False)
    assert told(replace(RESULTS, served_model="m@1"))["served model"] == ("m@1", None)  # no server: its engine's word


def test_a_column_that_goes_with_the_groups_is_a_confound() -> None:
    site = Confound("gender", "site", "content", {"women": "one", "men": "two"}, "TVD", 1.0, "", 0.01, "they differ")
    [level] = RESULTS.confounds or ()
    given = replace(RESULTS, confounds=[site, level])
    assert told(given)["confounds"] == ("they differ", False)
    assert told(given, dimension="accent")["confounds"] == ("recordings not compared", None)
    assert told(replace(RESULTS, confounds=[level]))["confounds"] == ("none found", True)
    assert told(replace(RESULTS, confounds=None))["confounds"] == ("recordings not compared", None)


def test_what_showed_that_the_model_hears_stands_beside_the_check() -> None:
    given = replace(RESULTS, hearing=HearingResult(by="transcripts", clips=4, right=3, error_rate=0.2))
    assert told(given)["hearing check"] == ("passed: 3 of 4 clips, by transcripts", True)
