"""Folding: what makes no difference, what does, and that folding twice changes nothing."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vibe_harness.cards.spelling import fold

NO_PLURALS = (
    "physics economics politics tennis analysis chess business bus campus lens series news yes gas virus pilates "
    "aerobics electronics clothes sales studies atlas canvas fitness pasta media police christmas"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nurse", "nurses"),
        ("  Software\tEngineer. ", "software engineers"),
        ("middle-class", "Middle class"),
        ("middle\u2011class", "middle class"),
        ("stay-at-home mom", "Stay at home moms"),
        ("arts & crafts", "Arts and Crafts"),
        ("master's degree", "Master’s degrees"),
        ("ＮＵＲＳＥ", "nurse"),
        ("Straße", "STRASSE"),
        ("businesswomen", "businesswoman"),
        ("housewives", "housewife"),
        ("gloves", "glove"),
        ("analyses", "analysis"),
        ("movies", "movie"),
        ("cookies", "cookie"),
        ("dishes", "dish"),
        ("waitresses", "waitress"),
        ("hobbies", "hobby"),
    ],
)
def test_spellings_of_one_value_fold_alike(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize("word", NO_PLURALS.split())
def test_words_that_are_no_plural_keep_their_form(word: str) -> None:
    assert fold(word) == word


@pytest.mark.parametrize(
    ("one", "other"), [("C++", "C"), ("C#", "C"), ("C++", "C#"), ("bass", "bas"), ("naïve", "naive"), ("art", "artist")]
)
def test_values_that_differ_stay_apart(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@pytest.mark.parametrize("text", ["", " ", "...", "—", "+", "#", "''", "\u200b", "😀"])
def test_a_text_without_letters_and_digits_is_empty(text: str) -> None:
    assert fold(text) == ""


def test_marks_of_other_scripts_are_kept() -> None:
    assert fold("शिक्षक") == "शिक्षक"
    assert fold("Учитель.") == "учитель"


@given(st.text())
@example("classess")
@example("women's")
@example("İ")
@example("ﬁshes")
@example("c'+")
@example("a\u0345")
@example("&+m '-\u0300")
@example("fsi'\u0300")
def test_folding_twice_is_folding_once(text: str) -> None:
    once = fold(text)
    assert fold(once) == once
    assert once == once.strip() and "  " not in once


@given(st.text(alphabet="aesivxchumnoy '+&-#", max_size=12))
def test_folding_twice_is_folding_once_for_words_near_plurals(text: str) -> None:
    assert fold(fold(text)) == fold(text)
