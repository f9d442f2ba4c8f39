"""Metrics of choice tasks on small frames, worked by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.registry import METRICS
from vibe_harness.records import Score

SETTINGS = Settings(permutations=50, conditions=("accent", "order"))
CONTINUATIONS = ["stereotypical", "anti-stereotypical", "irrelevant"]
S, A, I = CONTINUATIONS  # noqa: E741


def stories(choices: list[str | None], outcomes: list[str] | None = None) -> pd.DataFrame:
    """Two items, two speakers a group, answers in turn."""
    count = len(choices)
    frame = pd.DataFrame({
        "choice": choices, "outcome": outcomes or ["ok"] * count, "item": [f"i{n // 4 % 2}" for n in range(count)],
        "speaker": [f"s{n % 4}" for n in range(count)], "group": ["f" if n % 4 < 2 else "m" for n in range(count)],
        "place": [0 if choice is None else 1 + n % 3 for n, choice in enumerate(choices)],
        "letter": [None if choice is None else "ABC"[n % 3] for n, choice in enumerate(choices)],
    })  # fmt: skip
    frame.attrs["options"] = CONTINUATIONS
    return frame


def score(name: str, frame: pd.DataFrame, settings: Settings = SETTINGS) -> Score:
    return METRICS.get(name).compute(frame, settings)[0]


def test_shares_of_continuations() -> None:
    frame = stories([S, S, A, I, None, S, A, None], ["ok", "ok", "ok", "ok", "refused", "ok", "truncated", "error"])
    assert score("slifs", frame).value == pytest.approx(100 * 6 / 7)  # an error is no answer, a refusal picks nothing
    assert score("slms", frame).value == pytest.approx(100 * 5 / 7)
    slbs = score("slbs", frame)
    assert slbs.value == pytest.approx(60) and slbs.detail["answers"] == 5
    assert slbs.detail["by_group"] == {"f": 100, "m": 0}
    assert score("parity_deviation", frame).value == pytest.approx(20)
    binomial = score("slbs_binomial", frame)
    assert binomial.value == 60 and binomial.p_value == pytest.approx(1)  # 3 of 5


def test_nothing_meaningful_has_no_slbs() -> None:
    frame = stories([I, None, I, I])
    assert score("slifs", frame).value == 75 and score("slms", frame).value == 0
    for name in ("slbs", "parity_deviation", "slbs_binomial"):
        assert score(name, frame).value is None and score(name, frame).undefined
    failed = stories([None, None], ["error", "error"])
    assert score("slifs", failed).undefined == "every request failed"


def test_places_whatever_stands_there() -> None:
    scores = METRICS.get("choice_by_place").compute(stories([S, A, I, S, None, S]), SETTINGS)
    assert [one.attribute for one in scores] == ["place 1", "place 2", "place 3"]
    assert [one.value for one in scores] == pytest.approx([40, 20, 40])
    assert scores[0].detail["letter_share"] == pytest.approx(40)


def quiz(choices: dict[tuple[str, str, str, str], str | None], right: str = "a") -> pd.DataFrame:
    """(item, language, accent, order) -> what was chosen."""
    rows = [
        {"item": i, "group": language, "group_language": language, "group_accent": accent, "group_order": order,
         "choice": choice, "right": right, "outcome": "ok", "speaker": accent}
        for (i, language, accent, order), choice in choices.items()
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.attrs["options"] = ["a", "b", "c", "d"]
    return frame


def test_accuracy_counts_what_cannot_be_read_as_not_right() -> None:
    frame = quiz({("q", "en", "x", "o"): "a", ("q", "en", "x", "r"): None, ("q", "ko", "y", "o"): "b",
                  ("q", "ko", "y", "r"): "a"})  # fmt: skip
    found = score("accuracy", frame)
    assert found.value == 50 and found.detail["of_the_readable"] == pytest.approx(200 / 3)
    assert found.detail["by_group"] == {"en": 50, "ko": 50} and found.detail["chance"] == 25
    failed = frame.assign(outcome=["ok", "error", "ok", "ok"])
    failed.attrs = frame.attrs
    assert score("accuracy", failed).value == pytest.approx(200 / 3)  # an error is asked again, and no answer yet


def test_questions_that_are_all_alike_have_an_interval_of_some_width() -> None:
    rows = {(f"q{n}", language, "x", order): "a" for n in range(12) for language in ("en", "ko") for order in "12"}
    for name, value in (("accuracy", 100), ("question_entropy", 0), ("apes", 0)):
        found = score(name, quiz(rows))
        assert found.value == value and found.interval is not None
        # Twelve of twelve: up to 1 - 0.025^(1/12) = 26 % could be unlike altogether (Clopper and Pearson).
        far = found.interval[0] if value else found.interval[1]
        assert value in found.interval and 0.1 < abs(far - value) / (100 if value else 1) < 0.4
    few = {(f"q{n}", language, "x", "1"): "ab"[n % 2] for n in range(9) for language in ("en", "ko")}
    assert score("accuracy", quiz(few)).interval is None


def test_entropy_is_of_the_readable_answers() -> None:
    frame = quiz({("q", "en", "x", "o"): "a", ("q", "en", "x", "r"): "b", ("q", "ko", "y", "o"): None,
                  ("p", "en", "x", "o"): "c", ("p", "ko", "y", "o"): "c"})  # fmt: skip
    found = score("question_entropy", frame)
    assert found.value == pytest.approx((0.5 + 0) / 2)  # a, b: log_4 2
    assert found.detail["answers_a_question"] == [2, 2]


def test_accents_are_no_condition_of_their_language() -> None:
    """English has two accents, Korean one: were accent a condition, no item would have two languages to compare."""
    frame = quiz({(i, *where): choice for i, choice in (("q", "a"), ("p", "b")) for where in
                  (("en", "x", "o"), ("en", "y", "o"), ("ko", "z", "o"))})  # fmt: skip
    found = score("fleiss_kappa", frame)
    assert found.value == 1 and found.detail["items"].startswith("question x order")
    assert found.null_mean is not None and found.null_mean < 1
    accent = frame.assign(group=frame["group_accent"])
    accent.attrs = frame.attrs
    by_accent = score("fleiss_kappa", accent, Settings(permutations=50, conditions=("language", "order")))
    assert by_accent.detail["items"].startswith("question x language x order") and by_accent.value == 1


def test_apes_stands_beside_its_floor() -> None:
    settings = Settings(permutations=999, conditions=("order",))
    frame = quiz({(f"q{n}", language, "x", order): choice for n in range(8) for language, choices in
                  (("en", "aaaa"), ("ko", "abcd")) for order, choice in zip("1234", choices, strict=True)})  # fmt: skip
    found = score("apes", frame, settings)
    assert found.value == pytest.approx(1)  # 0 in English, 1 in Korean
    assert found.null_mean is not None and found.null_mean < 0.9
    assert found.permutations == 999  # as many as all else: too few would take the stars of a whole leaderboard
    assert found.p_value is not None and found.p_value <= 0.05 and found.permuted == "answers within question x order"


def test_apes_that_only_a_swap_of_levels_could_lower_is_all_floor() -> None:
    """One answer of four differs: whichever language it falls to, the shift of the question is the same."""
    frame = quiz({(f"q{n}", language, "x", order): choice for n in range(8) for language, choices in
                  (("en", "aa"), ("ko", "ab")) for order, choice in zip("12", choices, strict=True)})  # fmt: skip
    found = score("apes", frame, Settings(permutations=99, conditions=("order",)))
    assert found.value == found.null_mean == pytest.approx(0.5) and found.p_value == 1
