"""The results of a run: a typed, documented schema, written as results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from vibe_harness.corpora.confounds import Confound
from vibe_harness.errors import UserError
from vibe_harness.modality import Modality
from vibe_harness.records import AnswerBy, Reading, Score
from vibe_harness.store.atomic_files import read_document, write_json
from vibe_harness.store.checksums import check_sums, write_sums
from vibe_harness.store.engines import HearingEvidence
from vibe_harness.store.run_folder import RunFolder

FORMAT = 1
NO_SCORES = "no scores yet: finish the run with the command that started it, or score it with `vibe-harness score`"
DOCUMENTED = ConfigDict(use_attribute_docstrings=True)  # the words below each field stand in the schema


def _whole(readings: Mapping[str, int]) -> Mapping[str, int]:
    """Raise ValueError if a reading has no count."""
    if missing := sorted(set(Reading) - readings.keys()):
        raise ValueError(f"does not count '{missing[0]}'")
    return readings


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoverage:
    """Counts of the requests, outcomes and readings of one group."""

    __pydantic_config__ = DOCUMENTED

    speakers: int
    """Speakers with at least one request."""
    clips: int
    """Clips that were played."""
    requests: int
    """Requests that have a response, with any outcome."""
    outcomes: Mapping[str, int]
    """Outcome -> responses; the sum is `requests`."""
    readings: Mapping[str, Annotated[Mapping[str, int], AfterValidator(_whole)]]
    """Attribute -> reading -> responses."""
    items_per_response: Mapping[str, float | None]
    """Attribute -> mean values of the responses that give any."""
    thoughts: int = 0
    """Responses that carry a thought (`<think>...</think>`), which no extractor is given."""
    unheard: int = 0
    """Responses that begin by saying that there is nothing to hear."""


@dataclass(frozen=True, slots=True)
class _Difference:
    difference: float
    interval: tuple[float, float] | None
    p_value: float | None = None
    named: bool = False
    named_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class _Contribution:
    value: str
    adds: float
    by_group: Mapping[str, _Difference]


@dataclass(frozen=True, slots=True)
class _Filter:
    left_out_share: float
    kept_difference: float | None = None
    kept_p: float | None = None
    left_out_ntvd: float | None = None
    left_out_null_mean: float | None = None
    left_out_p: float | None = None
    left_out_shift: float | None = None
    ntvd_with_other: float | None = None


@dataclass(frozen=True, slots=True)
class _OverSentences:
    sentences: int
    at_least: float | None = None
    low: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _KnownDetail:
    """The fields of a score's detail that pages and gates use. Other fields are not checked."""

    distribution: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    contributions: Sequence[_Contribution] = ()
    kept_share: float | None = None
    kept_share_by_group: Mapping[str, float | None] = field(default_factory=dict)
    commonest_share: float | None = None
    identical_share: float | None = None
    distinct_values: int = 0
    by_tau: Mapping[str, float | None] = field(default_factory=dict)
    no_interval: str = ""
    filter: _Filter | None = None
    over_sentences: _OverSentences | None = None


_KNOWN_DETAIL = TypeAdapter(_KnownDetail)


def _with_known_detail(score: Score) -> Score:
    """Raise ValueError, with the field, if a detail has a wrong type, so that edited files cannot break a page."""
    try:
        _KNOWN_DETAIL.validate_python(score.detail)
    except ValidationError as error:
        fault = error.errors()[0]
        raise ValueError(f"detail.{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    return score


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of one task and prompt variant, compared between the groups of one dimension."""

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
    """Group -> counts of its requests, outcomes and readings."""
    without_value: float | None
    """Share of readings that gave no value, over all attributes and groups."""
    reliable: bool
    """False where an attribute is read too seldom, or more seldom for one group, or the score is undefined."""
    warnings: Sequence[str]
    """Why it is not reliable, and why scores are undefined."""
    scores: Sequence[Annotated[Score, AfterValidator(_with_known_detail)]]
    """What each metric of the task's card found."""
    alias_files: Mapping[str, str] = field(default_factory=dict)
    """Attribute -> the alias file that its values were counted under, and a digest of what that says."""


def _with_all_readings(task: TaskResult) -> TaskResult:
    """Raise ValueError if a group lacks the readings of an attribute that has a score."""
    scored = {score.attribute for score in task.scores if score.metric == "ntvd" and score.attribute}
    for name, group in task.groups.items():
        if missing := sorted(scored - group.readings.keys()):
            raise ValueError(f"groups.{name}.readings: lacks '{missing[0]}'")
    return task


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSummary:
    """A task over several prompt variants. Only the first variant is comparable with published figures."""

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
    """Requests that were repeated one by one, to see whether batching changes the answers."""

    __pydantic_config__ = DOCUMENTED

    requests: int
    """Requests that were repeated."""
    different: int
    """How many of them got another answer; engines.jsonl has both texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HearingResult:
    """What the hearing check of a run showed."""

    __pydantic_config__ = DOCUMENTED

    by: HearingEvidence
    """What showed that the model hears: transcripts, the question on its card, other clips, or silence alone."""
    clips: int
    """Clips that it was asked about, silence aside."""
    right: int
    """Clips that it answered right: with the words that are spoken, or otherwise than to other clips and silence."""
    error_rate: float | None = None
    """Mean word error rate of its transcriptions, where the corpus has texts; 0 is right to the word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All results of a run."""

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
    """Name of the extractor: "rules" or a model card."""
    tau: int
    """Values seen fewer times over all groups were left out."""
    permutations: int
    """Most permutations of a test."""
    seed: int
    """The seed of generation, drawing and tests."""
    also_test: Sequence[str] = ()
    """Published tests that were made beside the default one."""
    served_model: str | None = None
    """Name that the engine gave the model in its replies, a server's with the version where it tells one; null where it
    gave none."""
    served_as_asked: bool | None = None
    """Whether that name is the one on the model's card; false where --accept-served-model went on all the same; null
    where no server answered, or it gave no name."""
    extractor_served_model: str | None = None
    """Name that the engine gave the extractor model; null for rules, and where it gave none."""
    modality: Modality = "audio"
    """What the model was given: the clip, its text, or its own transcription. Results of different modalities are never
    put into one column."""
    answer_by: AnswerBy = "generate"
    """How choice tasks were answered: by generated text, or by the most likely letter. Never put into one column."""
    hearing_check: Literal["passed", "left out", "simulated", "no audio"]
    """Whether the model passed the hearing check. Simulated models and text modalities are not checked."""
    hearing: HearingResult | None = None
    """What the hearing check showed; null where there was none, and in runs of version 0.1."""
    batch_check: BatchCheck | None = None
    """Result of --check-batch-invariance, if it was used."""
    bad_clips: Mapping[str, str]
    """Clips left out with --skip-bad-clips -> reason."""
    long_clips: Mapping[str, int]
    """What was done to clips longer than the model takes (refused, truncated, split) -> how many."""
    tasks: Sequence[Annotated[TaskResult, AfterValidator(_with_all_readings)]]
    """One for each task, prompt and dimension."""
    confounds: Sequence[Confound] | None = None
    """Properties of the recordings and of what is said in them, compared between the groups of each dimension; null in
    runs of version 0.1. Those with a sentence differ, so that a model may answer to them and not to the voice."""
    variants: Sequence[VariantSummary] = ()
    """Summaries of the tasks that ran with several prompt variants."""

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
    """Write the results of a run into its folder, with checksums of the files they were computed from.

    Removes the folder's page if results or files changed, because its figures would be out of date.
    """
    before = folder.sums.read_bytes() if folder.sums.is_file() else None
    write_json(folder.results, to_json(results))
    write_sums(folder)
    if folder.sums.read_bytes() != before and folder.page.is_file():
        folder.page.unlink()


def read_verified_results(folder: RunFolder) -> Results:
    """Read the results of a run after checking that its files did not change since it was scored.

    Raises UserError if the run has no results, if they are broken, or if a file changed.
    """
    if not folder.results.is_file():
        raise UserError(f"{folder.path}: {NO_SCORES}")
    results = read_results(folder.results)
    check_sums(folder)
    for task in {task.task for task in results.tasks} - {task.card.task for task in folder.record().tasks}:
        raise UserError(f"{folder.results}: the run did not ask the task '{task}': score again")
    return results


def read_results(path: Path) -> Results:
    """Read results.json. Raises UserError if it is missing, broken, or has another format."""
    results = read_document(path, _RESULTS, FORMAT, "score again, or use the version that made it")
    if not results.tasks:
        raise UserError(f"{path}: holds the scores of no task: score again")
    return results
