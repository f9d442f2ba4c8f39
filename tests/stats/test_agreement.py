"""Correlations, against the published tables too, and the tau study by hand."""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from vibe_harness.errors import UserError
from vibe_harness.stats.agreement import correlation, rank_agreement, task_correlations, tau_study

SHARED = Path(os.environ.get("VIBE_SHARED", Path(__file__).parents[2] / "../shared"))
PUBLISHED = SHARED / "reference" / "vibe_published.json"


@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"the published tables are not at {PUBLISHED}")
def test_published_correlations_between_tasks() -> None:
    """VIBE version 1, section 5: r = 0.31, 0.27 (gender) and 0.88, 0.06 (accent), the other gender pairs above 0.85."""
    tables = json.loads(PUBLISHED.read_text(encoding="utf-8"))["ntvd"]
    tasks = ["story", "advisory", "casting", "shopper", "candidate"]

    def between(dimension: str) -> dict[tuple[str, str], float]:
        matrix = task_correlations([[scores[task] for task in tasks] for scores in tables[dimension].values()])
        pairs = itertools.combinations(range(len(tasks)), 2)
        return {(tasks[i], tasks[j]): matrix[i][j].value or np.nan for i, j in pairs}

    gender, accent = between("gender"), between("accent")
    assert gender["story", "advisory"] == pytest.approx(0.31, abs=0.005)
    assert gender["story", "casting"] == pytest.approx(0.27, abs=0.005)
    assert accent["story", "advisory"] == pytest.approx(0.88, abs=0.005)
    assert accent["shopper", "candidate"] == pytest.approx(0.06, abs=0.005)
    others = [value for pair, value in gender.items() if "story" not in pair]
    assert len(others) == 6 and round(min(others), 2) >= 0.85


def test_hand_calculations() -> None:
    assert correlation([1, 2, 3, 4], [2, 4, 6, 9]).value == pytest.approx(np.corrcoef([1, 2, 3, 4], [2, 4, 6, 9])[0, 1])
    # Ranks 1 2 3 4 against 1 3 2 4: 1 - 6 x 2 / (4 x 15).
    assert rank_agreement([1, 2, 3, 4], [10, 30, 20, 900]).value == pytest.approx(0.8)


def test_missing_models_are_left_out_and_counted() -> None:
    found = rank_agreement([1, 2, np.nan, 4, 5], [1, 2, 3, 4, np.nan])
    assert found.value == pytest.approx(1) and found.models == 3


@pytest.mark.parametrize(("first", "second"), [([1, 2], [3, 4]), ([1, 1, 1], [1, 2, 3]), ([np.nan] * 3, [1, 2, 3])])
def test_undefined_correlations_say_why(first: list[float], second: list[float]) -> None:
    for function in (correlation, rank_agreement):
        found = function(first, second)
        assert found.value is None and found.reason


def test_scores_of_different_models_are_refused() -> None:
    with pytest.raises(UserError):
        correlation([1, 2, 3], [1, 2])
    with pytest.raises(UserError):
        correlation([1, 2, np.inf], [1, 2, 3])


def test_tau_study_by_hand() -> None:
    # The third value, seen three times, belongs to one group alone; from tau = 5 on it is left out.
    first = [[6, 6, 3], [6, 6, 0]]
    second = [[9, 3, 3], [3, 9, 0]]
    third = [[20, 0, 3], [0, 20, 0]]
    study = tau_study([[first], [second], [third]], (1, 5, 30), reference=5)
    assert study.scores[0, 0] == pytest.approx(100 * 3 / 15)
    np.testing.assert_allclose(study.scores[1], [0, 50, 100])
    assert np.isnan(study.scores[2]).all() and study.attributes.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0]]
    assert study.agreement[0].value == study.agreement[1].value == pytest.approx(1)
    assert study.agreement[2].value is None
    with pytest.raises(UserError):
        tau_study([[first]], (1, 2))
