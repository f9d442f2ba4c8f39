"""Strata of utterances (emotion, sentence) that are distributed unevenly over the groups, and are standardised.

If women have more angry clips than men, answers that depend on anger look like a shift. Distributions are then directly
standardised over such strata (`stats.ntvd.standardised`). Balanced strata do not need it: with the same shares of
strata in every group, the standardised distributions are the plain ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vibe_harness.metrics.frame_counts import Speakers, strata_codes, stratum_of
from vibe_harness.metrics.metric import Settings
from vibe_harness.stats.permutation import permutation_tests

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 1.0
"""Points of nTVD of the strata themselves. Answers that only follow the strata cannot differ more between groups than
the strata do, so that less than this is left alone."""
ALPHA = 0.05
MOST_STRATA = 100
"""Cells that are evened out at most: with more of them cells run out of answers."""


@dataclass(frozen=True, slots=True)
class Balance:
    """columns: those to even out. imbalance: column -> nTVD of its strata between the groups. left: columns that are
    unbalanced and cannot be evened out as well -> why."""

    columns: tuple[str, ...]
    imbalance: dict[str, float]
    left: dict[str, str]


def balance_of(frame: pd.DataFrame, speakers: Speakers, settings: Settings) -> Balance:
    """How evenly the requests of a frame are spread over the declared strata, `settings.strata`.

    A column is evened out where its strata differ between the groups by more than LIMIT, and by more than between
    randomly exchanged speakers (p <= 0.05 of the same permutation test): what differs between speakers by chance, as in
    a small draw of clips, does not upset the test of the answers, which exchanges the same speakers.
    """
    columns = [name for name in settings.strata if name not in settings.speaker_strata]
    if not columns or len(speakers.groups) < 2:
        return Balance((), {}, {})
    requests = frame.drop_duplicates("request")
    tables = []
    for column in columns:
        codes, names = stratum_of(requests, column).factorize(sort=True)
        table = np.zeros((len(speakers.names), len(names)), dtype=np.int64)
        np.add.at(table, (speakers.of(requests), codes), 1)
        tables.append([table])
    strata = strata_codes(frame, speakers, settings.speaker_strata)
    tests = permutation_tests(tables, speakers.codes, strata, permutations=settings.permutations, seed=settings.seed)
    measured = {column: test.mean for column, test in zip(columns, tests, strict=True) if test.mean.value is not None}
    uneven = [
        column
        for column, mean in measured.items()
        if mean.value is not None and mean.value > LIMIT and (mean.p_value is None or mean.p_value <= ALPHA)
    ]
    chosen, left = _within_limit(requests, uneven)
    return Balance(chosen, {column: mean.value or 0.0 for column, mean in measured.items()}, left)


def _within_limit(requests: pd.DataFrame, uneven: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """As many of the columns, in the card's order, as cross to MOST_STRATA cells."""
    chosen: list[str] = []
    left = {}
    for column in uneven:
        crossed = len(requests.assign(**{name: stratum_of(requests, name) for name in (*chosen, column)})
                      [[*chosen, column]].drop_duplicates())  # fmt: skip
        if crossed > MOST_STRATA:
            left[column] = f"it would make {crossed} cells, and at most {MOST_STRATA} can be evened out"
        else:
            chosen.append(column)
    return tuple(chosen), left
