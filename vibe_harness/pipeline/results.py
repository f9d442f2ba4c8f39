"""The results of a run: a typed, documented schema, written as results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from vibe_harness.errors import UserError
from vibe_harness.pipeline.files import read_json, write_json
from vibe_harness.records import Score

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoverage:
    """How far the requests of one group came."""

    speakers: int
    clips: int
    requests: int
    outcomes: Mapping[str, int]  # outcome -> responses; the sum is `requests`
    readings: Mapping[str, Mapping[str, int]]  # attribute -> reading -> responses
    items_per_response: Mapping[str, float | None]  # attribute -> mean values of the responses that give any


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One task, asked in one wording, compared between the groups of one dimension."""

    task: str
    task_digest: str  # results of different digests are never put in one column
    variant: str
    dimension: str
    groups: Mapping[str, GroupCoverage]
    without_value: float | None  # share of readings that gave no value, over all attributes and groups
    reliable: bool
    warnings: Sequence[str]
    scores: Sequence[Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSummary:
    """A task over several wordings of its prompt. The first variant alone compares with published figures."""

    task: str
    dimension: str
    ntvd: Mapping[str, float | None]  # variant -> the task's score; None where undefined
    mean: float | None  # over the variants; None where one of them is undefined
    standard_deviation: float | None  # between variants (n - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All that a run found."""

    format: int
    model: str
    simulated: bool
    corpus: str
    corpus_synthetic: bool
    extractor: str
    tau: int
    permutations: int
    seed: int
    hearing_check: Literal["passed", "left out", "simulated"]  # a simulated model is not asked
    bad_clips: Mapping[str, str]  # clips left out with --skip-bad-clips -> reason
    tasks: Sequence[TaskResult]
    variants: Sequence[VariantSummary] = ()  # tasks that were asked in more than one wording

    @property
    def reliable(self) -> bool:
        return all(task.reliable for task in self.tasks)


_RESULTS = TypeAdapter(Results)


def to_json(results: Results) -> dict[str, Any]:
    """Results as plain data, as results.json holds them."""
    data: dict[str, Any] = _RESULTS.dump_python(results, mode="json")
    return data


def json_schema() -> dict[str, Any]:
    """JSON Schema of results.json."""
    return _RESULTS.json_schema()


def write_results(path: Path, results: Results) -> None:
    write_json(path, to_json(results))


def read_results(path: Path) -> Results:
    """Read results.json. Raises UserError where it is missing, broken, or of another format."""
    data = read_json(path)
    if isinstance(data, dict) and data.get("format") != FORMAT:
        raise UserError(f"{path}: results of format {data.get('format')}, and this version reads {FORMAT}: score again")
    try:
        return _RESULTS.validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]
        raise UserError(f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
