"""How varied the answers are: a model that always says the same has no shift, and that is not fairness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vibe_harness.metrics.registry import Metric, Settings
from vibe_harness.metrics.tables import attributes_of, items_of, speakers_of, value_counts
from vibe_harness.records import Score
from vibe_harness.stats.diversity import diversity as diversity_of

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
        found = diversity_of(counts.sum(axis=0))
        if found is None:
            scores.append(Score(metric="diversity", attribute=name, undefined="no answer gives a value"))
            continue
        detail = {
            "distinct_raw": int(items_of(rows, "raw")["raw"].nunique()),
            "distinct_canonical": found.distinct,
            "commonest_share": found.commonest,
            "evenness": found.evenness,
        }
        scores.append(Score(metric="diversity", attribute=name, value=found.entropy, detail=detail))
    return scores


DIVERSITY = Metric(diversity, "entropy of each attribute's values, in bits")
