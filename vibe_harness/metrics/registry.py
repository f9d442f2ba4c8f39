"""What a metric is, and the metrics there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vibe_harness.records import Score, parts_of
from vibe_harness.registry import Registry

if TYPE_CHECKING:
    import pandas as pd


GROUP_PREFIX = "group_"  # ahead of a dimension's name, in the columns of the observations: group_gender


EVALUATE = "evaluate:"  # before the name or path of a metric of Hugging Face `evaluate`


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may set about scoring."""

    tau: int = 10  # a value enters where it is seen at least so often over all groups (VIBE, section on nTVD)
    permutations: int = 10_000
    seed: int = 0
    speaker_strata: tuple[str, ...] = ()  # columns within which speakers are permuted
    strata: tuple[str, ...] = ()  # columns that vary from clip to clip: evened out where unbalanced (metrics.balance)
    also_test: tuple[str, ...] = ()  # published tests beside the default one: names of metrics.published.TESTS


def strata_for(dimension: str, declared: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Columns within which speakers are permuted when `dimension` is tested. declared: as in a corpus card.

    What is itself compared by is no stratum: in gender:accent nothing is left of {accent: [gender]}.
    """
    parts = parts_of(dimension)
    columns = dict.fromkeys(column for part in parts for column in declared.get(part, ()))
    return tuple(column for column in columns if column not in parts)


@dataclass(frozen=True, slots=True)
class Metric:
    """A registered metric.

    compute: takes a frame of observations and settings, gives scores. The frame has one row per response and
    attribute with the columns request, clip, speaker, group, attribute, outcome, reading, raw, values, sentence_id
    and group_NAME; `group` is the group under test and never missing.
    kinds: the kinds of task that can feed it.
    """

    compute: Callable[[pd.DataFrame, Settings], list[Score]]
    summary: str
    kinds: tuple[str, ...] = ("open_ended",)


METRICS: Registry[Metric] = Registry(
    "metric",
    "vibe_harness.metrics",
    {
        "ntvd": "vibe_harness.metrics.ntvd:NTVD",
        "refusal_ntvd": "vibe_harness.metrics.refusal_ntvd:REFUSAL_NTVD",
        "diversity": "vibe_harness.metrics.diversity:DIVERSITY",
    },
)


def find_metric(name: str) -> Metric:
    """The registered metric of that name, or the one of Hugging Face `evaluate` that "evaluate:NAME" stands for.

    Raises UserError with a suggestion where there is none.
    """
    if name.startswith(EVALUATE):
        from vibe_harness.metrics.evaluate_metric import evaluate_metric

        return evaluate_metric(name)
    return METRICS.get(name)
