"""Export of a run to the schema of Every Eval Ever, version 0.3.0: https://github.com/evaleval/every_eval_ever."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vibe_harness.errors import UserError
from vibe_harness.metrics.presentation import Presentation
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.store.atomic_files import write_json
from vibe_harness.store.checksums import run_digest
from vibe_harness.store.engines import engine_starts, read_engines
from vibe_harness.store.results import Results, TaskResult, read_verified_results
from vibe_harness.store.run_folder import RunFolder, RunRecord, TaskRecord

SCHEMA_VERSION = "0.3.0"
BENCHMARK = "vibe-harness"


def write_every_eval_ever(folder: RunFolder, output: Path, organization: str) -> tuple[Path, list[str]]:
    """Write the record of a run below `output`, at data/BENCHMARK/DEVELOPER/MODEL/UUID.json as its datastore has them.

    organization: who ran it. Returns the file, and a line for each score that is left out. Raises UserError for a
    simulated model, and where nothing is left.
    """
    record, left_out = every_eval_ever(folder, organization)
    developer, _, model = record["model_info"]["id"].rpartition("/")
    name = uuid.UUID(hex=run_digest(folder), version=4)
    path = output / "data" / BENCHMARK / (developer or "unknown").replace("/", "__") / model / f"{name}.json"
    write_json(path, record)
    return path, left_out


def every_eval_ever(folder: RunFolder, organization: str) -> tuple[dict[str, Any], list[str]]:
    """The record of a run, and a line for each score that is left out; see `write_every_eval_ever`."""
    results, record = read_verified_results(folder), folder.record()
    if results.simulated:
        raise UserError(f"{folder.path}: a simulated model gave these answers: they are no evaluation to be published")
    exported, left_out = [], []
    for task in results.tasks:
        for score in task.scores:
            why = _why_left_out(task, score)
            if why is None:
                exported.append(_result(results, record, task, score))
            elif score.attribute is None:
                left_out.append(f"{task.task} by {task.dimension}, {score.metric}: {why}")
    if not exported:
        raise UserError(f"{folder.path}: no score can be exported: {'; '.join(left_out)}")
    now, model = int(time.time()), _model_info(folder, results, record)
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{BENCHMARK}/{model['id']}/{now}",
        "evaluation_timestamp": _last_start(folder),
        "retrieved_timestamp": str(now),
        "source_metadata": {
            "source_name": "vibe-harness run",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "third_party",
        },
        "eval_library": {"name": "vibe-harness", "version": record.made_with},
        "model_info": model,
        "evaluation_results": exported,
    }, left_out


def _why_left_out(task: TaskResult, score: Score) -> str | None:
    if score.value is None:
        return score.undefined or "undefined"
    if not task.reliable:
        return "not reliable: " + "; ".join(task.warnings)
    if _lower_is_better(presentation_of(score.metric)) is None:
        return "its metric does not say which figures are better, and the schema asks for that"
    return None


def _lower_is_better(shown: Presentation) -> bool | None:
    """Whether a low figure is better: where the figure without an effect is the lowest. None where neither is."""
    if shown.scale is None or shown.neutral is None:
        return None
    return True if shown.neutral == shown.scale[0] else None


def _result(results: Results, record: RunRecord, task: TaskResult, score: Score) -> dict[str, Any]:
    shown = presentation_of(score.metric)
    asked = next(one for one in record.tasks if one.card.task == task.task)
    low, high = shown.scale or (None, None)
    attribute = f", {score.attribute}" if score.attribute else ""
    return {
        "evaluation_result_id": "/".join(
            [task.task, task.variant, task.dimension, score.metric, *([score.attribute] if score.attribute else [])]
        ),
        "evaluation_name": f"{task.task} by {task.dimension}{attribute}",
        "source_data": {
            "dataset_name": results.corpus,
            "source_type": "other",
            "additional_details": {
                "speakers": ", ".join(f"{name} {group.speakers}" for name, group in task.groups.items()),
                "synthetic": str(results.corpus_synthetic).lower(),
                **({"licence": record.corpus_licence} if record.corpus_licence else {}),
            },
        },
        "metric_config": {
            "evaluation_description": asked.card.description,
            "metric_id": score.metric,
            "metric_name": shown.title,
            "metric_parameters": {
                "tau": results.tau, "permutations": results.permutations, "seed": results.seed,
                "test": score.test, "permuted": score.permuted,
            },
            "lower_is_better": _lower_is_better(shown),
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {"score": score.value, "details": dict(_details(results, task, score)), **_uncertainty(score)},
        "generation_config": _generation(record, asked, task.variant),
    }  # fmt: skip


def _details(results: Results, task: TaskResult, score: Score) -> Iterator[tuple[str, str]]:
    """What stands beside a score, as text, since the schema takes nothing else there."""
    for name in ("p_value", "p_within_task", "null_mean", "null_p95", "at_least", "at_most", "no_more_than"):
        value = getattr(score, name)
        if value is not None:
            yield name, f"{value:.6g}"
    yield "extractor", results.extractor
    yield "hearing_check", results.hearing_check
    yield "modality", results.modality
    yield "answer_by", results.answer_by
    yield "task_digest", task.task_digest
    if task.without_value is not None:
        yield "readings_without_value", f"{task.without_value:.6g}"


def _uncertainty(score: Score) -> dict[str, Any]:
    if score.interval is None:
        return {}
    lower, upper = score.interval
    method = "of the true figure, corrected for what chance adds to the score, which need not lie in it"
    interval = {"lower": lower, "upper": upper, "confidence_level": 0.95, "method": method}
    return {"uncertainty": {"confidence_interval": interval}}


def _generation(record: RunRecord, task: TaskRecord, variant: str) -> dict[str, Any]:
    template = task.prompts.get(variant) or next(iter(task.prompts.values()))  # choice tasks add an order to the name
    arguments = {
        "temperature": task.card.generation.temperature,
        "max_tokens": task.card.generation.max_tokens,
        "prompt_template": template,
    }
    return {"generation_args": arguments, "additional_details": {"args": str(record.model.args), "prompt": variant}}


def _model_info(folder: RunFolder, results: Results, record: RunRecord) -> dict[str, Any]:
    card, served = record.model, any(start.addresses for start in engine_starts(folder.engines, "model"))
    is_path = Path(card.id).is_absolute() or card.id.startswith((".", "~")) or card.id.count("/") > 1
    hub_id = card.model if is_path else card.id  # no path of the machine goes out
    owner = hub_id.rpartition("/")[0]
    details = {
        "deployment_type": "unknown" if served else "self_deployed",
        "model_availability": "unknown" if served or is_path else "open_weights",
        "revision": card.revision or "not pinned",
        "served_model": results.served_model or "not named",
    }
    return {
        "name": record.label or card.model,
        "id": hub_id,
        **({"developer": owner} if owner else {}),
        "inference_engine": _engine(folder, card.backend),
        "additional_details": details,
    }


def _engine(folder: RunFolder, backend: str) -> dict[str, str]:
    """Name and version of the engine that was started last."""
    starts = [entry.fields for entry in read_engines(folder.engines) if entry.role == "model"]
    named = [str(fields["engine"]) for fields in starts if fields.get("engine")]
    name, _, version = (named[-1] if named else backend).partition(",")[0].partition(" ")
    return {"name": name, "version": version or "unknown"}


def _last_start(folder: RunFolder) -> str:
    times = [start.time for start in engine_starts(folder.engines, "model") if start.time is not None]
    return datetime.fromtimestamp(max(times, default=0.0), UTC).isoformat(timespec="seconds")
