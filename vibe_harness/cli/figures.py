"""Scores in words, by how their metrics present them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vibe_harness.records import Score
from vibe_harness.report.verdict import SHIFT_METRICS, p_value_words

MOST_GROUPS = 6
"""Groups whose figures are told one by one; of more the highest and the lowest."""
MOST_NAMED = 2
"""Groups whose share of a value is told, of more than two."""


def is_shift(score: Score) -> bool:
    """Whether a score is a shift, from 0 (none) to 100."""
    return score.metric in SHIFT_METRICS


def is_beside(score: Score) -> bool:
    """Whether a score is told beside a task's own ones."""
    return score.metric == "refusal_ntvd"


def figure_words(score: Score, *, by_group: bool = False) -> str:
    """A score's name, value and interval: "accuracy 65.6 % (58.0 to 72.1)"; or its value by group."""
    name = f"{title(score)}: {score.attribute}" if score.attribute else title(score)
    if score.value is None:
        return f"{name} undefined"
    if by_group:
        return f"{name} {value_words(score)}: {_by_group(score)}"
    interval = f" ({interval_words(score)})" if score.interval else ""
    return f"{name} {value_words(score)}{interval}"


def title(score: Score) -> str:
    """What a metric is called."""
    return score.metric.replace("_", " ")


def value_words(score: Score, value: float | None = None) -> str:
    """A figure of a score in its unit; without `value` the score's own."""
    shown = score.value if value is None else value
    return "undefined" if shown is None else f"{shown:.{_digits(score)}f}{_unit(score)}"


def interval_words(score: Score) -> str:
    """The 95 % interval, the ends of a shift not under 0; empty where there is none."""
    return "" if score.interval is None else range_words(score, *score.interval)


def range_words(score: Score, low: float, high: float) -> str:
    """A range of a score's figures: "36.1 to 57.0"."""
    if is_shift(score):
        low, high = max(low, 0.0), max(high, 0.0)
    return f"{low:.{_digits(score)}f} to {high:.{_digits(score)}f}"


def _by_group(score: Score) -> str:
    groups: Mapping[str, float | None] = score.detail["by_group"]
    shown = {group: value for group, value in groups.items() if value is not None}
    if len(shown) <= MOST_GROUPS:
        return ", ".join(f"{group} {value_words(score, value)}" for group, value in shown.items())
    low, high = (pick(shown, key=lambda group: shown[group]) for pick in (min, max))
    return (
        f"from {value_words(score, shown[low])} ({low}) to {value_words(score, shown[high])} ({high}) "
        f"in {len(shown)} groups"
    )


def words_of(attribute: str | None) -> str:
    """An attribute in words: "field of study"."""
    return (attribute or "").replace("_", " ")


def named_values(scores: Sequence[Score]) -> list[str]:
    """The values that the tests of attributes name, those that differ most first: "nurse: female 40 %, male 6 %"."""
    found = [
        (max(abs(one["difference"]) for one in named.values()), shares_words(score, part["value"], named))
        for score in scores
        if score.attribute
        for part in score.detail.get("contributions", ())
        if (named := {group: one for group, one in part["by_group"].items() if one.get("named")})
    ]
    return [words for _, words in sorted(found, key=lambda pair: -pair[0])]


def shares_words(score: Score, value: str, named: Mapping[str, Any]) -> str:
    """The share of a value in both groups; of more than two in those that differ most, beside the mean over groups."""
    shares = {group: 100 * own.get(value, 0.0) for group, own in score.detail["distribution"].items()}
    if len(shares) == 2:
        told = shares
    else:
        most = sorted(named, key=lambda group: -abs(named[group]["difference"]))[:MOST_NAMED]
        told = {**{group: shares[group] for group in most}, "mean of all": sum(shares.values()) / len(shares)}
    return f"{value}: {', '.join(f'{group} {share:.0f} %' for group, share in told.items())}"


def published_tests(score: Score) -> Iterator[str]:
    """A line for each published test that was made beside the default one."""
    for name, found in score.detail.get("tests", {}).items():
        if found["p_value"] is not None:
            yield (
                f"test of {name} ({found['permuted']} exchanged): raw {found['value']:.1f}, chance reaches "
                f"{found['null_p95']:.1f}, p {p_value_words(found['p_value'])}"
            )


PERCENT = frozenset({"slifs", "slms", "slbs", "slbs_binomial", "parity_deviation", "choice_by_place", "accuracy"})


def _digits(score: Score) -> int:
    return 1 if is_shift(score) or score.metric in PERCENT else 3


def _unit(score: Score) -> str:
    return " %" if score.metric in PERCENT else ""
