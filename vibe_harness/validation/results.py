"""The results of a validation: typed, documented, and written into the sample's folder and its run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from vibe_harness.store.atomic_files import read_document, write_json
from vibe_harness.store.checksums import run_digest
from vibe_harness.store.run_folder import RunFolder

FORMAT = 1
FILE = "validation.json"
DOCUMENTED = ConfigDict(use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRate:
    """How often people agree with the extractor."""

    __pydantic_config__ = DOCUMENTED

    share: float | None
    """Judgments called right over all; null where nothing was judged."""
    interval: tuple[float, float] | None
    """95 %, from a bootstrap over whole responses."""
    exact: bool
    """Whether all responses had the same share of right judgments. The interval is then an exact bound."""
    right: float
    """Judgments called right; those of several judges on one reading are averaged."""
    judged: int
    """Readings that were judged, each attribute of a response being one, a list too."""
    responses: int
    """Responses that they stand in."""
    waiting: int
    """Readings of the sample that nobody has judged yet."""
    not_read: int
    """Attributes for which the extractor's answer could not be parsed. They are not counted in any share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorAgreement:
    """One extractor over the sample."""

    __pydantic_config__ = DOCUMENTED

    extractor: str
    """Its name."""
    overall: AgreementRate
    """Over all tasks and attributes."""
    tasks: Mapping[str, AgreementRate]
    """By task."""
    attributes: Mapping[str, Mapping[str, AgreementRate]]
    """By task and attribute."""
    groups: Mapping[str, Mapping[str, AgreementRate]]
    """By dimension and group: an extractor that errs more for one group makes a shift of its own."""
    items: int
    """Single values of the lists whose values were judged one by one, or as a whole right."""
    wrong_items: int
    """Those of them that were marked wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePair:
    """Two judges on the readings that both judged."""

    __pydantic_config__ = DOCUMENTED

    judges: tuple[str, str]
    """Their names."""
    judged: int
    """Readings judged by both."""
    same: float | None
    """Share of them on which they say the same."""
    kappa: float | None
    """Cohen's kappa."""
    undefined: str | None
    """Why there is no kappa."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorComparison:
    """Two extractors on the same attributes of the same responses."""

    __pydantic_config__ = DOCUMENTED

    first: str
    """Name of the one."""
    second: str
    """Name of the other."""
    judged: int
    """Attributes that both read, judged for both."""
    responses: int
    """Responses that they stand in."""
    first_share: float | None
    """Agreement with the one on these."""
    second_share: float | None
    """Agreement with the other on these."""
    difference: float | None
    """First less second."""
    interval: tuple[float, float] | None
    """95 % of the difference, from a bootstrap over whole responses, or an exact bound where it is the same in all."""
    p_value: float | None
    """That the two are alike: the sign of each response's difference exchanged at random, two-sided."""
    permutations: int
    """Exchanges that were drawn."""
    first_not_read: int
    """Attributes that only the second could be read for."""
    second_not_read: int
    """Attributes that only the first could be read for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """All results from the judgments of a sample."""

    __pydantic_config__ = DOCUMENTED

    format: int
    """Version of this schema."""
    sample: str
    """Id of the sample."""
    simulated: bool
    """Whether some of its responses are from a simulated model."""
    complete: bool
    """Whether every reading was judged."""
    judges: Mapping[str, int]
    """Judge -> readings judged."""
    readings: int
    """Readings that there are to judge."""
    resamples: int
    """Of every bootstrap and test."""
    seed: int
    """Of every bootstrap and test."""
    extractors: Sequence[ExtractorAgreement]
    """One for each extractor."""
    pairs: Sequence[JudgePair]
    """One for each two judges."""
    comparisons: Sequence[ExtractorComparison]
    """One for each two extractors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedReading:
    """The judgments of one reading."""

    request: str
    attribute: str
    extractors: Sequence[str]
    reading: str
    values: Sequence[str]
    verdicts: Mapping[str, str]
    """Judge -> right or wrong."""
    wrong_items: Mapping[str, Sequence[str]]
    """Judge -> values of the list marked wrong; judges who marked none are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValidation:
    """The validation in a run folder: agreement over the whole sample, and the judgments of this run's readings."""

    __pydantic_config__ = DOCUMENTED

    format: int
    run: str
    """Digest of what the run asked, and of the cards that it was read by."""
    models: Sequence[str]
    """The models whose responses were sampled."""
    validation: Validation
    """Of the whole sample."""
    own: ExtractorAgreement
    """Of the run's own extractor on the run's own responses."""
    judged: Sequence[JudgedReading]
    """Every reading of this run that was judged."""

    def stale(self, run: RunFolder) -> str | None:
        """Why this validation does not apply to the current state of the run; None if it does."""
        if self.run == run_digest(run):
            return None
        return "judged before the run's question, cards or alias files changed: sample and judge it again"


_VALIDATION = TypeAdapter(Validation)
_RUN = TypeAdapter(RunValidation)


def to_json(validation: Validation) -> dict[str, Any]:
    data: dict[str, Any] = _VALIDATION.dump_python(validation, mode="json")
    return data


def write_validation(folder: Path, validation: Validation) -> None:
    """Write it beside the sample."""
    write_json(folder / FILE, to_json(validation))


def write_run_validation(run: RunFolder, found: RunValidation) -> None:
    """Write it beside the run."""
    write_json(run.path / FILE, _RUN.dump_python(found, mode="json"))


def read_run_validation(run: RunFolder) -> RunValidation | None:
    """The validation of a run; None if there is none.

    It may be `stale`. Raises UserError if the file is broken.
    """
    path = run.path / FILE
    if not path.exists():
        return None
    return read_document(path, _RUN, FORMAT, "score again")
