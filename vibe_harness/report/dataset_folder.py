"""Export of a run folder as a data set that `datasets.load_dataset` reads, with its card. It remains a run folder."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from vibe_harness.errors import UserError
from vibe_harness.store.atomic_files import atomic_write, read_json, write_json
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.responses import read_responses
from vibe_harness.store.results import Results, read_verified_results
from vibe_harness.store.run_folder import RunFolder, RunRecord
from vibe_harness.store.run_tables import BATCH

LOCAL = ("output_path", "include_path", "executor", "executor_args")  # options that name places on the machine
NAMED = ("model", "tasks", "corpus", "extractor")  # options that may be paths
CONFIGS = {"observations": "observations.parquet", "clips": "clips.parquet", "requests": "requests.parquet",
           "responses": "responses.parquet"}  # fmt: skip


def write_dataset(folder: RunFolder, output: Path) -> Path:
    """Copy a finished run into the new folder `output`, with a README.md that is its card.

    `datasets.load_dataset(output, "observations")` reads a row for each response and attribute; further configurations
    are clips, requests and responses. Sound is not part of it. run.json is copied without paths of the machine. Raises
    UserError if the run is not finished, if its files changed since, or if `output` is not empty.
    """
    results, record = read_verified_results(folder), folder.record()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: not an empty folder: name a new one")
    copy = RunFolder(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for path in folder.checksummed():
            if path.suffix == ".parquet":
                _write_plain(path, output / path.name)
            elif path.exists() and path != folder.run_json:
                shutil.copyfile(path, output / path.name)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror or error}") from None
    _write_responses(folder, output / CONFIGS["responses"])
    write_json(copy.run_json, _without_places(read_json(folder.run_json)))
    write_sums(copy)
    with atomic_write(output / "README.md") as aside:
        aside.write_text(_card(results, record), encoding="utf-8")
    return output


def _write_plain(source: Path, target: Path) -> None:
    """Copy a Parquet file with dictionaries as plain columns, since `datasets` reads no others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        fields = [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in file.schema_arrow
        ]
        schema = pa.schema(fields)
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for batch in file.iter_batches():
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))


def _write_responses(folder: RunFolder, target: Path) -> None:
    """Write the responses as a table, since `datasets` reads one format of a data set. Likelihoods are JSON text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types: dict[str, Any] = {
        **dict.fromkeys(["request", "task", "variant", "clip", "outcome", "text", "thought"], pa.string()),
        **dict.fromkeys(["finish_reason", "served_model", "error", "likelihoods"], pa.string()),
        **dict.fromkeys(["input_tokens", "audio_tokens", "output_tokens", "repeat", "turn"], pa.int64()),
        **dict.fromkeys(["seconds", "time"], pa.float64()),
    }
    schema = pa.schema(types)
    stored = read_responses(folder.responses)
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        while batch := list(islice(stored, BATCH)):
            columns = {name: [getattr(one, name) for one in batch] for name in types}
            columns["likelihoods"] = [json.dumps(dict(one.likelihoods)) if one.likelihoods else None for one in batch]
            writer.write_table(pa.table(columns, schema=schema))


def _without_places(data: dict[str, Any]) -> dict[str, Any]:
    record = {**data["record"], "corpus_folder": None}
    config = {name: value for name, value in record.get("config", {}).items() if name not in LOCAL}
    record["config"] = {name: _name(value) if name in NAMED else value for name, value in config.items()}
    return {**data, "record": record}


def _name(value: Any) -> Any:
    """The name of a file without its folder; also of each in a list."""
    if isinstance(value, list):
        return [_name(one) for one in value]
    is_path = isinstance(value, str) and value.endswith((".yaml", ".yml", ".csv", ".jsonl", ".parquet"))
    return value.replace("\\", "/").rpartition("/")[2] if is_path else value


def _card(results: Results, record: RunRecord) -> str:
    """The data set's card: what the hub reads on top, and what people read below."""
    title = f"{results.model} on {results.corpus}: answers and scores"
    front = {
        "pretty_name": title,
        "tags": ["vibe-harness", "evaluation", "audio"],
        "configs": [
            {"config_name": name, "data_files": file, **({"default": True} if name == "observations" else {})}
            for name, file in CONFIGS.items()
        ],
    }
    scores = [
        f"| {task.task} | {task.dimension} | {task.variant} | {score.metric} | "
        f"{'undefined' if score.value is None else f'{score.value:.1f}'} | "
        f"{'' if score.p_value is None else f'{score.p_value:.4f}'} | {'yes' if task.reliable else 'no'} |"
        for task in results.tasks
        for score in task.scores
        if score.attribute is None
    ]
    simulated = " The model is simulated: no real model gave these answers." if results.simulated else ""
    return "\n".join([
        "---", yaml.safe_dump(front, sort_keys=False, allow_unicode=True).rstrip(), "---", "",
        f"# {title}", "",
        f"A run of vibe-harness {record.made_with}: tasks {', '.join(task.card.task for task in record.tasks)}, model "
        f"{json.dumps(results.model)}, served as {json.dumps(results.served_model)}, read by {results.extractor}."
        + simulated, "",
        f"The corpus {results.corpus} has the licence: {record.corpus_licence or 'not stated'}. Its recordings are not "
        "part of this data set; groups are those that the corpus assigns.", "",
        "| task | groups | prompt | metric | score | p | reliable |", "|---|---|---|---|---|---|---|", *scores, "",
        "`observations` has a row for each response and attribute, `responses` the answers as they came, `requests` "
        "the prompts, `clips` the speakers and groups. Downloaded whole it is a run folder: `vibe-harness run-check "
        "FOLDER`, `score`, `compare` and `leaderboard` take it.", "",
    ])  # fmt: skip
