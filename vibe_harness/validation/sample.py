"""The sample that is judged: responses with what extractors read in them, as one file with a digest of its own."""

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
JUDGED = (Reading.VALUE, Reading.UNKNOWN, Reading.NONE)  # what an extractor says; the rest are failures to say anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one or more extractors say of one attribute of a response: what a person calls right or wrong."""

    extractors: Sequence[str]  # those that say so; never shown to a judge
    reading: Reading
    raw: Sequence[str]  # as the first of them wrote it
    values: Sequence[str]  # canonical, as counted
    spellings: Sequence[str]  # the card's aliases of the values: where to look for them in the text

    @property
    def judged(self) -> bool:
        """Whether there is something to judge: an extractor that could not be read says nothing."""
        return self.reading in JUDGED


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledResponse:
    """A response that was drawn. Its id says nothing of where it comes from, nor does its place."""

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
    """What a judge has to know of a task."""

    digest: str
    prompts: Mapping[str, str]  # variant -> template text
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """All that is judged. `id` is a digest of the rest, so that judgments of another sample are known as such."""

    format: int
    id: str
    seed: int
    per_cell: int  # responses for each model, task and dimension
    runs: Sequence[SampledRun]
    tasks: Mapping[str, SampledTask]
    extractors: Sequence[str]  # all that read some of the responses
    responses: Sequence[SampledResponse]  # in the order of judging

    def items(self) -> Iterator[tuple[str, SampledResponse, str, Claim]]:
        """What there is to judge, in order: id of the item, its response, attribute and claim."""
        for response in self.responses:
            for item, attribute, claim in claims_of(response):
                if claim.judged:
                    yield item, response, attribute, claim

    def sealed(self) -> Sample:
        """The same with the id that belongs to its content."""
        content = _SAMPLE.dump_python(self, mode="json") | {"id": ""}
        return replace(self, id=f"s-{digest(content, 12)}")  # with letters ahead: a spreadsheet would read 12e45


_SAMPLE = TypeAdapter(Sample)


def claims_of(response: SampledResponse) -> Iterator[tuple[str, str, Claim]]:
    """Every claim about a response: id of the item ("r001/occupation/1"), attribute, claim."""
    for attribute, claims in response.claims.items():
        for number, claim in enumerate(claims, 1):
            yield f"{response.id}/{attribute}/{number}", attribute, claim


def sample_path(folder: Path) -> Path:
    return folder / "sample.json"


def write_sample(folder: Path, sample: Sample) -> None:
    """Write the sample into its folder. Raises UserError where the folder holds another one."""
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
    """Read the sample of a folder. Raises UserError where there is none, or where it was edited."""
    path = sample_path(folder)
    if not path.is_file():
        raise UserError(f"{folder}: holds no sample: draw one with 'vibe-harness validate-extraction sample'")
    sample = read_document(path, _SAMPLE, FORMAT, "use the version that drew it")
    if sample.sealed().id != sample.id:
        raise UserError(f"{path}: was edited since it was drawn: draw it again with the same runs and seed")
    return sample
