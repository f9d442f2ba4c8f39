"""The Parquet tables of a run folder: clips, requests and observations. Files are read and written in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vibe_harness.cards.digest import digest
from vibe_harness.corpora.group_names import check_groups_apart
from vibe_harness.errors import UserError
from vibe_harness.records import GROUP_PREFIX, CheckedAudio, CheckedClip, Clip, Request, RequestKey, parts_of
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.request_ids import RequestTable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BATCH = 5_000  # rows held in memory at a time
SCORED = [  # columns of the observations that scoring reads
    "request", "clip", "speaker", "sentence_id", "attribute", "outcome", "reading", "raw", "values",
]  # fmt: skip


_MEASURED = {  # column of the clips -> field of CheckedAudio
    "duration_s": "duration_s", "sample_rate": "rate", "channels": "channels", "format": "format", "subtype": "subtype",
    "level_db": "level_db", "clipped": "clipped", "pauses": "pauses", "noise_db": "noise_db",
    "bandwidth_hz": "bandwidth_hz",
}  # fmt: skip


def write_clips(path: Path, clips: Sequence[CheckedClip]) -> None:
    """Write the clips of a run, with groups and waveform digests, as one Parquet table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    dimensions = sorted({name for checked in clips for name in checked.clip.groups})
    columns: dict[str, Any] = {
        "clip": [checked.clip.id for checked in clips],
        "file": [checked.clip.file for checked in clips],
        "speaker": [checked.clip.speaker for checked in clips],
        "text": pa.array([checked.clip.text for checked in clips], pa.string()),
        "sentence_id": pa.array([checked.clip.sentence_id for checked in clips], pa.string()),
        "seconds": [checked.seconds for checked in clips],
        "waveform": [checked.waveform for checked in clips],
        **{name: [getattr(checked.audio, field, None) for checked in clips] for name, field in _MEASURED.items()},
    }
    for name in dimensions:
        columns[GROUP_PREFIX + name] = pa.array([checked.clip.groups.get(name) for checked in clips], pa.string())
    with atomic_write(path) as aside:
        pq.write_table(pa.table(columns), aside)


@contextmanager
def requests_written(path: Path, requests: Iterable[Request]) -> Iterator[RequestTable]:
    """Write every planned request with its key and prompt, in order. Gives the table of ids and keys.

    The file is put in place when the block succeeds.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    word = pa.dictionary(pa.int32(), pa.string())
    texts = [("request", pa.string()), *((name, word) for name in ("task", "variant", "clip"))]
    schema = pa.schema([*texts, ("repeat", pa.int32()), ("turn", pa.int32()), ("prompt", word)])

    def noted(writer: pq.ParquetWriter) -> Iterator[tuple[str, RequestKey]]:
        rows = iter(requests)
        while batch := list(islice(rows, BATCH)):
            cells = [(request.id, *request.key, _encodable(request.prompt)) for request in batch]
            columns = dict(zip(schema.names, map(list, zip(*cells, strict=True)), strict=True))
            writer.write_table(pa.table(columns, schema=schema))
            yield from ((request.id, request.key) for request in batch)

    with atomic_write(path) as aside:
        with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
            planned = RequestTable(noted(writer))
        yield planned


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_prompts(path: Path) -> Iterator[tuple[str, str]]:
    """Id and prompt of each request that `requests_written` wrote, in order. Raises UserError as `rows_of` does."""
    yield from rows_of(path, ["request", "prompt"])


def read_requests(path: Path) -> Iterator[tuple[str, RequestKey]]:
    """Id and key of each request that `requests_written` wrote. Raises UserError where it is missing or damaged."""
    again = [name for name in ("repeat", "turn") if name in column_names(path)]  # which version 0.1 did not write
    for request, *key in rows_of(path, ["request", "task", "variant", "clip", *again]):
        yield request, RequestKey(*key)


def count_requests(path: Path) -> int | None:
    """Number of planned requests; None if the file is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None


def clips_digest(clips: Iterable[tuple[str, str, Mapping[str, str]]]) -> str:
    """Digest (32 hex digits) of the clips in their order: id, SHA-256 of the waveform, groups."""
    hashed = hashlib.sha256()
    for clip, waveform, groups in clips:
        hashed.update(digest([clip, waveform, dict(groups)]).encode())
    return hashed.hexdigest()[:32]


def read_clips_digest(path: Path) -> str:
    """The digest of the clips in a file of `write_clips`. Raises UserError if it is missing or damaged."""
    return clips_digest((clip, waveform, groups) for (clip, waveform), groups in _clip_rows(path, ["clip", "waveform"]))


def read_clips(path: Path) -> Iterator[Clip]:
    """The clips in a file of `write_clips`. Raises UserError if it is missing or damaged."""
    for (clip, file, speaker, text, sentence), groups in _clip_rows(
        path, ["clip", "file", "speaker", "text", "sentence_id"]
    ):
        yield Clip(clip, file, speaker, groups, text, sentence)


def read_measured(path: Path) -> dict[str, CheckedAudio]:
    """File -> what was measured when it was decoded. Empty for a run of version 0.1 or in which no clip was opened.

    Raises UserError if the file is missing or damaged.
    """
    if not set(_MEASURED) <= set(column_names(path)):
        return {}
    found = {}
    for file, waveform, *measured in rows_of(path, ["file", "waveform", *_MEASURED]):
        if None not in measured:
            found[file] = CheckedAudio(sha256=waveform, **dict(zip(_MEASURED.values(), measured, strict=True)))
    return found


def _clip_rows(path: Path, columns: list[str]) -> Iterator[tuple[list[Any], dict[str, str]]]:
    """Some columns of each clip, and its groups, those that it has."""
    dimensions = [name for name in column_names(path) if name.startswith(GROUP_PREFIX)]
    names = [name.removeprefix(GROUP_PREFIX) for name in dimensions]
    for row in rows_of(path, [*columns, *dimensions]):
        found, groups = row[: len(columns)], row[len(columns) :]
        yield list(found), {name: group for name, group in zip(names, groups, strict=True) if group is not None}


def read_frame(path: Path, task: str, variant: str, dimension: str) -> pd.DataFrame:
    """Observations of one task and variant with the groups of one dimension, sorted by request and attribute.

    dimension: a column, or several joined by colons, whose combinations are the groups ("female:korean"). Clips without
    a group in the dimension are left out. Strings are categoricals, lists are Arrow lists of strings; a request with
    six attributes takes about 1.3 kB. Raises UserError as `check_groups_apart` does.
    """
    import pandas as pd
    import pyarrow as pa

    names = column_names(path, ["task", "variant", *SCORED])
    groups = [name for name in names if name.startswith(GROUP_PREFIX)]
    parts = [GROUP_PREFIX + name for name in parts_of(dimension)]
    columns = [*SCORED, *(name for name in ("answer", "thought", "unheard") if name in names), *groups]
    try:
        rows = matching_rows(path, task, variant, parts)
        order = np.lexsort([read_column(path, name, rows).to_pandas().cat.codes for name in ("attribute", "request")])
        found = {name: _as_series(read_column(path, name, rows).take(order)) for name in columns}  # no two under way
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    frame = pd.DataFrame(found, copy=False)
    del found
    check_groups_apart(dimension, [tuple(map(str, row)) for row in frame[parts].drop_duplicates().to_numpy()])
    frame["group"] = frame[parts[0]].astype(str)
    for part in parts[1:]:
        frame["group"] += ":" + frame[part].astype(str)
    return frame


def _as_series(column: pa.Array[Any]) -> pd.Series[Any]:
    """Words become categories, lists of words stay lists, truths are truths."""
    import pandas as pd
    import pyarrow as pa

    plain = isinstance(column, pa.DictionaryArray | pa.BooleanArray)
    return column.to_pandas() if plain else pd.Series(pd.arrays.ArrowExtensionArray(column))


def matching_rows(path: Path, task: str, variant: str, needed: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of the observations of one task and variant that have a value in every column of `needed`.

    Raises ArrowException, OSError or UnicodeDecodeError if the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found = []
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH, columns=["task", "variant", *needed], use_threads=False):
            pairs = [("task", task), ("variant", variant)]
            same: list[Any] = [pc.equal(batch.column(name), pa.scalar(word)) for name, word in pairs]
            rows = pc.and_(*same).fill_null(False).to_numpy(zero_copy_only=False)  # a row without either is of no task
            for name in needed:
                rows &= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
            found.append(rows)
    return np.concatenate(found) if found else np.zeros(0, dtype=bool)


def read_column(path: Path, name: str, rows: NDArray[np.bool_]) -> pa.Array[Any]:
    """One column of the rows in a mask (see `matching_rows`). Strings become a dictionary array, sorted by string.

    Raises ArrowException, OSError or UnicodeDecodeError if the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    kept, at = [], 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH, columns=[name], use_threads=False):
            column: Any = batch.column(0).filter(pa.array(rows[at : at + len(batch)]))
            if isinstance(column, pa.DictionaryArray):  # which still holds the words of what was filtered out
                column = column.dictionary_decode()
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column = column.dictionary_encode()
            elif not any(
                is_kind(column.type) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_boolean)
            ):
                raise pa.ArrowTypeError(f"the column '{name}' holds no words but {column.type}")
            kept.append(column)
            at += len(batch)
        kind = file.schema_arrow.field(name).type
    if not kept:
        kept = [
            pa.array(
                [],
                kind if pa.types.is_list(kind) or pa.types.is_boolean(kind) else pa.dictionary(pa.int32(), pa.string()),
            )
        ]
    whole = pa.chunked_array(kept).unify_dictionaries().combine_chunks()
    kept.clear()
    pa.default_memory_pool().release_unused()  # which keeps what the batches took: more than the column does
    if not isinstance(whole, pa.DictionaryArray):
        return whole
    order = pc.sort_indices(whole.dictionary)
    rank = pc.sort_indices(order).cast(pa.int32())  # where each word has gone
    return pa.DictionaryArray.from_arrays(rank.take(whole.indices), whole.dictionary.take(order))


def column_names(path: Path, needed: Iterable[str] = ()) -> list[str]:
    """Names of the columns of a Parquet file.

    Raises UserError if it is missing or damaged, or lacks a column of `needed`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    if lacking := [name for name in needed if name not in names]:
        raise unreadable(path, ValueError(f"no column '{lacking[0]}'"))
    return names


def rows_of(path: Path, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Rows of a Parquet file, read in batches. Raises UserError if it is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    column_names(path, columns)
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH, columns=columns):
                yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> UserError:
    """The error for a table that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return UserError(f"{path}: no such file: run the command that started the run again")
    reason = " ".join(str(error).split())[:200]
    return UserError(f"{path}: damaged ({reason}): run the command that started the run again, which writes it again")
