"""Whether a task's shift generalises to other sentences, for corpora whose speakers share sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from vibe_harness.metrics.frame_counts import Cells, Speakers, cell_counts, stratum_of
from vibe_harness.stats.sentences import FEWEST, crossed_shift

if TYPE_CHECKING:
    import pandas as pd

COLUMN = "sentence_id"
MOST_COUNTS = 20_000_000
"""Largest size of the table of speakers, sentences and values that is checked."""


def sentence_check(
    frame: pd.DataFrame, kept: Mapping[str, tuple[str, ...]], speakers: Speakers, seed: int
) -> dict[str, Any]:
    """The entry "over_sentences" of a task's detail; empty for a corpus whose speakers share no sentences.

    kept: attributes with a score -> their kept values. sentences: number of sentences in every group. at_least: the
    cross-fitted score with speakers and sentences as random factors; low: lower end of its 95 % interval, above 0 if
    the shift is shown to generalise to other sentences. reason: why they are null.
    """
    if not kept or COLUMN not in frame or frame[COLUMN].isna().any() or not _shared(frame):
        return {}
    cells = Cells.of(frame, [COLUMN])
    tables = []
    for name, values in kept.items():
        if len(speakers.names) * len(cells.names) * len(values) > MOST_COUNTS:
            return {}
        rows = (frame["attribute"] == name).to_numpy()
        found, counts = cell_counts(frame[rows], speakers, cells[rows])
        tables.append(counts[..., np.isin(found, values)])
    shift = crossed_shift(tables, speakers.codes, seed=seed)
    detail = {"sentences": shift.sentences, "at_least": shift.at_least, "low": shift.low()}
    return {"over_sentences": {**detail, **({"reason": shift.reason} if shift.reason else {})}}


def _shared(frame: pd.DataFrame) -> bool:
    """Whether there are enough sentences, most of them spoken by several speakers."""
    pairs = frame[["speaker"]].assign(sentence=stratum_of(frame, COLUMN)).drop_duplicates()
    speakers = pairs.groupby("sentence").size()
    return len(speakers) >= FEWEST and float((speakers > 1).mean()) > 0.5
