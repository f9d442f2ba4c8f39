"""What the filter leaves out: whether it takes more from one group, and whether a shift lives in what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.metrics.frame_counts import Counts, Speakers
from vibe_harness.metrics.metric import Settings
from vibe_harness.stats.adjust import adjusted
from vibe_harness.stats.coverage import CoverageTest, coverage_tests
from vibe_harness.stats.ntvd import standardised_ntvd
from vibe_harness.stats.permutation import TestResult, permutation_tests

LOOKED_AT = 0.05
"""Share of the values left out up to which they are not tested: they could not move a score by more than that."""
PERMUTATIONS = 999
"""Most permutations of the values left out, which can be very many."""


@dataclass(frozen=True, slots=True)
class DiscardedValues:
    """counts: (S, H, V), not filtered. kept: (V,)."""

    counts: Counts
    kept: NDArray[np.bool_]

    @property
    def share(self) -> float:
        """Share of all values that is left out."""
        total = int(self.counts.sum())
        return float(self.counts[..., ~self.kept].sum() / total) if total else 0.0

    @property
    def rare(self) -> Counts:
        """(S, V') counts of the values left out."""
        return np.asarray(self.counts[..., ~self.kept].sum(axis=1))

    @property
    def kept_or_not(self) -> Counts:
        """(S, 2): values left out, values kept."""
        kept = self.counts[..., self.kept].sum(axis=(1, 2))
        return np.stack([self.counts.sum(axis=(1, 2)) - kept, kept], axis=1)


def filter_details(
    attributes: Sequence[DiscardedValues], speakers: Speakers, strata: NDArray[np.int64] | None, settings: Settings
) -> list[dict[str, Any]]:
    """The entry "filter" of each attribute's detail; empty if no value is left out.

    left_out_share: of all values. kept_difference: largest minus smallest kept share of the groups, in points; kept_p:
    p of the speaker-level permutation test, adjusted over the attributes (Benjamini and Hochberg). left_out_ntvd,
    left_out_null_mean, left_out_p: nTVD of the left-out values alone, unfiltered, its mean under the null hypothesis,
    and its p, adjusted in the same way; null if at most LOOKED_AT is left out. left_out_shift: what these values would
    add to the score beyond chance, in points. ntvd_with_other: the score with all left-out values as one, "other".
    """
    looked = [one.counts.any() and not one.kept.all() for one in attributes]
    chosen = [one for one, wanted in zip(attributes, looked, strict=True) if wanted]
    kept = coverage_tests(
        [one.kept_or_not for one in chosen], speakers.codes, strata,
        permutations=settings.permutations, seed=settings.seed,
    )  # fmt: skip
    rare = _rare_tests(chosen, speakers, strata, settings)
    kept_p = adjusted([test.p_value for test in kept], [None] * len(kept))
    rare_p = adjusted([test.p_value if test else None for test in rare], [None] * len(rare))
    details = iter([_detail(*row, speakers) for row in zip(chosen, kept, kept_p, rare, rare_p, strict=True)])
    return [{"filter": next(details)} if wanted else {} for wanted in looked]


def _rare_tests(
    attributes: Sequence[DiscardedValues], speakers: Speakers, strata: NDArray[np.int64] | None, settings: Settings
) -> list[TestResult | None]:
    results: list[TestResult | None] = [None] * len(attributes)
    places = [place for place, one in enumerate(attributes) if one.share > LOOKED_AT]
    if not places:
        return results
    tests = permutation_tests(
        [[attributes[place].rare] for place in places], speakers.codes, strata,
        permutations=min(settings.permutations, PERMUTATIONS), seed=settings.seed,
    )  # fmt: skip
    for place, test in zip(places, tests, strict=True):
        results[place] = test.attributes[0]
    return results


def _detail(
    one: DiscardedValues, kept: CoverageTest, kept_p: float | None, rare: TestResult | None, rare_p: float | None,
    speakers: Speakers,
) -> dict[str, Any]:  # fmt: skip
    pooled = np.concatenate([one.counts[..., one.kept], one.counts[..., ~one.kept].sum(axis=2, keepdims=True)], axis=2)
    with_other = standardised_ntvd(speakers.by_group(pooled))
    shift = None
    if rare is not None and rare.value is not None and rare.null_mean is not None:
        shift = one.share * max(rare.value - rare.null_mean, 0.0)
    return {
        "left_out_share": one.share,
        "kept_difference": kept.difference,
        "kept_p": kept_p,
        "left_out_ntvd": rare.value if rare else None,
        "left_out_null_mean": rare.null_mean if rare else None,
        "left_out_p": rare_p,
        "left_out_shift": shift,
        "ntvd_with_other": float(with_other) if np.isfinite(with_other) else None,
    }
