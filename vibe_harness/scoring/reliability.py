"""How far the requests of a task came, and where too much is missing for its scores to be relied on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vibe_harness.metrics.frame_counts import Speakers, attributes_of, items_of, strata_codes
from vibe_harness.metrics.metric import Settings
from vibe_harness.records import Outcome, Reading, Score
from vibe_harness.stats.adjust import ALPHA, adjusted
from vibe_harness.store.results import GroupCoverage

if TYPE_CHECKING:
    import pandas as pd

WITHOUT_VALUE_LIMIT = 0.10  # of all readings; past it a score is not reliable
DIFFERENCE_LIMIT = 5.0  # points between groups, with an adjusted p under ALPHA
SHOWN = 4  # levels named in a warning
COVERED = ["request", "clip", "speaker", "group", "attribute", "outcome", "reading", "values", "thought", "unheard"]


def coverage_of(frame: pd.DataFrame) -> GroupCoverage:
    """How far the requests of a frame came, one group's."""
    requests = frame.drop_duplicates("request")
    readings, items = {}, {}
    for name in attributes_of(frame):
        rows = frame[frame["attribute"] == name]
        found = rows["reading"].astype(str).value_counts()
        readings[name] = {str(reading): int(found.get(str(reading), 0)) for reading in Reading}
        valued = readings[name][Reading.VALUE]
        items[name] = len(items_of(rows, "values")) / valued if valued else None
    outcomes = requests["outcome"].astype(str).value_counts()
    return GroupCoverage(
        speakers=int(frame["speaker"].nunique()),
        clips=int(frame["clip"].nunique()),
        requests=len(requests),
        outcomes={str(outcome): int(outcomes.get(str(outcome), 0)) for outcome in Outcome},
        readings=readings,
        items_per_response=items,
        thoughts=int(requests["thought"].sum()) if "thought" in frame else 0,  # a run of version 0.1 has no such column
        unheard=int(requests["unheard"].sum()) if "unheard" in frame else 0,
    )


def missing_values(frame: pd.DataFrame, without: pd.Series[bool]) -> list[str]:
    """A warning for each attribute whose share without a value is past the limit."""
    shares = without.groupby(frame["attribute"].astype(str)).mean()
    return [
        f"{name}: {share:.0%} of the responses gave no value (limit {WITHOUT_VALUE_LIMIT:.0%})"
        for name, share in sorted(shares.items())
        if share > WITHOUT_VALUE_LIMIT
    ]


def filter_warnings(scores: Sequence[Score], tau: int) -> list[str]:
    """A warning for each attribute of which the filter keeps less for one group, or hides a shift.

    More than 5 points and an adjusted p under 0.05, of the kept shares or of the values left out among themselves.
    """
    warnings = []
    for score in scores:
        found = score.detail.get("filter")
        if found is None:
            continue
        if differs(found["kept_difference"], found["kept_p"]):
            shares = {name: one for name, one in score.detail["kept_share_by_group"].items() if one is not None}
            most, least = max(shares, key=lambda name: shares[name]), min(shares, key=lambda name: shares[name])
            warnings.append(
                f"{score.attribute}: values seen under {tau} times are left out, which keeps {shares[least]:.0%} of "
                f"the values of {least} and {shares[most]:.0%} of {most} (adjusted p {found['kept_p']:.3g}): take more "
                "clips, or set a lower --tau"
            )
        if differs(found["left_out_shift"], found["left_out_p"]):
            warnings.append(
                f"{score.attribute}: the values seen under {tau} times, {found['left_out_share']:.0%} of all, differ "
                f"between the groups (nTVD {found['left_out_ntvd']:.0f} among themselves, "
                f"{found['left_out_null_mean']:.0f} by chance, adjusted p {found['left_out_p']:.3g}), which the score "
                "does not show: set a lower --tau"
            )
    return warnings


def differs(points: float | None, p_value: float | None) -> bool:
    """Whether groups are more than DIFFERENCE_LIMIT points apart, and by more than chance."""
    return points is not None and points > DIFFERENCE_LIMIT and p_value is not None and p_value < ALPHA


def missing_by_group(frame: pd.DataFrame, speakers: Speakers, settings: Settings) -> list[str]:
    """A warning for each attribute whose share without a value differs between groups.

    More than 5 points and p under 0.05, adjusted over the attributes by Benjamini and Hochberg.
    """
    from vibe_harness.stats.coverage import coverage_tests

    names = attributes_of(frame)
    tables = []
    for name in names:
        rows = frame[frame["attribute"] == name]
        tables.append(_counts_of(rows, (rows["reading"] == Reading.VALUE).to_numpy(), speakers))
    strata = strata_codes(frame, speakers, settings.speaker_strata)
    tests = coverage_tests(tables, speakers.codes, strata, permutations=settings.permutations, seed=settings.seed)
    if not any(test.difference is not None and test.difference > DIFFERENCE_LIMIT for test in tests):
        return []  # without adjusting, for which scipy takes half a second to import
    p_values = adjusted([test.p_value for test in tests], [None] * len(tests))
    return [
        f"{name}: the share without a value differs by {test.difference:.0f} points between groups (adjusted p {p:.3g})"
        for name, test, p in zip(names, tests, p_values, strict=True)
        if differs(test.difference, p)
    ]


def answers_in_doubt(frame: pd.DataFrame, speakers: Speakers, settings: Settings) -> list[str]:
    """A warning where many answers in free text, or one group's more than another's, were cut at the token limit or
    begin by saying that there is nothing to hear. What such answers name says little of the voice.
    """
    requests = frame.drop_duplicates("request")
    flags = {"were cut at the token limit (raise max_tokens)": (requests["outcome"] == Outcome.TRUNCATED).to_numpy()}
    if "unheard" in requests:
        flags["begin by saying that there is nothing to hear"] = requests["unheard"].fillna(value=False).to_numpy(bool)
    warnings = []
    for what, flag in flags.items():
        if not flag.any():
            continue
        shares = 100 * requests.assign(flag=flag).groupby("group", observed=True)["flag"].mean()
        told = ", ".join(f"{group} {share:.0f}%" for group, share in shares.items())
        if flag.mean() > WITHOUT_VALUE_LIMIT:
            warnings.append(f"{flag.mean():.0%} of the answers {what}, limit {WITHOUT_VALUE_LIMIT:.0%}: {told}")
        elif _differs_by_group(requests, flag, speakers, settings):
            warnings.append(f"answers that {what} differ between groups: {told}")
    return warnings


def _differs_by_group(requests: pd.DataFrame, flag: NDArray[np.bool_], speakers: Speakers, settings: Settings) -> bool:
    from vibe_harness.stats.coverage import coverage_tests

    counts = _counts_of(requests, flag, speakers)
    strata = strata_codes(requests, speakers, settings.speaker_strata)
    [test] = coverage_tests([counts], speakers.codes, strata, permutations=settings.permutations, seed=settings.seed)
    return differs(test.difference, test.p_value)


def _counts_of(rows: pd.DataFrame, flag: NDArray[np.bool_], speakers: Speakers) -> NDArray[np.int64]:
    """(S, 2): each speaker's rows without and with the flag."""
    counts = np.zeros((len(speakers.names), 2), dtype=np.int64)
    np.add.at(counts, (speakers.of(rows), flag.astype(np.int64)), 1)
    return counts


def missing_by_share(frame: pd.DataFrame) -> list[str]:
    """A warning where the share without a value differs between groups by more than 5 points, for groups that are not
    of speakers."""
    shares = 100 * (frame["reading"] != Reading.VALUE).groupby(frame["group"]).mean()
    apart = float(shares.max() - shares.min())
    if apart <= DIFFERENCE_LIMIT:
        return []
    return [
        f"choice: the share without a value differs by {apart:.0f} points between groups ({shares.idxmax()} "
        f"{shares.max():.0f} %, {shares.idxmin()} {shares.min():.0f} %)"
    ]
