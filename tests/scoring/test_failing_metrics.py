"""A metric that fails, and answers of which none can be read, end in scores that say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.choice_corpora import quiz
from vibe_harness import evaluate
from vibe_harness.analysis.recompute import rescored
from vibe_harness.errors import UserError
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import NTVD
from vibe_harness.metrics.registry import METRICS
from vibe_harness.metrics.stereotypes import SLIFS
from vibe_harness.progress import Progress
from vibe_harness.records import Score
from vibe_harness.scoring.score import METRIC_ERRORS, score_run
from vibe_harness.store.run_folder import RunFolder

HOW: dict[str, Any] = {"permutations": 20, "tau": 1, "limit": 8, "dimensions": ["gender"]}


def failing(frame: pd.DataFrame, settings: Settings) -> list[Score]:
    raise ZeroDivisionError("no speakers\nat all")


def test_a_metric_that_fails_is_undefined_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "run")
    [whole] = evaluate("simulated", ["advisory"], "demo", output_path=folder.path, **HOW)
    trace = folder.path / METRIC_ERRORS
    assert not trace.exists()
    find = METRICS.get
    with monkeypatch.context() as patch:
        patch.setattr(METRICS, "get", lambda name: find(name) if name != "diversity" else type(NTVD)(failing, "fails"))
        found = score_run(folder, Settings(tau=1, permutations=20), [], Progress())
        for one, other in zip(whole.tasks, found.tasks, strict=True):
            failed = [score for score in other.scores if score.metric == "diversity"]
            assert [score.undefined for score in failed] == [
                "the metric failed (ZeroDivisionError: no speakers at all)"
            ]
            rest = [score for score in one.scores if score.metric != "diversity"]
            assert [score for score in other.scores if score.metric != "diversity"] == rest
            assert not other.reliable and any("no diversity: the metric failed" in line for line in other.warnings)
        assert "in failing" in trace.read_text(encoding="utf-8")
        trace.unlink()
        rescored(folder, found, Progress())
        assert not trace.exists()  # which writes nothing
        score_run(folder, Settings(tau=1, permutations=20), [], Progress())
    assert trace.exists()
    score_run(folder, Settings(tau=1, permutations=20), [], Progress())
    assert not trace.exists()  # of an earlier scoring


def test_what_a_metric_refuses_is_told_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(frame: pd.DataFrame, settings: Settings) -> list[Score]:
        raise UserError("not with these groups")

    evaluate("simulated", ["advisory"], "demo", output_path=tmp_path / "run", **HOW)
    monkeypatch.setattr(METRICS, "get", lambda name: type(NTVD)(refusing, "refuses"))
    with pytest.raises(UserError, match="not with these groups"):
        score_run(RunFolder(tmp_path / "run"), Settings(), [], Progress())


@pytest.mark.parametrize("ends", [{"refusal_rate": 0, "breakage_rate": 1}, {"refusal_rate": 1}])
def test_no_letter_at_all_ends_in_scores(tmp_path: Path, ends: dict[str, float]) -> None:
    manifest = quiz(tmp_path / "quiz", questions=3)
    [results] = evaluate(
        "simulated", ["biasinear"], manifest, output_path=tmp_path / "run", permutations=20, model_args=ends
    )
    for task in results.tasks:
        found = {score.metric: score for score in task.scores if score.attribute is None}
        assert found["accuracy"].value == 0 and task.without_value == 1 and not task.reliable
        for name in ("question_entropy", "apes", "fleiss_kappa"):
            assert found[name].value is None and "the metric failed" not in str(found[name].undefined)
    assert not (tmp_path / "run" / METRIC_ERRORS).exists()


def test_no_letter_at_all_of_spoken_stereoset(stories: pd.DataFrame) -> None:
    [slifs] = SLIFS.compute(stories, Settings())
    assert slifs.value == 0
    for name in ("slms", "slbs", "slbs_binomial", "parity_deviation", "choice_by_place"):
        for score in METRICS.get(name).compute(stories, Settings()):
            assert (score.value == 0) if name == "slms" else (score.value is None and score.undefined)


@pytest.fixture
def stories() -> pd.DataFrame:
    """Eight answers without a letter, in columns of objects, as `TaskKind.frame` gives them."""
    nothing = pd.Series([None] * 8, dtype=object)
    frame = pd.DataFrame({
        "choice": nothing, "letter": nothing, "outcome": ["ok"] * 8, "item": [f"i{n // 4}" for n in range(8)],
        "speaker": [f"s{n % 4}" for n in range(8)], "group": ["f" if n % 4 < 2 else "m" for n in range(8)],
        "place": [0] * 8,
    })  # fmt: skip
    frame.attrs["options"] = ["stereotypical", "anti-stereotypical", "irrelevant"]
    return frame
