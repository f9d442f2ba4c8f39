"""nTVD of each attribute, and its mean over the task's attributes, with the speaker-level permutation test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vibe_harness.metrics.registry import Metric, Settings
from vibe_harness.metrics.tables import (
    Counts,
    Speakers,
    attributes_of,
    speakers_of,
    strata_codes,
    value_counts,
)
from vibe_harness.records import Score
from vibe_harness.stats.agreement import tau_study
from vibe_harness.stats.bracket import Bracket, bracket
from vibe_harness.stats.ntvd import kept_values
from vibe_harness.stats.permutation import PermutationTest, Tested, permutation_test
from vibe_harness.stats.values import contributions

if TYPE_CHECKING:
    import pandas as pd


def ntvd(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """nTVD by attribute and for the task (VIBE, equations 2 to 5). 0: no shift; 100: no value in common.

    Values seen fewer than tau times over all groups together are left out first. The task's score is the plain mean
    over the attributes that have one; those left out are named in its detail. With each raw score go the null band and
    p of the speaker-level permutation test, and the bracket that holds the true shift.
    """
    speakers = speakers_of(frame)
    names = attributes_of(frame)
    tables, details, whole_tables = [], [], []
    for name in names:
        values, counts = value_counts(frame[frame["attribute"] == name], speakers)
        whole_tables.append(speakers.by_group(counts))
        kept = kept_values(counts, settings.tau)
        tables.append(counts[:, kept])
        details.append(_detail([v for v, k in zip(values, kept, strict=True) if k], counts, kept, speakers))
    strata = strata_codes(frame, speakers, settings.speaker_strata)
    test = permutation_test(tables, speakers.codes, strata, permutations=settings.permutations, seed=settings.seed)
    brackets = bracket(tables, speakers.codes, seed=settings.seed)
    permuted = permuted_words(settings)
    left_out = {names[index]: reason for index, reason in test.left_out.items()}
    whole = tested_score("ntvd", None, test.mean, test, permuted, brackets.mean)
    parts = [
        tested_score("ntvd", name, tested, test, permuted, part)
        for name, tested, part in zip(names, test.attributes, brackets.attributes, strict=True)
    ]
    return [
        replace(whole, detail={**whole.detail, "attributes_left_out": left_out, "by_tau": _by_tau(whole_tables)}),
        *(replace(part, detail={**part.detail, **detail}) for part, detail in zip(parts, details, strict=True)),
    ]


def _by_tau(tables: list[Counts]) -> dict[str, float | None]:
    """tau -> the task's score had values seen fewer times been left out; None where no attribute has one.

    tables: (G, V) for each attribute, not filtered.
    """
    study = tau_study([tables])
    scores = [float(score) for score in study.scores[:, 0]]
    return {str(tau): None if score != score else score for tau, score in zip(study.taus, scores, strict=True)}


def permuted_words(settings: Settings) -> str:
    """What is permuted within what, in words."""
    return "speakers" + (f" within {' and '.join(settings.speaker_strata)}" if settings.speaker_strata else "")


def tested_score(
    metric: str,
    attribute: str | None,
    tested: Tested,
    test: PermutationTest,
    permuted: str,
    around: Bracket | None = None,
) -> Score:
    """A Score out of a tested statistic and the bracket around it."""
    has_test = tested.p_value is not None
    detail: dict[str, Any] = {} if has_test or tested.value is None else {"untested": tested.reason}
    if around is not None and tested.value is not None and around.reason is not None:
        detail["no_interval"] = around.reason
    return Score(
        metric=metric,
        attribute=attribute,
        value=tested.value,
        undefined=tested.reason if tested.value is None else None,
        p_value=tested.p_value,
        null_mean=tested.null_mean,
        null_p95=tested.null_p95,
        at_least=around.at_least if around else None,
        at_most=around.at_most if around else None,
        interval=around.interval if around else None,
        permuted=permuted if has_test else None,
        permutations=test.permutations if has_test else None,
        exact=test.exact if has_test else None,
        detail=detail,
    )


def _detail(values: list[str], counts: Counts, kept: Any, speakers: Speakers) -> dict[str, Any]:
    """Shares of the kept values by group, and how much of the answers the filter keeps."""
    by_group = speakers.by_group(counts)
    totals, kept_totals = by_group.sum(axis=1), by_group[:, kept].sum(axis=1)
    shares = {}
    for index, group in enumerate(speakers.groups):
        if kept_totals[index]:
            row = by_group[index][kept] / kept_totals[index]
            shares[group] = {value: float(share) for value, share in zip(values, row, strict=True)}
        else:
            shares[group] = {}
    return {
        "distinct_values": int(counts.shape[1]),
        "kept_values": len(values),
        "items": int(totals.sum()),
        "kept_share": float(kept_totals.sum() / totals.sum()) if totals.sum() else None,
        "kept_share_by_group": {
            group: float(kept_totals[i] / totals[i]) if totals[i] else None for i, group in enumerate(speakers.groups)
        },
        "distribution": shares,
        "contributions": _contributions(values, counts[:, kept], speakers),
    }


def _contributions(values: list[str], counts: Counts, speakers: Speakers) -> list[dict[str, Any]]:
    """What each value adds to the score, the largest first; by group its difference from the mean over groups.

    Differences and their 95 % intervals are in points of share.
    """
    found = contributions(counts, speakers.codes)
    if found.parts is None or found.differences is None:
        return []
    parts = found.parts.tolist()
    rows = []
    for column in sorted(range(len(values)), key=lambda c: (-parts[c], values[c])):
        by_group = {}
        for row, group in enumerate(speakers.groups):
            one: dict[str, Any] = {"difference": float(found.differences[row, column]), "interval": None}
            if found.low is not None and found.high is not None:
                one["interval"] = [float(found.low[row, column]), float(found.high[row, column])]
            by_group[group] = one
        rows.append({"value": values[column], "adds": parts[column], "by_group": by_group})
    return rows


NTVD = Metric(ntvd, "how far the answers' distribution shifts between groups, 0 to 100")
