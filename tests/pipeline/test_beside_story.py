"""Free answers beside a forced choice, on the published table."""

import json

import pytest

from tests.support import SHARED, needs_recordings
from vibe_harness.errors import UserError
from vibe_harness.pipeline.beside_story import beside_story
from vibe_harness.pipeline.results import FORMAT, Results, TaskResult
from vibe_harness.records import Score


def result(task: str, metric: str, value: float, p: float, dimension: str = "gender", variant: str = "a") -> TaskResult:
    return TaskResult(
        task=task, task_digest="d", variant=variant, dimension=dimension, groups={}, without_value=0.0, reliable=True,
        warnings=[],
        scores=[Score(metric=metric, attribute="x", value=1), Score(metric=metric, value=value, p_value=p)],
        alias_files={},
    )  # fmt: skip


def run(model: str, *tasks: TaskResult) -> Results:
    return Results(
        format=FORMAT, model=model, simulated=False, corpus="c", corpus_synthetic=False, extractor="rules", tau=10,
        permutations=9, seed=0, hearing_check="passed", bad_clips={}, long_clips={}, tasks=tasks,
    )  # fmt: skip


def both(model: str, free: float, forced: float, p: float = 0.01) -> list[Results]:
    return [
        run(model, result("story", "ntvd", free, 0.0001)),
        run(model, result("spoken_stereoset", "parity_deviation", forced, p)),
    ]


def test_ranks_and_values_by_hand() -> None:
    runs = [*both("a", 1, 2), *both("b", 2, 1, p=0.2), *both("c", 3, 3), *both("d", 4, 4), run("e")]
    found = beside_story(runs)
    assert [one.model for one in found.models] == ["a", "b", "c", "d"]
    assert found.ranks.value == pytest.approx(0.8) and found.values.value == pytest.approx(0.8)  # 1 - 6 * 2 / (4 * 15)
    assert (found.free_found, found.forced_found) == (4, 3)


def test_the_first_prompt_counts_and_nothing_stands_twice() -> None:
    first = result("story", "ntvd", 1, 0.01)
    again = result("story", "ntvd", 9, 0.01, variant="b")
    other = result("story", "ntvd", 9, 0.01, dimension="accent")
    [one] = beside_story([run("a", other, first, again)]).models
    assert one.free is not None and one.free.value == 1 and one.forced is None
    with pytest.raises(UserError, match="'a' has two scores of story by gender"):
        beside_story([run("a", first), run("a", first)])


@needs_recordings
def test_the_published_table() -> None:
    """Ten models: all ten free scores starred, six forced ones (the text says four); ranks by hand from the table."""
    data = json.loads((SHARED / "reference" / "vibe_published.json").read_text(encoding="utf-8"))
    forced, story = data["stereoset"]["parity_deviation"], data["ntvd"]["gender"]
    p_values = {"": 0.5, "*": 0.01, "**": 0.0001}
    runs = [one for m, (value, star) in forced.items() for one in both(m, story[m]["story"], value, p_values[star])]
    found = beside_story(runs)
    assert (len(found.models), found.free_found, found.forced_found) == (10, 10, 6)
    # ranks of story 9 8 10 1 2 6 3 7 4 5 (largest 10) and deviation 10 6 9 2 3 7 4 8 1 5: squares 1 4 1 1 1 1 1 1 9 0
    assert found.ranks.value == pytest.approx(1 - 6 * 20 / (10 * 99))
