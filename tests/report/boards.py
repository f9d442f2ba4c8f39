"""Boards for the tests of pages and exports, made of results that no model gave."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vibe_harness import evaluate
from vibe_harness.records import Score
from vibe_harness.report.board_runs import Entry
from vibe_harness.store.results import GroupCoverage, Results, TaskResult
from vibe_harness.store.run_folder import RunFolder, RunRecord

GROUP = GroupCoverage(speakers=2, clips=4, requests=4, outcomes={"ok": 4}, readings={}, items_per_response={})
M = 10_000


def small_run(path: Path) -> RunFolder:
    """A run of the simulated model: 16 clips, two genders, one task."""
    evaluate("simulated", ["advisory"], dimensions=["gender"], limit=16, tau=1, permutations=99, output_path=path)
    return RunFolder(path)


def task(
    name: str, values_of: dict[str, float | None], p: float | None = 0.5, *,
    interval: tuple[float, float] | None = None, identical: float | None = None, **changes: Any,
) -> TaskResult:  # fmt: skip
    """A result whose attributes have these scores; the task's score is their mean, over those that have one.

    identical: share of the responses that repeat another one.
    """
    values = [value for value in values_of.values() if value is not None]
    mean = sum(values) / len(values) if values else None
    tau = {"by_tau": {str(t): None if mean is None else mean + t for t in (1, 2, 5, 10, 15, 20, 30, 50)}}
    whole = Score(
        metric="ntvd", value=mean, p_value=p, permutations=M, exact=False, interval=interval, null_p95=5.0, detail=tau
    )
    parts = [Score(metric="ntvd", attribute=attribute, value=value) for attribute, value in values_of.items()]
    fields = {
        "task": name, "task_digest": f"{name}-card", "variant": "default", "dimension": "gender",
        "groups": {"female": GROUP, "male": GROUP}, "without_value": 0.1, "reliable": True, "warnings": [],
        "scores": [whole, *parts, *([] if identical is None else [alike(identical)])],
    }  # fmt: skip
    return TaskResult(**{**fields, **changes})


def alike(share: float) -> Score:
    return Score(metric="diversity", value=0.5, detail={"identical_share": share})


def entry(record: RunRecord, name: str, tasks: Sequence[TaskResult], **asked: Any) -> Entry:
    corpus = asked.get("corpus", "crema-d")
    results = Results(
        format=1, model=name, simulated=False, corpus=corpus, corpus_synthetic=False, extractor="rules",
        tau=asked.pop("tau", 10), permutations=M, seed=0, hearing_check="passed", bad_clips={}, long_clips={},
        tasks=tasks,
    )  # fmt: skip
    first = record.tasks[0]
    kinds = {one.task: "choice" if one.task == "stereoset" else "open_ended" for one in tasks}
    cards = [first.card.model_copy(update={"task": task, "kind": kind}) for task, kind in kinds.items()]
    record = dataclasses.replace(record, tasks=[dataclasses.replace(first, card=card) for card in cards])
    question = {"model": {"name": name, "id": name}, "corpus": corpus, "clips": corpus, "seed": 0, **asked}
    return Entry(path=Path(f"runs/{name}"), results=results, record=record, asked=question)
