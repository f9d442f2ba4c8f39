"""What a metric is, and the settings of scoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from vibe_harness.errors import check_number
from vibe_harness.metrics.presentation import Presentation
from vibe_harness.records import Score, parts_of

if TYPE_CHECKING:
    import pandas as pd


Compute: TypeAlias = "Callable[[pd.DataFrame, Settings], list[Score]]"
EVALUATE = "evaluate:"  # before the name or path of a metric of Hugging Face `evaluate`


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may set about scoring. Raises UserError for a number that cannot be one of these."""

    tau: int = 10  # a value enters where it is seen at least so often over all groups (VIBE, section on nTVD)
    permutations: int = 10_000
    seed: int = 0
    speaker_strata: tuple[str, ...] = ()  # columns within which speakers are permuted
    conditions: tuple[str, ...] = ()  # of a choice task: its other variables, besides the one under test
    strata: tuple[str, ...] = ()  # columns that vary from clip to clip: evened out where unbalanced (metrics.balance)
    trust_remote_code: bool = False  # run the Python code of an "evaluate:" metric that a card names
    also_test: tuple[str, ...] = ()  # published tests beside the default one: names of metrics.published.TESTS

    def __post_init__(self) -> None:
        check_number("tau", self.tau, least=1)
        check_number("permutations", self.permutations, least=1)
        check_number("seed", self.seed, least=0)


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
    kinds: the kinds of task that can feed it. A choice task gives one row per response, with further columns: choice
    (name of the option that was chosen, or None), right (that of the right one, where the task has a key), place (at
    which the chosen one stood, from 1; 0 for none), letter, order, item; and frame.attrs["options"], all their names.
    options, key: what a choice task must have for it: options of these names, a right answer.
    presentation: how its scores are shown; None for a plain line with the metric's name.
    """

    compute: Compute
    summary: str
    kinds: tuple[str, ...] = ("open_ended",)
    options: tuple[str, ...] = ()
    key: bool = False
    presentation: Presentation | None = None
