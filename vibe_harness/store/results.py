"""The results of a run: a typed, documented schema, written as results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from vibe_harness.errors import UserError
from vibe_harness.modality import Modality
from vibe_harness.records import AnswerBy, Reading, Score
from vibe_harness.store.atomic_files import read_document, write_json
from vibe_harness.store.checksums import check_sums, write_sums
from vibe_harness.store.run_folder import RunFolder

FORMAT = 1
NO_SCORES = "no scores yet: finish the run with the command that started it, or score it with `vibe-harness score`"
DOCUMENTED = ConfigDict(use_attribute_docstrings=True)  # the words below each field stand in the schema


def _whole(readings: Mapping[str, int]) -> Mapping[str, int]:
    """Raise ValueError, naming it, for a reading that is not counted."""
    if missing := sorted(set(Reading) - readings.keys()):
        raise ValueError(f"does not count '{missing[0]}'")
    return readings


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoverage:
    """How far the requests of one group came."""

    __pydantic_config__ = DOCUMENTED

    speakers: int
    """Speakers with at least one request."""
    clips: int
    """Clips that were played."""
    requests: int
    """Requests that have ended, however they ended."""
    outcomes: Mapping[str, int]
    """Outcome -> responses; the sum is `requests`."""
    readings: Mapping[str, Annotated[Mapping[str, int], AfterValidator(_whole)]]
    """Attribute -> reading -> responses."""
    items_per_response: Mapping[str, float | None]
    """Attribute -> mean values of the responses that give any."""


@dataclass(frozen=True, slots=True)
class _Difference:
    difference: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class _Contribution:
    value: str
    adds: float
    by_group: Mapping[str, _Difference]


@dataclass(frozen=True, slots=True)
class _KnownDetail:
    """What pages and gates read in the detail of a score; whatever else a metric tells is left as it is."""

    distribution: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    contributions: Sequence[_Contribution] = ()
    kept_share: float | None = None
    kept_share_by_group: Mapping[str, float | None] = field(default_factory=dict)
    commonest_share: float | None = None
    identical_share: float | None = None
    distinct_values: int = 0
    by_tau: Mapping[str, float | None] = field(default_factory=dict)
    no_interval: str = ""


_KNOWN_DETAIL = TypeAdapter(_KnownDetail)


def _with_known_detail(score: Score) -> Score:
    """Raise ValueError, naming the field, for a detail of another type: a file edited by hand must not break a page."""
    try:
        _KNOWN_DETAIL.validate_python(score.detail)
    except ValidationError as error:
        fault = error.errors()[0]
        raise ValueError(f"detail.{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    return score


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One task, asked in one wording, compared between the groups of one dimension."""

    __pydantic_config__ = DOCUMENTED

    task: str
    """Name of the task."""
    task_digest: str
    """Of the card with its templates and aliases; results of different digests are never put in one column."""
    variant: str
    """Name of the prompt that was used."""
    dimension: str
    """What the groups are groups of: gender, accent."""
    groups: Mapping[str, GroupCoverage]
    """Group -> how far its requests came."""
    without_value: float | None
    """Share of readings that gave no value, over all attributes and groups."""
    reliable: bool
    """False where an attribute is read too seldom, or more seldom for one group, or the score is undefined."""
    warnings: Sequence[str]
    """Why it is not reliable, and what has no score, in words."""
    scores: Sequence[Annotated[Score, AfterValidator(_with_known_detail)]]
    """What each metric of the task's card found."""
    alias_files: Mapping[str, str] = field(default_factory=dict)
    """Attribute -> the alias file that its values were counted under, and a digest of what that says."""


def _with_all_readings(task: TaskResult) -> TaskResult:
    """Raise ValueError, naming it, for a group without the readings of an attribute that has a score."""
    scored = {score.attribute for score in task.scores if score.metric == "ntvd" and score.attribute}
    for name, group in task.groups.items():
        if missing := sorted(scored - group.readings.keys()):
            raise ValueError(f"groups.{name}.readings: lacks '{missing[0]}'")
    return task


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSummary:
    """A task over several wordings of its prompt. The first variant alone compares with published figures."""

    __pydantic_config__ = DOCUMENTED

    task: str
    """Name of the task."""
    dimension: str
    """What the groups are groups of: gender, accent."""
    ntvd: Mapping[str, float | None]
    """Variant -> the task's score; null where undefined."""
    mean: float | None
    """Mean over the variants; null where one of them is undefined."""
    standard_deviation: float | None
    """Between variants (n - 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCheck:
    """Requests that were asked again, each alone: whether a batch changes what the model writes."""

    __pydantic_config__ = DOCUMENTED

    requests: int
    """Asked again."""
    different: int
    """Of these, answered in other words than among others; engines.jsonl holds both texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All that a run found."""

    __pydantic_config__ = DOCUMENTED

    format: int
    """Version of this schema."""
    model: str
    """Name of the model card."""
    simulated: bool
    """No real model gave these answers."""
    corpus: str
    """Name of the corpus."""
    corpus_synthetic: bool
    """No person was recorded."""
    extractor: str
    """What read the answers: rules, or a model card."""
    tau: int
    """Values seen fewer times over all groups were left out."""
    permutations: int
    """Most permutations of a test."""
    seed: int
    """The seed of generation, drawing and tests."""
    also_test: Sequence[str] = ()
    """Published tests that were made beside the default one."""
    modality: Modality = "audio"
    """What the model was given: the clip, its words, or its own transcription. Never put together in one column."""
    answer_by: AnswerBy = "generate"
    """How choice tasks were answered: by a text, or by the likeliest letter. Never put together in one column."""
    hearing_check: Literal["passed", "left out", "simulated", "no audio"]
    """Whether the model was asked what it hears; a simulated one is not, nor one that is given words."""
    batch_check: BatchCheck | None = None
    """Where --check-batch-invariance was asked for."""
    bad_clips: Mapping[str, str]
    """Clips left out with --skip-bad-clips -> reason."""
    long_clips: Mapping[str, int]
    """What was done to clips longer than the model takes (refused, truncated, split) -> how many."""
    tasks: Sequence[Annotated[TaskResult, AfterValidator(_with_all_readings)]]
    """One for each task, prompt and dimension."""
    variants: Sequence[VariantSummary] = ()
    """Summaries of the tasks that were asked in more than one wording."""

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


def write_results(folder: RunFolder, results: Results) -> None:
    """Write the results of a run into its folder, with checksums of all that they were made of.

    A page of other scores, or of other answers, goes: a number that is no longer true must not stand beside the new.
    """
    before = folder.sums.read_bytes() if folder.sums.is_file() else None
    write_json(folder.results, to_json(results))
    write_sums(folder)
    if folder.sums.read_bytes() != before and folder.page.is_file():
        folder.page.unlink()


def read_verified_results(folder: RunFolder) -> Results:
    """The results of a run, which are those of the files beside them.

    Raises UserError where the run has no scores, where they are broken, or where they or the files were changed since.
    """
    if not folder.results.is_file():
        raise UserError(f"{folder.path}: {NO_SCORES}")
    results = read_results(folder.results)
    check_sums(folder)
    for task in {task.task for task in results.tasks} - {task.card.task for task in folder.record().tasks}:
        raise UserError(f"{folder.results}: the run did not ask the task '{task}': score again")
    return results


def read_results(path: Path) -> Results:
    """Read results.json. Raises UserError where it is missing, broken, or of another format."""
    results = read_document(path, _RESULTS, FORMAT, "score again, or use the version that made it")
    if not results.tasks:
        raise UserError(f"{path}: holds the scores of no task: score again")
    return results
