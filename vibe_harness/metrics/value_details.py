"""Which values carry the shift: shares, differences with intervals, and what was tested, for results.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.stats.adjust import ALPHA
from vibe_harness.stats.ntvd import Floats
from vibe_harness.stats.values import Contributions


def named_values(
    found: Sequence[Contributions], p_values: Sequence[Floats | None], attribute_p: Sequence[float | None]
) -> list[NDArray[np.bool_] | None]:
    """For each attribute which values (G, V) are named: those whose attribute passes its test, adjusted over the
    attributes of the task, and whose own p, adjusted over all values of the task, is at most ALPHA too."""
    named: list[NDArray[np.bool_] | None] = []
    for one, own, p_value in zip(found, p_values, attribute_p, strict=True):
        if own is None or one.differences is None:
            named.append(None)
            continue
        named.append((own <= ALPHA) & (p_value is not None and p_value <= ALPHA))
    return named


def level_of_named(named: Sequence[NDArray[np.bool_] | None]) -> float:
    """The confidence of the intervals of the values named, with which on average at most ALPHA of them miss.

    1 - ALPHA R / m for R named out of m (Benjamini and Yekutieli 2005, "False discovery rate-adjusted multiple
    confidence intervals", procedure 1). Of two groups, whose differences are mirror images, one counts.
    """
    counted = [one[:1] if len(one) == 2 else one for one in named if one is not None]
    chosen, tested = sum(int(one.sum()) for one in counted), sum(one.size for one in counted)
    return 1 - ALPHA * chosen / tested if chosen else 1 - ALPHA


def value_rows(
    values: Sequence[str],
    groups: Sequence[str],
    found: Contributions,
    p_values: Floats | None,
    named: NDArray[np.bool_] | None,
    level: float,
) -> list[dict[str, Any]]:
    """What each value adds to the score, the largest first; by group its difference from the mean over groups.

    Differences and intervals are in points of share. interval: 95 %, of that value by itself. p_value: adjusted over
    all values and groups of the task's attributes. named: both the attribute and the value pass; only of these may it
    be said that they differ. named_interval: holds over the values named (`level_of_named`).
    """
    if found.parts is None or found.differences is None:
        return []
    parts, ends, wide = found.parts.tolist(), found.interval(), found.interval(level)
    rows = []
    for column in sorted(range(len(values)), key=lambda c: (-parts[c], values[c])):
        by_group = {}
        for row, group in enumerate(groups):
            chosen = named is not None and bool(named[row, column])
            by_group[group] = {
                "difference": float(found.differences[row, column]),
                "interval": _interval(ends, row, column),
                "p_value": None if p_values is None else float(p_values[row, column]),
                "named": chosen,
                "named_interval": _interval(wide, row, column) if chosen else None,
            }
        rows.append({"value": values[column], "adds": parts[column], "by_group": by_group})
    return rows


def _interval(ends: tuple[Floats, Floats] | None, row: int, column: int) -> list[float] | None:
    return None if ends is None else [float(end[row, column]) for end in ends]
