"""What a reader must know before a score is believed: the same columns on terminal, pages, leaderboard and exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from vibe_harness.records import Outcome, Score
from vibe_harness.scoring.reliability import DIFFERENCE_LIMIT, WITHOUT_VALUE_LIMIT, differs
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.store.results import Results, TaskResult

IDENTICAL_LIMIT = 0.5  # share of responses that repeat another; past it a low score says little
KEPT_LIMIT = 0.5  # share of an attribute's values that the filter keeps; under it most answers are not in the score
MOST_GROUPS = 4  # groups whose numbers are told one by one


class TrustColumn(NamedTuple):
    """One thing to know of a score. ok: False where it speaks against the score, None where it is not known."""

    heading: str
    words: str
    ok: bool | None


def trust_columns(results: Results, task: TaskResult) -> list[TrustColumn]:
    """The columns of one task and dimension: always the same headings in the same order."""
    return [
        _hearing(results),
        _answers_read(task),
        _identical(task),
        _kept(task),
        _kept_by_group(task),
        _speakers(task),
        _confounds(results, task),
        _failed(task),
        _served(results),
    ]


def _hearing(results: Results) -> TrustColumn:
    ok = {"passed": True, "left out": False}.get(results.hearing_check)
    words = {"left out": "not made", "simulated": "none: simulated", "no audio": "none: no audio"}
    told = words.get(results.hearing_check, results.hearing_check)
    if results.modality != "audio":
        return TrustColumn("hearing check", f"{told}; given the {results.modality}", None)
    if results.hearing is not None:
        told += f": {results.hearing.right} of {results.hearing.clips} clips, by {results.hearing.by}"
    return TrustColumn("hearing check", told, ok)


def _answers_read(task: TaskResult) -> TrustColumn:
    if task.without_value is None:
        return TrustColumn("answers read", "unknown", None)
    return TrustColumn("answers read", f"{1 - task.without_value:.0%}", task.without_value <= WITHOUT_VALUE_LIMIT)


def _identical(task: TaskResult) -> TrustColumn:
    shares = [share for score in task.scores if (share := score.detail.get("identical_share")) is not None]
    if not shares:
        return TrustColumn("identical answers", "unknown", None)
    return TrustColumn("identical answers", f"{shares[0]:.0%}", shares[0] <= IDENTICAL_LIMIT)


def _kept(task: TaskResult) -> TrustColumn:
    """How much of the answers is in the score, by attribute."""
    shares = {name: score.detail["kept_share"] for name, score in _filtered(task)}
    if not shares:
        return TrustColumn("values kept", "unknown", None)
    least, most = min(shares, key=lambda name: shares[name]), max(shares.values())
    if f"{shares[least]:.0%}" == f"{most:.0%}":
        return TrustColumn("values kept", f"{most:.0%}", most >= KEPT_LIMIT)
    return TrustColumn("values kept", f"{shares[least]:.0%} ({least}) to {most:.0%}", shares[least] >= KEPT_LIMIT)


def _kept_by_group(task: TaskResult) -> TrustColumn:
    """Whether the filter keeps more of one group's answers than of another's: the largest difference is told."""
    differences = {
        name: found["kept_difference"]
        for name, score in _filtered(task)
        if (found := score.detail.get("filter")) and found.get("kept_difference") is not None
    }
    if not differences:
        return TrustColumn("kept by group", "unknown", None)
    uneven = [name for name, score in _filtered(task) if _kept_unevenly(score)]
    worst = max(uneven or differences, key=lambda name: differences[name])
    [score] = [score for name, score in _filtered(task) if name == worst]
    shares = {name: one for name, one in score.detail["kept_share_by_group"].items() if one is not None}
    low, high = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
    words = f"{worst}: {low} {shares[low]:.0%}, {high} {shares[high]:.0%}"
    if differences[worst] <= DIFFERENCE_LIMIT:
        return TrustColumn("kept by group", "alike", True)
    return TrustColumn("kept by group", words, False if uneven else None)  # apart, and perhaps by chance


def _kept_unevenly(score: Score) -> bool:
    """More than 5 points apart and an adjusted p under 0.05, the rule by which a score is not reliable."""
    found = score.detail.get("filter") or {}
    return differs(found.get("kept_difference"), found.get("kept_p"))


def _speakers(task: TaskResult) -> TrustColumn:
    counts = {name: group.speakers for name, group in task.groups.items()}
    smallest = [score.smallest_p for score in task.scores if score.attribute is None and score.smallest_p is not None]
    ok = bool(counts) and min(counts.values()) > 1 and all(p_value <= ALPHA for p_value in smallest)
    return TrustColumn("speakers a group", _by_group(counts), ok)


def _confounds(results: Results, task: TaskResult) -> TrustColumn:
    """What the groups differ in beyond the voice. Without measurements, what is said was compared at most."""
    compared = [one for one in results.confounds or () if one.dimension == task.dimension]
    found = [one.sentence for one in compared if one.sentence]
    if not found and not any(one.about == "recording" for one in compared):
        return TrustColumn("confounds", "recordings not compared", None)
    return TrustColumn("confounds", "; ".join(found) or "none found", not found)


def _failed(task: TaskResult) -> TrustColumn:
    counts = {name: group.outcomes.get(Outcome.ERROR, 0) for name, group in task.groups.items()}
    requests = sum(group.requests for group in task.groups.values())
    failed = sum(counts.values())
    where = f" ({_by_group(counts)})" if failed else ""
    return TrustColumn("failed requests", f"{failed:,} of {requests:,}{where}", failed == 0)


def _served(results: Results) -> TrustColumn:
    """The name under which the engine answered; another than the card's speaks against what the score is said to be."""
    if results.served_model is None:
        return TrustColumn("served model", "not named", None)
    other = " (not the model of the card)" if results.served_as_asked is False else ""
    return TrustColumn("served model", f"{results.served_model}{other}", results.served_as_asked)


def _filtered(task: TaskResult) -> Iterable[tuple[str, Score]]:
    """Attribute, in words, and score of what the filter was applied to."""
    return [
        (score.attribute.replace("_", " "), score)
        for score in task.scores
        if score.attribute and score.detail.get("kept_share") is not None
    ]


def _by_group(counts: Mapping[str, Any]) -> str:
    """ "female 12, male 12"; of many groups the range: "3 to 12 in 40 groups"."""
    if len(counts) <= MOST_GROUPS:
        return ", ".join(f"{name} {count:,}" for name, count in counts.items())
    low, high = min(counts.values()), max(counts.values())
    return f"{f'{low:,}' if low == high else f'{low:,} to {high:,}'} in {len(counts)} groups"
