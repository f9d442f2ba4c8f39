"""Every answer of a run, packed for the browser of samples in its page: an index to filter by, and the texts apart."""

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from vibe_harness.errors import UserError
from vibe_harness.progress import Progress
from vibe_harness.records import GROUP_PREFIX, Outcome, Reading, parts_of
from vibe_harness.store.responses import StoredResponse, read_responses
from vibe_harness.store.run_folder import RunFolder, RunRecord
from vibe_harness.store.run_tables import column_names, count_requests, rows_of

PACK_ANSWERS = 250  # texts that are unpacked together, when one of them is looked at
PACK_LETTERS = 300_000
MOST_GROUPS = 100  # a column with more is no choice to filter by
MAY_BE_PASSED_ON = re.compile(r"CC0|CC[- ]BY|Apache|MIT\b|BSD|ODbL|PDDL|Public domain|Unlicense", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Samples:
    """What the page holds of the answers: Base64 of deflated JSON, so that a page of 100,000 readings opens at once."""

    answers: int
    speakers: int
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


def pack_samples(folder: RunFolder, record: RunRecord, page_folder: Path | None, progress: Progress) -> Samples:
    """The answers of a run with their extracted values and clips.

    page_folder: where the page will lie, so that it finds the clips; None for a page that plays none. Raises UserError
    where a file of the run is missing or damaged.
    """
    tasks, attributes, values, outcomes = _Codes(), _Codes(), _Codes(), _Codes()
    clips, clip_columns = _clips(folder.clips, record)
    columns: dict[str, list[Any]] = {"task": [], "clip": [], "outcome": [], "values": []}
    packs, starts, pack, letters = [], [0], list[Any](), 0
    with progress.stage("packing answers", count_requests(folder.requests) or 0) as tick:
        for answer, rows in _joined(folder):
            read, raw = [], []
            for _, attribute, _, reading, written, canonical in rows:
                words = canonical if reading == Reading.VALUE else [f"({reading})"]  # why there is no value
                read.append([attributes(attribute), *map(values, words)])
                raw.append(written)
            prompt = "" if answer.variant == "default" else f" ({answer.variant})"
            columns["task"].append(tasks(answer.task + prompt))
            columns["clip"].append(clips[answer.clip])
            columns["outcome"].append(outcomes(rows[0][2]))
            columns["values"].append(read)
            tick(1)
            pack.append([answer.request, answer.text or answer.error or "", raw])
            letters += len(answer.text)
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
    return Samples(len(columns["task"]), len(set(clip_columns["speaker"])), _packed(index), tuple(packs))


def _packed(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(text) + deflate.flush()).decode("ascii")


def _sound(record: RunRecord, page_folder: Path | None) -> str | None:
    """The folder of the clips as seen from the page; None where they may not be passed on, or are not there."""
    folder = record.corpus_folder
    if (
        page_folder is None
        or folder is None
        or not Path(folder).is_dir()
        or not may_be_passed_on(record.corpus_licence)
    ):
        return None
    return Path(os.path.relpath(folder, page_folder.resolve())).as_posix()


def _clips(path: Path, record: RunRecord) -> tuple[dict[str, int], dict[str, Any]]:
    """Clip -> its number, and what is known of the clips, by column."""
    names = column_names(path)
    table = dict(zip(names, zip(*rows_of(path, names), strict=True), strict=True))
    numbers = {clip: number for number, clip in enumerate(table["clip"])}
    dimensions = sorted(name.removeprefix(GROUP_PREFIX) for name in names if name.startswith(GROUP_PREFIX))
    compared = list(dict.fromkeys(part for name in record.dimensions for part in parts_of(name)))
    first = [name for name in compared if name in dimensions]
    groups = {
        name: table[GROUP_PREFIX + name] for name in [*first, *(name for name in dimensions if name not in first)]
    }
    return numbers, {
        "id": table["clip"],
        **{name: table[name] for name in ("file", "speaker", "text")},
        "compared": first,
        "groups": {name: column for name, column in groups.items() if len(set(column)) <= MOST_GROUPS},
    }


READ = ("request", "attribute", "outcome", "reading", "raw", "values")


def _joined(folder: RunFolder) -> Iterator[tuple[StoredResponse, list[tuple[Any, ...]]]]:
    """Each answer with its observations, the columns READ.

    Both files are in the order in which answers arrived: neither is held whole.
    Raises UserError where they do not belong together.
    """
    answers = read_responses(folder.responses)
    for request, group in groupby(rows_of(folder.observations, list(READ)), itemgetter(0)):
        rows = list(group)
        failed = rows[0][2] == Outcome.ERROR
        for answer in answers:  # what was asked again failed before, and what is not read yet has no rows
            if answer.request == request and (answer.outcome is Outcome.ERROR) == failed:
                yield answer, rows
                break
        else:
            raise UserError(
                f"{folder.observations}: readings of an answer that {folder.responses.name} does not hold in its "
                "place: run the command that started the run again"
            )
