"""Metrics of Hugging Face `evaluate` that a card names: "evaluate:NAME", or "evaluate:PATH" of the user's own script.

Nothing is downloaded during a run; if a metric is not on this machine, a UserError says how to get it.

The inputs that a metric declares decide what it gets:
- columns of the frame of observations (speaker, group, attribute, values, ...): the whole frame, once;
- one text input: the canonical values of each attribute, over all groups and, in the detail, by group;
- text `predictions` and `references`: the canonical values, and the group of each answer's speaker.
Other inputs (numbers, several references) are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from vibe_harness.errors import UserError
from vibe_harness.metrics.frame_counts import attributes_of, items_of
from vibe_harness.metrics.metric import EVALUATE, Metric, Settings
from vibe_harness.records import Score

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = frozenset({"request", "clip", "speaker", "group", "attribute", "outcome", "reading", "raw", "values"})
PAIR = frozenset({"predictions", "references"})


@lru_cache(maxsize=32)
def evaluate_metric(name: str) -> Metric:
    """Load the metric with this name. Raises UserError if it is not on this machine, or needs other inputs."""
    module = _load(name)
    features = module.features[0] if isinstance(module.features, list) else module.features
    inputs = set(features)
    if inputs <= COLUMNS:
        compute: Callable[[pd.DataFrame, Settings], list[Score]] = partial(_of_frame, name, module, sorted(inputs))
    elif all(getattr(kind, "dtype", None) == "string" for kind in features.values()) and (
        len(inputs) == 1 or inputs == PAIR
    ):
        compute = partial(_of_values, name, module, sorted(inputs))
    else:
        raise UserError(
            f"the metric '{name}' takes {', '.join(f'{key}: {kind}' for key, kind in features.items())}, which answers "
            f"cannot feed: it takes one input of text, predictions and references of text, or columns of observations "
            f"({', '.join(sorted(COLUMNS))})"
        )
    return Metric(compute, (module.description or name).strip().splitlines()[0])


def _load(name: str) -> Any:
    import evaluate

    path = name.removeprefix(EVALUATE)
    try:
        with _offline():
            return evaluate.load(path, keep_in_memory=True)
    except (FileNotFoundError, ConnectionError):
        raise UserError(
            f"the metric '{name}' is neither a script here nor on this machine yet: fetch it once with "
            f"`python -c \"import evaluate; evaluate.load('{path}')\"`, then run again"
        ) from None
    except (ImportError, SyntaxError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"the metric '{name}' does not load: {' '.join(str(error).split())}") from None


@contextmanager
def _offline() -> Iterator[None]:
    """`evaluate` without the network, which it would otherwise ask first even for what it has."""
    import evaluate

    before, evaluate.config.HF_EVALUATE_OFFLINE = evaluate.config.HF_EVALUATE_OFFLINE, True
    try:
        yield
    finally:
        evaluate.config.HF_EVALUATE_OFFLINE = before


def _of_frame(name: str, module: Any, columns: list[str], frame: pd.DataFrame, settings: Settings) -> list[Score]:
    found = module.compute(**{column: frame[column].tolist() for column in columns})
    return _scores(name, None, found, {})


def _of_values(name: str, module: Any, inputs: list[str], frame: pd.DataFrame, settings: Settings) -> list[Score]:
    scores: list[Score] = []
    for attribute in attributes_of(frame):
        items = items_of(frame[frame["attribute"] == attribute], "values").astype(str)
        if items.empty:
            scores.append(Score(metric=name, attribute=attribute, undefined="no answer gives a value"))
            continue
        given = dict(zip(inputs, (items["values"].tolist(), items["group"].tolist()), strict=False))
        by_group = {}
        if len(inputs) == 1:
            for group, own in items.groupby("group", observed=True):
                by_group[str(group)] = _plain(module.compute(**{inputs[0]: own["values"].tolist()}))
        scores += _scores(name, attribute, module.compute(**given), by_group)
    return scores


def _scores(name: str, attribute: str | None, found: Mapping[str, Any], by_group: Mapping[str, Any]) -> list[Score]:
    """One score for each number that the metric gave; anything else goes into the detail."""
    plain = _plain(found)
    numbers = {key: value for key, value in plain.items() if isinstance(value, int | float)}
    rest = {key: value for key, value in plain.items() if key not in numbers}
    if not numbers:
        return [Score(metric=name, attribute=attribute, undefined="it gives no number", detail=rest)]
    scores = []
    for key, value in numbers.items():
        metric = name if len(numbers) == 1 else f"{name}:{key}"
        detail = {**rest, **({"by_group": {g: own.get(key) for g, own in by_group.items()}} if by_group else {})}
        finite = math.isfinite(value)
        scores.append(
            Score(
                metric=metric,
                attribute=attribute,
                value=float(value) if finite else None,
                undefined=None if finite else f"it gives {value}",
                detail=detail,
            )
        )
    return scores


def _plain(found: Any) -> Any:
    """The result as plain data: numbers of numpy as Python's own, what JSON does not know as text."""
    if isinstance(found, Mapping):
        return {str(key): _plain(value) for key, value in found.items()}
    if hasattr(found, "tolist"):
        return found.tolist()
    if isinstance(found, list | tuple):
        return [_plain(value) for value in found]
    return found if found is None or isinstance(found, int | float | str) else str(found)
