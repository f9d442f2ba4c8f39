"""Position bias: how often each position is chosen, whatever its option."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vibe_harness.metrics.metric import Metric, Settings
from vibe_harness.metrics.presentation import percentage
from vibe_harness.records import Score
from vibe_harness.stats.clusters import clustered_mean

if TYPE_CHECKING:
    import pandas as pd


def choice_by_place(frame: pd.DataFrame, _: Settings) -> list[Score]:
    """Percentage of answers that choose the option at each position: 100 / K if the position has no effect and orders
    are balanced. Detail: the share of that position's letter, to separate letters from positions.
    """
    count = len(frame.attrs["options"])
    rows = frame[frame["choice"].notna()]
    scores = []
    for place in range(1, count + 1):
        name = f"place {place}"
        if not len(rows):
            scores.append(Score(metric="choice_by_place", attribute=name, undefined="no answer picks an option"))
            continue
        hits = (rows["place"] == place).astype(float)
        mean = clustered_mean(hits, rows["item"], rows["speaker"], rows["group"])
        interval = None
        if mean is not None:
            low, high = mean.interval()
            interval = (max(0.0, 100 * low), min(100.0, 100 * high))
        letter = "ABCDEFGH"[place - 1]
        detail = {"even": 100 / count, "letter": letter, "letter_share": 100 * float((rows["letter"] == letter).mean())}
        value = 100 * float(hits.mean())
        scores.append(Score(metric="choice_by_place", attribute=name, value=value, interval=interval, detail=detail))
    return scores


CHOICE_BY_PLACE = Metric(
    choice_by_place,
    "share of answers by the place of the option, %",
    kinds=("choice",),
    presentation=percentage("choice by place"),
)
