"""What is said of an nTVD below its figures: values named by the test, other tests, other sentences, the filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vibe_harness.records import Score

MOST_VALUES = 3
"""Values named for an attribute: those that add most to its score."""
MOST_GROUPS = 4
"""Groups that a value's shares are given for; of more, those with the highest and the lowest shares."""


def kept_share(score: Score) -> str:
    """How much of the answers' values the filter keeps, in per cent."""
    share = score.detail.get("kept_share")
    return "" if share is None else f"{share:.0%}"


def refused_by_group(score: Score) -> Mapping[str, float]:
    """Share of refusals of each group, in per cent."""
    found = score.detail.get("refused_share_by_group", {})
    return {group: 100 * share for group, share in found.items() if share is not None}


def shift_notes(score: Score) -> list[str]:
    """Of the task's score: what was evened out, other tests and other sentences. Of an attribute's: named values."""
    if score.attribute:
        return named_values_of(score)
    notes = []
    if columns := score.detail.get("standardised_over"):
        notes.append(f"evened out over {' and '.join(columns)}")
    for name, found in score.detail.get("tests", {}).items():
        if found["p_value"] is not None:
            notes.append(
                f"test of {name} ({found['permuted']} exchanged): nTVD {found['value']:.1f}, "
                f"chance reaches {found['null_p95']:.1f}, p {found['p_value']:.4f}"
            )
    return notes + _other_sentences(score.detail.get("over_sentences"))


def named_values_of(score: Score) -> list[str]:
    """One line with the values that the test names, each with the groups' shares; none where it names none."""
    distribution = score.detail.get("distribution", {})
    named = [
        part["value"]
        for part in score.detail.get("contributions", [])
        if any(found.get("named") for found in part["by_group"].values())
    ]
    shown = [f"{value}: {_shares(value, distribution)}" for value in named[:MOST_VALUES]]
    more = [f"{len(named) - MOST_VALUES} more"] if len(named) > MOST_VALUES else []
    return ["; ".join([*shown, *more])] if shown else []


def alike_notes(score: Score) -> list[str]:
    """How many responses repeat another one."""
    share = score.detail.get("identical_share")
    return [f"{share:.0%} of the responses repeat another one word for word"] if share else []


def _shares(value: str, distribution: Mapping[str, Mapping[str, float]]) -> str:
    shares = {group: found.get(value, 0.0) for group, found in distribution.items()}
    if len(shares) <= MOST_GROUPS:
        return ", ".join(f"{group} {share:.0%}" for group, share in shares.items())
    high, low = max(sorted(shares), key=shares.__getitem__), min(sorted(shares), key=shares.__getitem__)
    return f"from {low} {shares[low]:.0%} to {high} {shares[high]:.0%}"


def _other_sentences(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    if found.get("reason"):
        return [f"other sentences: {found['reason']}"]
    low = found.get("low")
    if low is None:
        return []
    if low > 0:
        return [f"the shift holds for other sentences too: its 95 % interval there begins at {low:.1f}"]
    return ["whether the shift holds for other sentences is not shown: its 95 % interval there begins at 0"]
