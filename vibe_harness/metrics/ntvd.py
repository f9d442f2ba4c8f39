"""nTVD of each attribute, and its mean over the task's attributes, with the speaker-level permutation test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.metrics.balance import Balance, balance_of
from vibe_harness.metrics.frame_counts import (
    Cells,
    Counts,
    Speakers,
    attributes_of,
    cell_counts,
    speakers_of,
    strata_codes,
)
from vibe_harness.metrics.left_out import DiscardedValues, filter_details
from vibe_harness.metrics.metric import Metric, Settings
from vibe_harness.metrics.presentation import ExtraColumn, Presentation
from vibe_harness.metrics.published import published_tests
from vibe_harness.metrics.sentence_check import sentence_check
from vibe_harness.metrics.shift_notes import kept_share, shift_notes
from vibe_harness.metrics.value_details import level_of_named, named_values, value_rows
from vibe_harness.records import Reading, Score
from vibe_harness.stats.agreement import tau_study
from vibe_harness.stats.bracket import Bracket, bracket
from vibe_harness.stats.level import permutation_test_with_level
from vibe_harness.stats.maximum import value_tests
from vibe_harness.stats.ntvd import kept_values, published_ntvd, standardised_ntvd
from vibe_harness.stats.permutation import STUDENTISED, PermutationTest, TestResult
from vibe_harness.stats.values import Contributions, contributions
from vibe_harness.stats.within import within_bracket

if TYPE_CHECKING:
    import pandas as pd


def ntvd(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """nTVD by attribute and for the task (VIBE, equations 2 to 5). 0: no shift; 100: no value in common.

    Values seen fewer than tau times over all groups together are left out first. The task's score is the plain mean
    over the attributes that have one; those left out are named in its detail. With each raw score go the null band and
    p of the speaker-level permutation test, and the bracket that holds the true shift. Over strata of utterances that
    are spread unevenly over the groups the distributions are directly standardised (`balance_of`).
    """
    speakers = speakers_of(frame)
    names = attributes_of(frame)
    balance = balance_of(frame, speakers, settings)
    cells = Cells.of(frame, balance.columns)
    answers = [_answers(frame, name, speakers, cells, settings.tau) for name in names]
    strata = strata_codes(frame, speakers, settings.speaker_strata)
    tables = [one.kept_counts for one in answers]
    test = permutation_test_with_level(
        tables, speakers.codes, strata, permutations=settings.permutations, seed=settings.seed
    )
    published = published_tests(frame, names, [one.kept_names for one in answers], speakers, settings)
    whole, parts = _scores(names, tables, test, speakers, settings)
    parts = [_explained(part, frame, one, speakers, settings) for part, one in zip(parts, answers, strict=True)]
    left_out = {name: part.undefined for name, part in zip(names, parts, strict=True) if part.undefined}
    if whole.value is None:
        whole = replace(whole, undefined="; ".join(sorted(set(left_out.values()))))
    detail = {"attributes_left_out": left_out, **_task_detail(names, answers, speakers), **_balance_detail(balance)}
    if not balance.columns:
        scored = {name: one.kept_names for name, one in zip(names, answers, strict=True) if name not in left_out}
        detail |= sentence_check(frame, scored, speakers, settings.seed)
    adjusted = [tested.adjusted for tested in test.attributes]
    details = [detail, *_attribute_details(answers, speakers, cells, strata, adjusted, settings)]
    return [
        replace(score, detail={**score.detail, **own, **({"tests": tests} if tests else {})})
        for score, own, tests in zip([whole, *parts], details, published, strict=True)
    ]


def _scores(
    names: Sequence[str], tables: Sequence[Counts], test: PermutationTest, speakers: Speakers, settings: Settings
) -> tuple[Score, list[Score]]:
    """The task's score and the attributes', each with its test and its bracket."""
    if speakers.owners is None:
        brackets = bracket(tables, speakers.codes, seed=settings.seed)
    else:
        brackets = within_bracket(tables, speakers.codes, speakers.owners, seed=settings.seed)
    permuted = permuted_words(speakers, settings)
    parts = [
        tested_score("ntvd", name, tested, test, permuted, part)
        for name, tested, part in zip(names, test.attributes, brackets.attributes, strict=True)
    ]
    return tested_score("ntvd", None, test.mean, test, permuted, brackets.mean), parts


@dataclass(frozen=True)
class _Answers:
    """One attribute's values and counts (S, H, V), and which of the values are kept."""

    values: tuple[str, ...]
    counts: Counts
    kept: NDArray[np.bool_]

    @property
    def kept_names(self) -> tuple[str, ...]:
        return tuple(value for value, kept in zip(self.values, self.kept, strict=True) if kept)

    @property
    def kept_counts(self) -> Counts:
        return self.counts[..., self.kept]


def _answers(frame: pd.DataFrame, name: str, speakers: Speakers, cells: Cells, tau: int) -> _Answers:
    rows = (frame["attribute"] == name).to_numpy()
    values, counts = cell_counts(frame[rows], speakers, cells[rows])
    return _Answers(values, counts, kept_values(counts, tau))


def _explained(score: Score, frame: pd.DataFrame, answers: _Answers, speakers: Speakers, settings: Settings) -> Score:
    """The score of an attribute, with the reason in the data where it has none."""
    if not score.undefined:
        return score
    reason = _why_undefined(score.undefined, speakers.by_group(answers.counts), settings.tau)
    return replace(score, undefined=reason or _nothing_read(frame[frame["attribute"] == score.attribute]))


def _task_detail(names: Sequence[str], answers: Sequence[_Answers], speakers: Speakers) -> dict[str, Any]:
    """The published score, and what other tau would give."""
    pooled = [speakers.by_group(one.kept_counts).sum(axis=1) for one in answers]
    return {
        "published_ntvd": _published(pooled),
        "published_left_out": [
            name for name, table in zip(names, pooled, strict=True) if np.isnan(published_ntvd(table))
        ],
        "by_tau": _by_tau([speakers.by_group(one.counts) for one in answers]),
    }


def _attribute_details(
    answers: Sequence[_Answers],
    speakers: Speakers,
    cells: Cells,
    strata: NDArray[np.int64] | None,
    attribute_p: Sequence[float | None],
    settings: Settings,
) -> list[dict[str, Any]]:
    """Shares, which values carry the shift, and what the filter leaves out. attribute_p: adjusted within the task."""
    tables = [one.kept_counts for one in answers]
    found = [contributions(table, speakers.codes) for table in tables]
    if speakers.owners is not None:  # their errors are those of separate speakers, which these units are not
        found = [replace(own, errors=None) for own in found]
    value_p = value_tests(tables, speakers.codes, strata, permutations=settings.permutations, seed=settings.seed)
    named = named_values(found, value_p, attribute_p)
    level = level_of_named(named)
    filtered = filter_details([DiscardedValues(one.counts, one.kept) for one in answers], speakers, strata, settings)
    return [
        {
            **_detail(one, own, speakers, cells),
            "contributions": value_rows(one.kept_names, speakers.groups, own, p_values, chosen, level),
            **watched,
        }
        for one, own, p_values, chosen, watched in zip(answers, found, value_p, named, filtered, strict=True)
    ]


def _why_undefined(reason: str, counts: Counts, tau: int) -> str | None:
    """Why an attribute has no score, and what to do where the filter alone is to blame; None where nothing was read.

    counts: (G, H, V), not filtered.
    """
    if not counts.any():
        return None
    filtered = np.isfinite(standardised_ntvd(counts))
    return f"{reason} (tau is {tau}: ask more clips, or set a lower --tau)" if filtered else reason


def _nothing_read(rows: pd.DataFrame) -> str:
    """Why an attribute has no value at all: how its answers ended, the commonest end first."""
    ends = rows["outcome"].astype(str).where(rows["reading"] != Reading.UNPARSED, "unparsed")
    ends = ends.where((rows["reading"] != Reading.UNKNOWN) & (rows["reading"] != Reading.ERROR), rows["reading"])
    counts = ends.astype(str).replace({"ok": "silent on it", "unknown": "unclear"}).value_counts(sort=False)
    told = [f"{count} {end}" for end, count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))]
    return f"no answer gives a value: {', '.join(told)}"


def _published(tables: list[Counts]) -> float | None:
    """The task's score as it was published: pooled over strata, an attribute of a single value counting 0. As in the
    authors' code the mean is over the attributes of which the filter leaves every group a value; None where it leaves
    none. tables: (G, V) for each attribute, filtered."""
    scores = [float(published_ntvd(table)) for table in tables]
    defined = [score for score in scores if np.isfinite(score)]
    return float(np.mean(defined)) if defined else None


def _by_tau(tables: list[Counts]) -> dict[str, float | None]:
    """tau -> the task's score had values seen fewer times been left out; None where no attribute has one.

    tables: (G, H, V) for each attribute, not filtered.
    """
    study = tau_study([tables])
    scores = [float(score) for score in study.scores[:, 0]]
    return {str(tau): None if score != score else score for tau, score in zip(study.taus, scores, strict=True)}


def _balance_detail(balance: Balance) -> dict[str, Any]:
    """What was evened out, and how uneven the declared strata are; nothing for a corpus that declares none."""
    if not balance.imbalance:
        return {}
    return {
        "standardised_over": list(balance.columns),
        "imbalance": balance.imbalance,
        **({"not_standardised": balance.left} if balance.left else {}),
    }


def permuted_words(speakers: Speakers, settings: Settings) -> str:
    """What is permuted within what, in words."""
    if speakers.owners is not None:
        return "groups within speakers"
    return "speakers" + (f" within {' and '.join(settings.speaker_strata)}" if settings.speaker_strata else "")


def tested_score(
    metric: str,
    attribute: str | None,
    tested: TestResult,
    test: PermutationTest,
    permuted: str,
    around: Bracket | None = None,
) -> Score:
    """A Score out of a tested statistic and the bracket around it."""
    if tested.value is None:
        return Score(metric=metric, attribute=attribute, undefined=tested.reason)
    detail: dict[str, Any] = {} if tested.level is None else {"level": tested.level}
    score = Score(metric=metric, attribute=attribute, value=tested.value)
    if around is not None:
        detail |= {"no_interval": around.reason} if around.reason is not None else {}
        score = replace(
            score, at_least=around.at_least, at_most=around.at_most, interval=around.interval,
            no_more_than=around.no_more_than,
        )  # fmt: skip
    if tested.p_value is None:
        return replace(score, detail={"untested": tested.reason, **detail})
    return replace(
        score,
        p_value=tested.p_value,
        p_within_task=tested.adjusted,
        smallest_p=test.smallest_p,
        null_mean=tested.null_mean,
        null_p95=tested.null_p95,
        test=STUDENTISED,
        permuted=permuted,
        permutations=test.permutations,
        complete=test.complete,
        exact=test.exact,
        detail=detail,
    )


def _detail(answers: _Answers, found: Contributions, speakers: Speakers, cells: Cells) -> dict[str, Any]:
    """Shares of the kept values by group, and how much of the answers the filter keeps."""
    by_group = speakers.by_group(answers.counts)
    kept = by_group[..., answers.kept]
    totals, kept_totals = by_group.sum(axis=(1, 2)), kept.sum(axis=(1, 2))
    shares = [_shares(row) for row in kept] if found.shares is None else (found.shares / 100).tolist()
    return {
        "distinct_values": len(answers.values),
        "kept_values": len(answers.kept_names),
        "items": int(totals.sum()),
        "kept_share": float(kept_totals.sum() / totals.sum()) if totals.sum() else None,
        "kept_share_by_group": {
            group: float(kept_totals[i] / totals[i]) if totals[i] else None for i, group in enumerate(speakers.groups)
        },
        "distribution": {
            group: dict(zip(answers.kept_names, row, strict=True)) if row else {}
            for group, row in zip(speakers.groups, shares, strict=True)
        },
        **({"cells_left_out": _left_out(kept, cells)} if cells.columns else {}),
    }


def _shares(counts: Counts) -> list[float]:
    """Shares of the values of one group (H, V), for an attribute without a score; empty without any value."""
    values = counts.sum(axis=0)
    return list((values / values.sum()).tolist()) if values.sum() else []


def _left_out(by_group: Counts, cells: Cells) -> dict[str, float]:
    """Cells that lack a group, and so are in no group's distribution -> their share of the kept answers."""
    totals = by_group.sum(axis=2)
    lacking = (totals == 0).any(axis=0) & (totals.sum(axis=0) > 0)
    return {cells.names[cell]: float(totals[:, cell].sum() / totals.sum()) for cell in np.flatnonzero(lacking)}


NTVD = Metric(
    ntvd,
    "how far the answers' distribution shifts between groups, 0 to 100",
    presentation=Presentation(
        "nTVD", "shift", digits=1, scale=(0, 100), neutral=0, picture="shares",
        columns=(ExtraColumn("kept", kept_share),), notes=shift_notes,
    ),
)  # fmt: skip
