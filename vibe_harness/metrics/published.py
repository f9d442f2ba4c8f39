"""The published tests of nTVD, by name, for comparison with the papers' tables; never in place of the default one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vibe_harness.errors import UserError
from vibe_harness.metrics.frame_counts import Counts, Speakers, items_of
from vibe_harness.metrics.metric import Settings
from vibe_harness.registry import did_you_mean
from vibe_harness.stats.permutation import PermutationTest, permutation_test

if TYPE_CHECKING:
    import pandas as pd

TESTS = {
    "version-1": "utterances exchanged one by one (VIBE, version 1): rejects far too often where speakers have habits",
    "version-2": "whole speakers exchanged, without strata (VIBE, version 2)",
}


def known_tests(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once. Raises UserError, with a suggestion, for one that is no published test."""
    for name in names:
        if name not in TESTS:
            raise UserError(f"there is no published test '{name}'. {did_you_mean(name, TESTS)}")
    return tuple(dict.fromkeys(names))


def published_tests(
    frame: pd.DataFrame, names: Sequence[str], values: Sequence[tuple[str, ...]], speakers: Speakers, settings: Settings
) -> list[dict[str, dict[str, Any]]]:
    """What the tests that `settings.also_test` names find, for the task as a whole and then for each attribute.

    names: attributes. values: the kept values of each. Nothing is standardised, as in the papers.
    """
    found: list[dict[str, dict[str, Any]]] = [{} for _ in range(1 + len(names))]
    for wanted in settings.also_test:
        if wanted == "version-2" and speakers.owners is not None:
            raise UserError("--also-test version-2 exchanges whole speakers, and every speaker has several groups here")
        units = speakers if wanted == "version-2" else _requests(frame)
        tables = [
            _table(frame[frame["attribute"] == name], own, units, wanted)
            for name, own in zip(names, values, strict=True)
        ]
        test = permutation_test(
            tables, units.codes, permutations=settings.permutations, seed=settings.seed, studentised=False
        )
        for place, detail in zip(found, _details(test), strict=True):
            place[wanted] = {"permuted": "speakers" if wanted == "version-2" else "utterances", **detail}
    return found


def _requests(frame: pd.DataFrame) -> Speakers:
    """Each request as a unit."""
    requests = frame.drop_duplicates("request").sort_values("request")
    groups = tuple(sorted(requests["group"].astype(str).unique()))
    place = {name: index for index, name in enumerate(groups)}
    codes = requests["group"].astype(str).map(place).to_numpy(dtype=np.int64)
    return Speakers(tuple(requests["request"].astype(str)), groups, codes)


def _table(rows: pd.DataFrame, values: tuple[str, ...], units: Speakers, wanted: str) -> Counts:
    """Counts (U, V) of the kept values of one attribute by unit."""
    column = "speaker" if wanted == "version-2" else "request"
    items = items_of(rows, "values", *([] if column == "speaker" else [column]))
    place = {name: index for index, name in enumerate(values)}
    codes = items["values"].map(place)
    items, codes = items[codes.notna()], codes[codes.notna()].astype(np.int64)
    row_of = {name: index for index, name in enumerate(units.names)}
    counts = np.zeros((len(units.names), len(values)), dtype=np.int64)
    np.add.at(counts, (items[column].astype(str).map(row_of).to_numpy(dtype=np.int64), codes.to_numpy()), 1)
    return counts


def _details(test: PermutationTest) -> list[dict[str, Any]]:
    return [
        {
            "value": tested.value,
            "p_value": tested.p_value,
            "null_mean": tested.null_mean,
            "null_p95": tested.null_p95,
            "permutations": test.permutations,
            "complete": test.complete,
            "exact": test.exact,
            **({"untested": tested.reason} if tested.reason else {}),
        }
        for tested in (test.mean, *test.attributes)
    ]
