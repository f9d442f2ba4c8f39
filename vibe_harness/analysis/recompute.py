"""Recompute the contents of a run folder: observations from extractions, scores from observations."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vibe_harness.cards.loading import Task
from vibe_harness.cards.templates import TemplateSet
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.published import known_tests
from vibe_harness.pipeline.observe import observation_tables
from vibe_harness.progress import Progress
from vibe_harness.scoring.score import score_run
from vibe_harness.store.extractions import ExtractionKeys
from vibe_harness.store.request_ids import RequestTable
from vibe_harness.store.responses import FinalResponses
from vibe_harness.store.results import Results, to_json
from vibe_harness.store.run_folder import RunFolder, RunRecord, TaskRecord
from vibe_harness.store.run_tables import column_names, read_clips, rows_of

CLOSE = 1e-9  # tolerance: machines may differ in the last digits of a float


def differing_observations(
    folder: RunFolder, record: RunRecord, extractor: Mapping[str, Any], planned: RequestTable
) -> int:
    """Number of requests whose rows in observations.parquet differ from their responses and extractions.

    extractor: its identity in run.json. Raises UserError if a file cannot be read.
    """
    clips = {clip.id: clip for clip in read_clips(folder.clips)}
    tasks = {task.card.task: _task(task) for task in record.tasks}
    keys = ExtractionKeys(extractor, tasks)
    names = column_names(folder.observations)
    stored, strays = _digests(rows_of(folder.observations, names), names.index("request"), planned)
    finals = FinalResponses(folder.responses, planned)
    tables = observation_tables(folder, clips, finals, keys, tasks)
    made = (
        tuple(row.get(name) for name in names)  # an extra column in the file differs in every row
        for table in tables
        for row in table.to_pylist()
    )
    remade, _ = _digests(made, names.index("request"), planned)
    return strays + int((stored != remade).sum())


def _task(record: TaskRecord) -> Task:
    """The task without its templates, which extraction keys and observations do not need."""
    return Task(
        record.card, Path(), TemplateSet([]), record.sources or {}, record.aliases, record.digest, record.digest
    )


def _digests(rows: Iterable[tuple[Any, ...]], place: int, planned: RequestTable) -> tuple[np.ndarray[Any, Any], int]:
    """A hash of the rows of each planned request, in any order, and the number of rows of other requests.

    place: position of the request id in a row.
    """
    sums, strays = [0] * len(planned), 0
    for row in rows:
        index = planned.index(row[place])
        if index is None:
            strays += 1
        else:
            hashed = hashlib.blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=8)
            sums[index] = (sums[index] + int.from_bytes(hashed.digest())) % 2**64
    return np.array(sums, dtype=np.uint64), strays


def rescored(folder: RunFolder, results: Results, progress: Progress, *, trust_remote_code: bool = False) -> Results:
    """Score a run again with the settings in its results. Writes nothing. Raises UserError as `score_run` does."""
    settings = Settings(
        tau=results.tau, permutations=results.permutations, seed=results.seed,
        also_test=known_tests(results.also_test), trust_remote_code=trust_remote_code,
    )  # fmt: skip
    dimensions = list(dict.fromkeys(task.dimension for task in results.tasks))
    return score_run(folder, settings, dimensions, progress, keep_traces=False)


def first_difference(stored: Results, made: Results) -> str | None:
    """The first difference between two results as text; None if they are the same within `CLOSE`."""
    difference = next(_differences("", to_json(stored), to_json(made)), None)
    if difference is None:
        return None
    place, before, after = difference
    return f"{place}: {_short(before)}, and {_short(after)} when scored again"


def _differences(place: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from _differences(f"{place}.{key}" if place else str(key), one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _differences(f"{place}.{index}", *pair)
    elif not _same(one, other):
        yield place, one, other


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(one) is type(other) and bool(one == other)


def _short(value: Any) -> str:
    return " ".join(str(value).split())[:60]
