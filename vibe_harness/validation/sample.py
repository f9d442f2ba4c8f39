"""The sample that people judge: responses and the readings of extractors, in one file with a digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vibe_harness.cards.digest import digest
from vibe_harness.cards.schema import Attribute
from vibe_harness.errors import UserError
from vibe_harness.records import Reading
from vibe_harness.store.atomic_files import read_document, write_json

FORMAT = 1
JUDGED = (Reading.VALUE, Reading.UNKNOWN, Reading.NONE)  # the other readings are failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The reading of one attribute of a response by one or more extractors, which a judge calls right or wrong."""

    extractors: Sequence[str]  # extractors with this reading; never shown to a judge
    reading: Reading
    raw: Sequence[str]  # as the first of them wrote it
    values: Sequence[str]  # canonical, as counted
    spellings: Sequence[str]  # the card's aliases of the values: where to look for them in the text

    @property
    def judged(self) -> bool:
        """Whether it can be judged. A failed extraction cannot."""
        return self.reading in JUDGED


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledResponse:
    """A response that was drawn. Its id and position do not reveal where it comes from."""

    id: str
    run: int  # index into `Sample.runs`
    request: str
    task: str
    variant: str
    dimension: str  # for which it was drawn
    group: str  # of the speaker in that dimension
    text: str
    claims: Mapping[str, Sequence[Claim]]  # by attribute; extractors that say the same share a claim


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRun:
    """A run that responses were drawn from."""

    path: str  # from the sample's folder
    digest: str  # of what the run asked
    model: str
    corpus: str
    simulated: bool
    extractor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledTask:
    """What a judge needs to know about a task."""

    digest: str
    prompts: Mapping[str, str]  # variant -> template text
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample of responses. `id` is a digest of the content, by which judgments of another sample are detected."""

    format: int
    id: str
    seed: int
    per_cell: int  # responses for each model, task and dimension
    runs: Sequence[SampledRun]
    tasks: Mapping[str, SampledTask]
    extractors: Sequence[str]  # all that read some of the responses
    responses: Sequence[SampledResponse]  # in the order of judging

    def items(self) -> Iterator[tuple[str, SampledResponse, str, Claim]]:
        """Yield what is to be judged, in order: id of the item, response, attribute and claim."""
        for response in self.responses:
            for item, attribute, claim in claims_of(response):
                if claim.judged:
                    yield item, response, attribute, claim

    def sealed(self) -> Sample:
        """A copy with the id of its content."""
        content = _SAMPLE.dump_python(self, mode="json") | {"id": ""}
        return replace(
            self, id=f"s-{digest(content, 12)}"
        )  # the prefix keeps spreadsheets from reading 12e45 as a number


_SAMPLE = TypeAdapter(Sample)


def claims_of(response: SampledResponse) -> Iterator[tuple[str, str, Claim]]:
    """Every claim about a response: id of the item ("r001/occupation/1"), attribute, claim."""
    for attribute, claims in response.claims.items():
        for number, claim in enumerate(claims, 1):
            yield f"{response.id}/{attribute}/{number}", attribute, claim


def sample_path(folder: Path) -> Path:
    return folder / "sample.json"


def write_sample(folder: Path, sample: Sample) -> None:
    """Write the sample into its folder. Raises UserError if the folder contains another sample."""
    path = sample_path(folder)
    if path.exists():
        before = read_sample(folder)
        if before.id != sample.id:
            raise UserError(
                f"{folder}: holds another sample ({before.id}), which may have been judged: name another --output"
            )
    data: dict[str, Any] = _SAMPLE.dump_python(sample, mode="json")
    write_json(path, data)


def read_sample(folder: Path) -> Sample:
    """Read the sample of a folder. Raises UserError if there is none, or if it was edited."""
    path = sample_path(folder)
    if not path.is_file():
        raise UserError(f"{folder}: holds no sample: draw one with 'vibe-harness validate-extraction sample'")
    sample = read_document(path, _SAMPLE, FORMAT, "use the version that drew it")
    if sample.sealed().id != sample.id:
        raise UserError(f"{path}: was edited since it was drawn: draw it again with the same runs and seed")
    return sample
