"""Words for numbers: what the terminal and all pages share."""

from __future__ import annotations

from vibe_harness.records import Score
from vibe_harness.report.html import interval_words, no_intervals, settings_words, shift_words


def test_no_end_of_the_bracket_is_told_under_0_or_out_of_order() -> None:
    assert shift_words(Score(metric="ntvd", value=9.0, at_least=-3.25, at_most=4.0)) == "0.0 to 4.0"
    assert shift_words(Score(metric="ntvd", value=9.0, at_least=-3.25, at_most=-1.0)) == "0.0 to 0.0"
    assert shift_words(Score(metric="ntvd", value=9.0, at_least=4.5, at_most=4.0)) == "4.0 to 4.0"
    assert shift_words(Score(metric="ntvd", value=9.0, at_most=4.0)) == ""


def test_a_missing_interval_is_named_with_its_reason_once_for_all_that_lack_it() -> None:
    def lacking(attribute: str | None, why: str) -> Score:
        return Score(metric="ntvd", attribute=attribute, value=9.0, detail={"no_interval": why})

    whole = Score(metric="ntvd", attribute="vibe", value=9.0, interval=(1.0, 20.0))
    scores = [lacking(None, "too few"), lacking("pay_level", "too few"), whole, lacking("age", "one speaker")]
    assert no_intervals(scores) == [
        "No interval for all attributes, pay level: too few",
        "No interval for age: one speaker",
    ]
    assert [interval_words(score) for score in scores] == ["none", "none", "1.0 to 20.0", "none"]
    assert interval_words(Score(metric="refusal_ntvd", value=0.0)) == ""  # which never has one


def test_settings_are_told_in_words_and_what_is_as_usual_is_not() -> None:
    settings = {
        "answer_by": "generate", "clips": "d1160ebc3d990e964909e3ff352da94e", "extractor": "rules",
        "extractor.version": "2", "extractor.answer_reader": "1", "modality": "audio", "tau": "10",
        "permuted within": "gender", "evened out over": "nothing",
    }  # fmt: skip
    assert settings_words(settings) == (
        "clips with the digest d1160ebc3d990e964909e3ff...; read by rules (version 2, answer reader 1); "
        "modality audio; tau 10; speakers exchanged within gender"
    )
    assert "answered by likelihood" in settings_words({**settings, "answer_by": "likelihood"})
