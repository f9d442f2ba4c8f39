"""Export of a run to a file of `.eval_results/`, which the hub shows on a model's page.

Format: https://huggingface.co/docs/hub/eval-results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from vibe_harness.errors import UserError
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.checksums import run_digest
from vibe_harness.store.results import Results, TaskResult, read_verified_results
from vibe_harness.store.run_folder import RunFolder


def write_eval_results(folder: RunFolder, output: Path, benchmark: str) -> tuple[Path, list[str]]:
    """Write a run's scores to `output`/.eval_results/vibe-harness-DIGEST.yaml, for a pull request to the model.

    benchmark: the data set on the hub whose eval.yaml has a task TASK-DIMENSION for each score. Returns the file, and a
    line for each score that is left out. Raises UserError as `eval_results` does.
    """
    entries, left_out = eval_results(folder, benchmark)
    path = output / ".eval_results" / f"vibe-harness-{run_digest(folder)[:8]}.yaml"
    with atomic_write(path) as aside:
        aside.write_text(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path, left_out


def eval_results(folder: RunFolder, benchmark: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The entries of a run: the main score of each task and dimension; and a line for each that is left out.

    Raises UserError for a simulated model, for a benchmark that is no name on the hub, and where nothing is left.
    """
    if benchmark.count("/") != 1 or not all(benchmark.split("/")):
        raise UserError(f"--benchmark {benchmark}: write the data set's name on the hub: ORG/NAME")
    results = read_verified_results(folder)
    if results.simulated:
        raise UserError(f"{folder.path}: a simulated model gave these answers: they are no evaluation to be published")
    entries: list[dict[str, Any]] = []
    left_out: list[str] = []
    for task in results.tasks:
        name, score = f"{task.task}-{task.dimension}", _main_score(task)
        if any(entry["dataset"]["task_id"] == name for entry in entries):
            left_out.append(f"{name}: the prompt '{task.variant}': one score a task, that of the first prompt")
        elif score is None or score.value is None:
            left_out.append(f"{name}: {score.undefined if score else 'no score of the whole task'}")
        elif not task.reliable:
            left_out.append(f"{name}: not reliable: {'; '.join(task.warnings)}")
        else:
            entries.append(_entry(results, task, score, benchmark, name))
    if not entries:
        raise UserError(f"{folder.path}: no score can be exported: {'; '.join(left_out)}")
    return entries, left_out


def _main_score(task: TaskResult) -> Score | None:
    """The score of the whole task by which models are compared, else the first."""
    whole = [score for score in task.scores if score.attribute is None]
    main = [score for score in whole if presentation_of(score.metric).role == "shift"]
    return next(iter([*main, *whole]), None)


def _entry(results: Results, task: TaskResult, score: Score, benchmark: str, name: str) -> dict[str, Any]:
    assert score.value is not None
    interval = "" if score.interval is None else f", 95 % interval {score.interval[0]:.1f} to {score.interval[1]:.1f}"
    tested = "" if score.p_value is None else f", p {score.p_value:.4f}"
    served = f", served as {results.served_model}" if results.served_model else ""
    title, prompt = presentation_of(score.metric).title, task.variant
    return {
        "dataset": {"id": benchmark, "task_id": name},
        "value": round(score.value, 4),
        "notes": f"{title}{interval}{tested}; corpus {results.corpus}, prompt {prompt}, "
        f"extractor {results.extractor}, tau {results.tau}, {results.modality}{served}",
    }
