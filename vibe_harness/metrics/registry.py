"""What a metric is, and the metrics there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vibe_harness.errors import UserError, check_number
from vibe_harness.records import Score, parts_of
from vibe_harness.registry import Registry

if TYPE_CHECKING:
    import pandas as pd


GROUP_PREFIX = "group_"  # ahead of a dimension's name, in the columns of the observations: group_gender


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
    """

    compute: Callable[[pd.DataFrame, Settings], list[Score]]
    summary: str
    kinds: tuple[str, ...] = ("open_ended",)
    options: tuple[str, ...] = ()
    key: bool = False


METRICS: Registry[Metric] = Registry(
    "metric",
    "vibe_harness.metrics",
    {
        "ntvd": "vibe_harness.metrics.ntvd:NTVD",
        "refusal_ntvd": "vibe_harness.metrics.refusal_ntvd:REFUSAL_NTVD",
        "diversity": "vibe_harness.metrics.diversity:DIVERSITY",
        "slifs": "vibe_harness.metrics.stereotypes:SLIFS",
        "slms": "vibe_harness.metrics.stereotypes:SLMS",
        "slbs": "vibe_harness.metrics.stereotypes:SLBS",
        "slbs_binomial": "vibe_harness.metrics.stereotypes:SLBS_BINOMIAL",
        "parity_deviation": "vibe_harness.metrics.stereotypes:PARITY_DEVIATION",
        "choice_by_place": "vibe_harness.metrics.places:CHOICE_BY_PLACE",
        "accuracy": "vibe_harness.metrics.consistency:ACCURACY",
        "question_entropy": "vibe_harness.metrics.consistency:QUESTION_ENTROPY",
        "apes": "vibe_harness.metrics.consistency:APES",
        "fleiss_kappa": "vibe_harness.metrics.consistency:FLEISS_KAPPA",
        "fleiss_kappa_averaged": "vibe_harness.metrics.consistency:FLEISS_KAPPA_AVERAGED",
    },
)


def find_metric(name: str, *, trust_remote_code: bool = False) -> Metric:
    """The registered metric of that name, or the one of Hugging Face `evaluate` that "evaluate:NAME" stands for.

    Raises UserError with a suggestion where there is none, and for the latter where its code is not trusted.
    """
    if name.startswith(EVALUATE):
        if not trust_remote_code:
            raise UserError(
                f"the metric '{name}' is Python code that a card names: read it, then allow it with --trust-remote-code"
            )
        from vibe_harness.metrics.evaluate_metric import evaluate_metric

        return evaluate_metric(name)
    return METRICS.get(name)
