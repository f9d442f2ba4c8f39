"""How varied the answers are: a model that always says the same has no shift, and that is not fairness."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from vibe_harness.metrics.frame_counts import attributes_of, items_of, speakers_of, value_counts
from vibe_harness.metrics.metric import Metric, Settings
from vibe_harness.metrics.presentation import Presentation
from vibe_harness.metrics.shift_notes import alike_notes
from vibe_harness.records import Score
from vibe_harness.stats.diversity import diversity as diversity_of
from vibe_harness.stats.diversity import identical_share

if TYPE_CHECKING:
    import pandas as pd


def diversity(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    """Shannon entropy in bits of each attribute's canonical values, before any filter, and its mean over attributes.

    The detail holds the number of distinct raw and canonical values and the share of the commonest one; that of the
    mean holds, over all and by group, the share of the responses that repeat another one word for word.
    """
    speakers = speakers_of(frame)
    scores: list[Score] = []
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
    entropies = [score.value for score in scores if score.value is not None]
    whole = Score(
        metric="diversity",
        value=fmean(entropies) if entropies else None,
        undefined=None if entropies else "no answer gives a value",
        detail=_identical(frame),
    )
    return [whole, *scores]


def _identical(frame: pd.DataFrame) -> dict[str, Any]:
    """How many responses repeat another one; nothing where the frame has no digests of the responses."""
    if "answer" not in frame:
        return {}
    answered = frame.drop_duplicates("request")[["group", "answer"]].dropna()
    groups = answered["group"].astype(str)
    return {
        "identical_share": identical_share(answered["answer"].astype(str).tolist()),
        "identical_share_by_group": {
            group: identical_share(answered["answer"][groups == group].astype(str).tolist())
            for group in sorted(frame["group"].astype(str).unique())
        },
    }


DIVERSITY = Metric(
    diversity,
    "entropy of each attribute's values, in bits",
    presentation=Presentation("diversity", "beside", unit="bits", digits=2, notes=alike_notes),
)
