"""Third stage: clips, responses and extractions joined into one row per response and attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from vibe_harness.cards.loading import Task
from vibe_harness.errors import UserError
from vibe_harness.extraction.observe import observations
from vibe_harness.records import GROUP_PREFIX, Clip, Observation
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.extractions import ExtractionKeys, ExtractionsByKey, StoredExtraction
from vibe_harness.store.responses import FinalResponses, StoredResponse
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.store.run_tables import BATCH

if TYPE_CHECKING:
    import pyarrow as pa


def write_observations(
    folder: RunFolder,
    clips: Mapping[str, Clip],
    finals: FinalResponses,
    keys: ExtractionKeys,
    tasks: Mapping[str, Task],
) -> None:
    """Join clips, responses and extractions of a run folder into observations.parquet.

    finals: the final responses of the run. Requests without a response have no row.
    """
    import pyarrow.parquet as pq

    schema = _schema(_dimensions(clips))
    with atomic_write(folder.observations) as aside, pq.ParquetWriter(aside, schema) as writer:
        for table in observation_tables(folder, clips, finals, keys, tasks):
            writer.write_table(table)


def observation_tables(
    folder: RunFolder,
    clips: Mapping[str, Clip],
    finals: FinalResponses,
    keys: ExtractionKeys,
    tasks: Mapping[str, Task],
) -> Iterator[pa.Table]:
    """The tables that `write_observations` writes, one batch at a time."""
    dimensions = _dimensions(clips)
    schema = _schema(dimensions)
    batch: list[Observation] = []
    for stored, extraction in _joined(folder, finals, keys):
        read = extraction.extraction() if extraction else None
        task, clip = tasks[stored.task], clips[stored.clip]
        batch.extend(observations(task, stored.variant, clip, stored.response(), read))
        if len(batch) >= BATCH:
            yield _table(batch, clips, dimensions, schema)
            batch = []
    if batch:
        yield _table(batch, clips, dimensions, schema)


def _dimensions(clips: Mapping[str, Clip]) -> list[str]:
    return sorted({name for clip in clips.values() for name in clip.groups})


def _joined(
    folder: RunFolder, finals: FinalResponses, keys: ExtractionKeys
) -> Iterator[tuple[StoredResponse, StoredExtraction | None]]:
    """The final response of each request with its extraction.

    Raises UserError if an extraction belongs to another request than its response, because the file was edited.
    """
    with closing(ExtractionsByKey(folder.extractions)) as extractions:
        for stored in finals:
            extraction = None
            if stored.readable:
                extraction = extractions.get(keys.of(stored))
                if extraction is None:
                    continue  # not extracted yet: the run stopped between two stages
                if extraction.request != stored.request:
                    raise UserError(
                        f"{folder.extractions}: the reading of {stored.request} names the request "
                        f"{extraction.request}: the file was edited; remove that line to have it made again"
                    )
            yield stored, extraction


def _schema(dimensions: list[str]) -> pa.Schema:
    import pyarrow as pa

    word = pa.dictionary(pa.int32(), pa.string())
    fields = [
        ("request", word),
        ("task", word),
        ("variant", word),
        ("clip", word),
        ("speaker", word),
        ("sentence_id", word),
        ("attribute", word),
        ("outcome", word),
        ("reading", word),
        ("raw", pa.list_(pa.string())),
        ("values", pa.list_(pa.string())),
        ("answer", word),
        ("thought", pa.bool_()),
        ("unheard", pa.bool_()),
    ]
    return pa.schema([*fields, *((GROUP_PREFIX + name, word) for name in dimensions)])


def _table(batch: list[Observation], clips: Mapping[str, Clip], dimensions: list[str], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for row in batch:
        clip = clips[row.clip]
        columns["request"].append(row.request)
        columns["task"].append(row.task)
        columns["variant"].append(row.variant)
        columns["clip"].append(row.clip)
        columns["speaker"].append(row.speaker)
        columns["sentence_id"].append(clip.sentence_id)
        columns["attribute"].append(row.attribute)
        columns["outcome"].append(str(row.outcome))
        columns["reading"].append(str(row.reading))
        columns["raw"].append(list(row.raw))
        columns["values"].append(list(row.values))
        columns["answer"].append(row.answer)
        columns["thought"].append(row.thought)
        columns["unheard"].append(row.unheard)
        for name in dimensions:
            columns[GROUP_PREFIX + name].append(clip.groups.get(name))
    return pa.table(columns, schema=schema)
