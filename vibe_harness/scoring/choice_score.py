"""Observations of choice tasks to scores: all orders of a prompt together, letters read back as what they meant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from vibe_harness.cards.offers import order_of, order_variants, right_option
from vibe_harness.cards.schema import TaskCard
from vibe_harness.errors import UserError
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.registry import find_metric
from vibe_harness.records import GROUP_PREFIX, Outcome, Reading, Score
from vibe_harness.scoring.reliability import DIFFERENCE_LIMIT, WITHOUT_VALUE_LIMIT, coverage_of, missing_values
from vibe_harness.store.responses import read_responses
from vibe_harness.store.results import TaskResult
from vibe_harness.store.run_folder import TaskRecord
from vibe_harness.store.run_tables import read_frame

if TYPE_CHECKING:
    import pandas as pd


def score_choice(
    path: Path, task: TaskRecord, style: str, dimension: str, settings: Settings, unlikely: float = 0.0
) -> TaskResult:
    """All metrics of a choice task's card for one prompt style, with coverage and warnings.

    path: observations of the run. dimension: the variable under test. unlikely: see `unlikely_letters`. Raises
    UserError where nothing was asked in it.
    """
    frame = read_choices(path, task.card, style, dimension)
    conditions = [name for name in task.card.dimensions if name != dimension and GROUP_PREFIX + name in frame]
    settings = replace(settings, conditions=tuple(conditions))
    scores = _scores(frame, task.card, settings)
    split = task.card.choice.split_by if task.card.choice else None
    if split and GROUP_PREFIX + split in frame:
        for name in sorted(frame[GROUP_PREFIX + split].dropna().astype(str).unique()):
            part = frame[frame[GROUP_PREFIX + split] == name]
            part.attrs = dict(frame.attrs)
            for score in _scores(part, task.card, settings):
                scores.append(replace(score, attribute=f"{name}, {score.attribute}" if score.attribute else name))
    without = frame["reading"] != Reading.VALUE
    warnings = [
        *(f"no {score.metric}: {score.undefined}" for score in scores if score.attribute is None and score.undefined),
        *missing_values(frame, without),
        *_missing_by_group(frame, without),
        *_unlikely(unlikely),
    ]
    return TaskResult(
        task=task.card.task,
        task_digest=task.digest,
        alias_files=task.alias_files(),
        variant=style,
        dimension=dimension,
        groups={name: coverage_of(frame[frame["group"] == name]) for name in sorted(frame["group"].unique())},
        without_value=float(without.mean()),
        reliable=not warnings,
        warnings=warnings,
        scores=scores,
    )


def read_choices(path: Path, card: TaskCard, style: str, dimension: str) -> pd.DataFrame:
    """One row a response of one prompt style, all orders together, with the columns that `Metric` names."""
    import pandas as pd

    choice = card.choice
    assert choice is not None
    parts = []
    for variant in order_variants(choice, style):
        order = order_of(choice, variant)
        part = read_frame(path, card.task, variant, dimension)
        place = {letter: number for number, letter in enumerate(order.letters, 1)}
        letters, names = (  # of objects, whatever is in them: a column of nothing but None would have another type
            pd.Series([_only(cell) for cell in part[column]], part.index, dtype=object) for column in ("raw", "values")
        )
        places = [place.get(letter, 0) for letter in letters]
        parts.append(part.assign(order=order.name, letter=letters, choice=names, place=places))
    frame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    if frame.empty:
        raise UserError(f"task '{card.task}': no response has a group in the dimension '{dimension}'")
    frame["item"] = frame[GROUP_PREFIX + choice.item].astype(str)
    if choice.key:
        letters = frame[GROUP_PREFIX + choice.key.column].astype(str)
        rows = frame[GROUP_PREFIX + choice.order_column].astype(str) if choice.order_column else letters
        meant = {(k, r): right_option(choice, k, r) for k, r in {*zip(letters, rows, strict=True)}}
        frame["right"] = [meant[pair] for pair in zip(letters, rows, strict=True)]
    if choice.order_column:  # a row's own order is asked under other letters too
        frame[GROUP_PREFIX + choice.order_column] = frame["order"]
        if dimension == choice.order_column:
            frame["group"] = frame["order"]
    frame.attrs["options"] = list(choice.options)
    return frame


def unlikely_letters(path: Path) -> dict[tuple[str, str], float]:
    """Task, prompt style -> share of the answers by likelihood to whose letters the model gives less than half of all
    probability; only where such answers are.

    path: responses of the run.
    """
    found: dict[tuple[str, str], list[bool]] = {}
    for stored in read_responses(path):
        if stored.outcome is Outcome.OK and stored.likelihoods:
            letters = sum(map(math.exp, stored.likelihoods.values()))
            style = stored.variant.partition(".")[0]
            found.setdefault((stored.task, style), []).append(letters < 0.5)
    return {place: fmean(unlikely) for place, unlikely in found.items()}


def _unlikely(share: float) -> list[str]:
    if share <= WITHOUT_VALUE_LIMIT:
        return []
    return [
        f"choice: for {share:.0%} of the answers something else than a letter is the likelier beginning (limit "
        f"{WITHOUT_VALUE_LIMIT:.0%}), so that the likeliest letter may not be what the model would answer"
    ]


def _only(values: Sequence[str]) -> str | None:
    """The one value of an answer, or None."""
    return str(values[0]) if len(values) else None


def _scores(frame: pd.DataFrame, card: TaskCard, settings: Settings) -> list[Score]:
    return [score for name in card.metrics for score in find_metric(name).compute(frame, settings)]


def _missing_by_group(frame: pd.DataFrame, without: pd.Series[bool]) -> Sequence[str]:
    """A warning where the share without a value differs between groups by more than 5 points."""
    shares = 100 * without.groupby(frame["group"]).mean()
    apart = float(shares.max() - shares.min())
    if apart <= DIFFERENCE_LIMIT:
        return []
    return [
        f"choice: the share without a value differs by {apart:.0f} points between groups ({shares.idxmax()} "
        f"{shares.max():.0f} %, {shares.idxmin()} {shares.min():.0f} %)"
    ]
