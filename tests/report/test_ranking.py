"""Highest and lowest: only where a score differs from all others by more than chance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness import evaluate
from vibe_harness.progress import Progress
from vibe_harness.report.board import Cell
from vibe_harness.report.board_building import build_board
from vibe_harness.report.board_runs import read_entries
from vibe_harness.report.ranking import marked
from vibe_harness.report.trust import TrustColumn
from vibe_harness.stats.bracket import bracket

TRUST = (TrustColumn("hearing check", "passed", True), TrustColumn("identical answers", "unknown", None))
RANKED = Cell(value=1.0, trust=TRUST)


def marks(intervals: dict[str, tuple[float, float] | None], **changes: Cell) -> dict[str, str]:
    cells = {name: replace(RANKED, interval=interval) for name, interval in intervals.items()}
    return {name: cell.mark for name, cell in marked({**cells, **changes}).items() if cell.mark}


def test_a_score_is_marked_where_its_interval_is_apart_from_all_others() -> None:
    assert marks({"a": (1, 2), "b": (3, 4), "c": (5, 6)}) == {"a": "lowest", "c": "highest"}
    assert marks({"a": (1, 2), "b": (3, 5), "c": (4, 6)}) == {"a": "lowest"}
    assert marks({"a": (1, 3), "b": (2, 5), "c": (6, 7)}) == {"c": "highest"}
    assert marks({"a": (1, 2), "b": (2, 3)}) == {}  # they touch
    assert marks({"a": (1, 2)}) == {} and marks({}) == {}
    # the second highest raw score is not the only one to be apart from: a wide interval reaches over it
    assert marks({"a": (0, 9), "b": (3, 4), "c": (5, 6)}) == {}
    # what has no interval cannot be compared
    assert marks({"a": (1, 2), "b": (3, 4), "c": None}) == {"a": "lowest", "b": "highest"}


@pytest.mark.parametrize(
    "changes",
    [
        {"reliable": False},
        {"trust": (TrustColumn("hearing check", "not made", False), TRUST[1])},
        {"trust": (TRUST[0], TrustColumn("identical answers", "95%", False))},
        {"value": None},
        {"interval": None},
    ],
)
def test_what_cannot_be_relied_on_is_never_marked_and_hides_no_mark(changes: dict[str, object]) -> None:
    odd = replace(RANKED, **{"interval": (8.0, 9.0), **changes})  # type: ignore[arg-type]
    assert marks({"a": (1, 2), "b": (3, 4)}, odd=odd) == {"a": "lowest", "b": "highest"}
    assert marks({"a": (1, 2), "b": (3, 4)}, odd=replace(RANKED, interval=(8.0, 9.0)))["odd"] == "highest"


@given(st.dictionaries(st.text(max_size=2), st.tuples(st.floats(0, 100), st.floats(0, 100)).map(sorted).map(tuple)))
def test_at_most_one_is_highest_and_one_lowest_in_any_order(intervals: dict[str, tuple[float, float]]) -> None:
    found = marks(intervals)
    assert sorted(found.values()) in ([], ["highest"], ["highest", "lowest"], ["lowest"])
    assert marks(dict(reversed(intervals.items()))) == found


@pytest.mark.parametrize("errors", [(1, 1), (1, 5), (1, 1, 1), (1, 1, 1, 5), (5, 5, 5, 0.1), tuple([1] * 12)])
def test_models_of_one_true_score_are_seldom_ranked(errors: tuple[float, ...]) -> None:
    rng = np.random.default_rng(3)
    sizes = np.array(errors)
    draws = 50 + rng.standard_normal((1000, sizes.size)) * sizes
    ranked = 0
    for values in draws:
        ends = zip(values - 1.96 * sizes, values + 1.96 * sizes, strict=True)
        ranked += bool(marks({str(n): (float(low), float(high)) for n, (low, high) in enumerate(ends)}))
    assert ranked / 1000 <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.0, 0.45])
def test_models_of_one_planted_shift_are_not_ranked_and_another_is(apart: float) -> None:
    """Three models of one shift, and in the second case a fourth of a larger one: 24 and 24 speakers, 20 clips each."""
    rng = np.random.default_rng(5)
    groups = np.repeat([0, 1], 24)
    base, toward = np.full(6, 1 / 6), np.array([0.5, 0.3, 0.2, 0, 0, 0])
    strengths = [0.3, 0.3, 0.3, *([0.3 + apart] if apart else [])]
    found = []
    for _ in range(100):
        intervals = {}
        for model, strength in enumerate(strengths):
            shares = [base, (1 - strength) * base + strength * toward]
            counts = np.stack([rng.multinomial(20, rng.dirichlet(40 * shares[group] + 1e-3)) for group in groups])
            intervals[str(model)] = bracket([counts], groups).mean.interval
        found.append(marks(intervals))
    if apart:
        assert sum("highest" in one and one.get("3") != "highest" for one in found) == 0
        assert sum(one.get("3") == "highest" for one in found) >= 80
    else:
        assert sum(bool(one) for one in found) <= 5


@pytest.mark.slow
def test_simulated_models_of_one_strength_are_not_ranked_and_a_far_stronger_one_is_the_highest(tmp_path: Path) -> None:
    def ask(name: str, strength: float, seed: int) -> Path:
        evaluate("simulated", ["advisory"], dimensions=["gender"], model_args={"strength": strength}, seed=seed,
                 permutations=199, output_path=tmp_path / name)  # fmt: skip
        return tmp_path / name

    alike = [ask(f"seed-{seed}", 0.5, seed) for seed in (1, 2, 3)]
    assert board_marks(alike) == set()
    assert board_marks([*alike, ask("strong", 1.0, 4)]) == {("simulated (args.strength 1.0, seed 4)", "highest")}


def board_marks(runs: list[Path]) -> set[tuple[str, str]]:
    entries, _ = read_entries(runs, Progress(), simulated=True)
    rows = build_board(entries).blocks[0].rows
    return {(row.model, cell.mark) for row in rows for cell in row.cells if cell and cell.mark}
