"""Every answer of a run, packed for the browser of samples in its page: an index to filter by, and the texts apart."""

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vibe_harness.errors import UserError
from vibe_harness.metrics.registry import GROUP_PREFIX
from vibe_harness.pipeline.journal import read_journal
from vibe_harness.pipeline.run_folder import RunFolder, RunRecord
from vibe_harness.records import Outcome, Reading

PACK_ANSWERS = 250  # texts that are unpacked together, when one of them is looked at
PACK_LETTERS = 300_000
MAY_BE_PASSED_ON = re.compile(r"CC0|CC[- ]BY|Apache|MIT\b|BSD|ODbL|PDDL|Public domain|Unlicense", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Samples:
    """What the page holds of the answers: Base64 of deflated JSON, so that a page of 100,000 readings opens at once."""

    answers: int
    index: str
    packs: tuple[str, ...]


@dataclass
class _Codes:
    """Texts as small numbers, in the order in which they came."""

    of: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> int:
        return self.of.setdefault(text, len(self.of))


def may_be_passed_on(licence: str | None) -> bool:
    """Whether all of a corpus's licences, joined by "; ", let a clip be given to others."""
    return licence is not None and all(MAY_BE_PASSED_ON.match(part.strip()) for part in licence.split(";"))


def pack_samples(folder: RunFolder, record: RunRecord, page_folder: Path) -> Samples:
    """The answers of a run with their extracted values and clips.

    page_folder: where the page will lie; clips are named from there. Raises UserError where a file of the run is
    missing or damaged.
    """
    tasks, attributes, values, outcomes = _Codes(), _Codes(), _Codes(), _Codes()
    clips, clip_columns = _clips(folder.clips, record)
    read = _readings(folder.observations, attributes, values)
    columns: dict[str, list[Any]] = {"task": [], "clip": [], "outcome": [], "values": []}
    packs, starts, pack, letters = [], [0], list[Any](), 0
    for answer in _final_answers(folder.responses, read):
        outcome, cells, raw = read.pop(answer["request"])
        columns["task"].append(tasks(f"{answer['task']} ({answer['variant']})"))
        columns["clip"].append(clips[answer["clip"]])
        columns["outcome"].append(outcomes(outcome))
        columns["values"].append(cells)
        pack.append([answer["request"], answer["text"] or answer["error"] or "", raw])
        letters += len(answer["text"])
        if len(pack) >= PACK_ANSWERS or letters >= PACK_LETTERS:
            packs.append(_packed(pack))
            starts.append(starts[-1] + len(pack))
            pack, letters = [], 0
    if pack:
        packs.append(_packed(pack))
    index = {
        **columns, "tasks": list(tasks.of), "attributes": list(attributes.of), "words": list(values.of),
        "outcomes": list(outcomes.of), "starts": starts, "clips": clip_columns,
        "sound": _sound(record, page_folder), "licence": record.corpus_licence,
    }  # fmt: skip
    return Samples(len(columns["task"]), _packed(index), tuple(packs))


def _packed(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(text) + deflate.flush()).decode("ascii")


def _sound(record: RunRecord, page_folder: Path) -> str | None:
    """The folder of the clips as seen from the page; None where they may not be passed on, or are not there."""
    folder = record.corpus_folder
    if folder is None or not Path(folder).is_dir() or not may_be_passed_on(record.corpus_licence):
        return None
    return Path(os.path.relpath(folder, page_folder.resolve())).as_posix()


def _clips(path: Path, record: RunRecord) -> tuple[dict[str, int], dict[str, Any]]:
    """Clip -> its number, and what is known of the clips, by column."""
    table = _table(path, None)
    numbers = {clip: number for number, clip in enumerate(table["clip"])}
    dimensions = {
        name.removeprefix(GROUP_PREFIX): column for name, column in table.items() if name.startswith(GROUP_PREFIX)
    }
    groups = {name: dimensions[name] for name in [*record.dimensions, *sorted(dimensions)] if name in dimensions}
    return numbers, {
        "id": table["clip"],
        "file": table["file"],
        "speaker": table["speaker"],
        "text": table["text"],
        "groups": {name: column for name, column in groups.items() if len(set(column)) <= 100},
    }


def _readings(
    path: Path, attributes: _Codes, values: _Codes
) -> dict[str, tuple[str, list[list[int]], list[list[str]]]]:
    """Request -> outcome, [attribute, value...] of each attribute, and the values as the extractor wrote them.

    A reading that gave no value stands as a word in brackets.
    """
    found: dict[str, tuple[str, list[list[int]], list[list[str]]]] = {}
    table = _table(path, ["request", "attribute", "outcome", "reading", "raw", "values"])
    for request, attribute, outcome, reading, raw, canonical in zip(*table.values(), strict=True):
        _, cells, written = found.setdefault(request, (outcome, [], []))
        words = canonical if reading == Reading.VALUE else [f"({reading})"]
        cells.append([attributes(attribute), *map(values, words)])
        written.append(raw)
    return found


def _final_answers(path: Path, read: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The record of each request that has readings: its answer, or its error where it has no answer."""
    for record in read_journal(path):
        request = record["request"]
        if request in read and (record["outcome"] == Outcome.ERROR) == (read[request][0] == Outcome.ERROR):
            yield record  # and the caller takes the request out


def _table(path: Path, columns: list[str] | None) -> dict[str, list[Any]]:
    """A Parquet file by column. Raises UserError where it is missing, damaged, or another file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=columns)
        return {name: table.column(name).to_pylist() for name in columns or table.column_names}
    except (pa.ArrowException, OSError, KeyError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: missing or damaged ({said}): run the command that started the run again") from None
