"""How scores are shown: every metric says so, and those of other packages have a plain line."""

from __future__ import annotations

import pytest

from vibe_harness.metrics.presentation import Presentation
from vibe_harness.metrics.registry import METRICS, presentation_of
from vibe_harness.records import Score


@pytest.mark.parametrize("name", METRICS.names())
def test_every_metric_of_the_package_declares_how_it_is_shown(name: str) -> None:
    shown = METRICS.get(name).presentation
    assert shown is not None and shown.title


def test_one_metric_alone_is_the_shift() -> None:
    assert [name for name in METRICS.names() if presentation_of(name).role == "shift"] == ["ntvd"]


@pytest.mark.parametrize("name", ["evaluate:word_count", "not_installed", "evaluate:a/b.py:total_words"])
def test_what_declares_nothing_has_a_plain_line(name: str) -> None:
    shown = presentation_of(name)
    assert (shown.role, shown.picture, shown.columns) == ("figure", "none", ())
    assert shown.notes(Score(metric=name)) == [] and "_" not in shown.title


def test_figures_by_group_are_numbers_alone() -> None:
    score = Score(metric="own", detail={"by_group": {"a": 1, "b": None, "c": "x", "d": True, "e": 0.5}})
    assert Presentation("own").by_group(score) == {"a": 1.0, "e": 0.5}
    assert Presentation("own").by_group(Score(metric="own", detail={"by_group": [1, 2]})) == {}


def test_decimals() -> None:
    plain = Presentation("own")
    assert [plain.decimals(0.25), plain.decimals(12.0), plain.decimals(0.2, None, 40.0), plain.decimals()] == [
        3,
        1,
        1,
        3,
    ]
    assert Presentation("own", digits=2).decimals(40.0) == 2


def named(*values: tuple[str, bool]) -> Score:
    shares = {"women": {"nurse": 0.4, "teacher": 0.2}, "men": {"nurse": 0.06, "pilot": 0.3}}
    parts = [{"value": value, "by_group": {"women": {"named": on}, "men": {}}} for value, on in values]
    return Score(metric="ntvd", attribute="job", value=1.0, detail={"distribution": shares, "contributions": parts})


def test_a_value_is_told_by_its_shares_where_the_test_names_it() -> None:
    notes = presentation_of("ntvd").notes
    assert notes(named(("nurse", True), ("pilot", False))) == ["nurse: women 40%, men 6%"]
    assert notes(named(("pilot", True))) == ["pilot: women 0%, men 30%"]
    assert notes(named(("nurse", False))) == [] and notes(named()) == []
    assert notes(named(*[(f"v{i}", True) for i in range(5)]))[0].endswith("; 2 more")


def test_of_many_groups_the_ends_are_told() -> None:
    shares = {f"g{i}": {"nurse": i / 10} for i in range(9)}
    detail = {"distribution": shares, "contributions": [{"value": "nurse", "by_group": {"g1": {"named": True}}}]}
    score = Score(metric="ntvd", attribute="job", value=1.0, detail=detail)
    assert presentation_of("ntvd").notes(score) == ["nurse: from g0 0% to g8 80%"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"sentences": 3, "at_least": None, "low": None, "reason": "too few"}, "other sentences: too few"),
        ({"sentences": 9, "at_least": 8.0, "low": 3.21}, "begins at 3.2"),
        ({"sentences": 9, "at_least": 8.0, "low": 0.0}, "is not shown"),
    ],
)
def test_other_sentences(found: dict[str, object], said: str) -> None:
    [note] = presentation_of("ntvd").notes(Score(metric="ntvd", value=9.0, detail={"over_sentences": found}))
    assert said in note


def test_identical_answers_are_said() -> None:
    notes = presentation_of("diversity").notes
    assert notes(Score(metric="diversity", detail={"identical_share": 0.25})) == [
        "25% of the responses repeat another one word for word"
    ]
    assert notes(Score(metric="diversity", detail={"identical_share": 0.0})) == []
