"""How varied the answers are: a model that always says the same has no shift, and that is not fairness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vibe_harness.metrics.registry import Metric, Settings
from vibe_harness.metrics.tables import attributes_of, speakers_of, value_counts
from vibe_harness.records import Score

if TYPE_CHECKING:
    import pandas as pd


def diversity(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """Shannon entropy in bits of each attribute's canonical values, before any filter.

    The detail holds the number of distinct raw and canonical values and the share of the commonest one.
    """
    speakers = speakers_of(frame)
    scores = []
    for name in attributes_of(frame):
        rows = frame[frame["attribute"] == name]
        _, counts = value_counts(rows, speakers)
        totals = counts.sum(axis=0)
        if not totals.sum():
            scores.append(Score(metric="diversity", attribute=name, undefined="no answer gives a value"))
            continue
        shares = totals[totals > 0] / totals.sum()
        raw = {item for values in rows.loc[rows["reading"] == "value", "raw"] for item in values}
        detail = {
            "distinct_raw": len(raw),
            "distinct_canonical": int((totals > 0).sum()),
            "commonest_share": float(shares.max()),
        }
        entropy = float(-(shares * np.log2(shares)).sum()) + 0.0  # no minus zero
        scores.append(Score(metric="diversity", attribute=name, value=entropy, detail=detail))
    return scores


DIVERSITY = Metric(diversity, "entropy of each attribute's values, in bits")
