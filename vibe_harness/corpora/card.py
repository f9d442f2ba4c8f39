"""Corpus cards: which importer reads a corpus, and which of its clips are selected."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from vibe_harness.cards.schema import Card, FilePath, Identifier, Name
from vibe_harness.cards.validating import named_card, validated
from vibe_harness.cards.yaml_file import read_card
from vibe_harness.corpora.folders import first_claims
from vibe_harness.errors import UserError
from vibe_harness.records import parts_of
from vibe_harness.registry import did_you_mean

CARD_SUFFIXES = (".yaml", ".yml")
Column = Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
Band = Annotated[list[int], Field(min_length=2, max_length=2)]


def _starts_or_named(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:  # pydantic would report the faults of both members of the union
        raise ValueError(
            "write where bands begin ([30, 50]), or names with the first and the last number ({young: [18, 29]})"
        ) from None


Bands = Annotated[list[int] | dict[Column, Band], WrapValidator(_starts_or_named)]


class Balancing(Card):
    """The same number of speakers in each group, within each group of another column."""

    column: Column = Field(description="the column whose groups get equal numbers of speakers: gender")
    within: Column | None = Field(None, description="balance separately in each group of this column: accent")


class Selection(Card):
    """Which clips are selected. The fields apply in this order; without any, all clips are kept."""

    where: dict[Column, list[str]] = Field({}, description="column -> the groups to keep")
    drop_copies: bool = Field(
        True,
        description="leave out repeated waveforms; all copies if their labels disagree (`corpus prepare` only)",
    )
    lexicon: FilePath | None = Field(None, description="word list beside the card: leave out sentences with its words")
    shared_sentences: bool = Field(False, description="only sentences that every speaker has")
    sentences: int | None = Field(
        None, ge=1, description="number of sentences to draw; a larger one keeps those of a smaller"
    )
    balance: Balancing | None = None
    min_speakers: int = Field(1, ge=1, description="leave out groups with fewer speakers, in a compared dimension")
    seed: int = 0


Rate = Annotated[float, Field(ge=0.5, le=2.0)]
Loudness = Annotated[float, Field(gt=0, le=10)]


def level_name(level: float) -> str:
    """The name of a level, in clip ids and in its column: "0.75"."""
    return f"{level:g}"


class Levels(Card):
    """Each clip once at each level, or at each combination of levels. The level is a column that can be compared."""

    rate: list[Rate] = Field([], description="speaking rates: [0.75, 1, 1.25]")
    loudness: list[Loudness] = Field([], description="factors of the amplitude: [0.5, 1, 1.5]")

    @model_validator(mode="after")
    def _are_levels(self) -> Levels:
        for name, levels in self.listed.items():
            if len(levels) < 2 or len({level_name(level) for level in levels}) < len(levels):
                raise ValueError(f"the levels of '{name}' are two numbers or more, each once in six digits")
        return self

    @property
    def listed(self) -> dict[str, list[float]]:
        """Field -> its levels, for fields that have some."""
        return {name: levels for name, levels in self if levels}


class Perturbation(Card):
    """What is changed in the audio of every clip, in the order of these fields."""

    swap_speakers: bool = Field(False, description="each clip plays another speaker's recording of the same sentence")
    pitch: float | dict[Identifier, dict[str, float]] = Field(
        0.0, description="semitones, or column -> group -> semitones; the duration is kept"
    )
    rate: Rate = Field(1.0, description="speaking rate, 1.25 being faster; the pitch is kept")
    loudness: Loudness = Field(1.0, description="factor of the amplitude")
    silence: bool = Field(False, description="replace the clip by silence of the same length")
    levels: Levels = Levels()

    @model_validator(mode="after")
    def _does_something(self) -> Perturbation:
        if self == Perturbation.model_construct():
            raise ValueError("nothing is changed: set one of its fields")
        for name in self.levels.listed:
            if getattr(self, name) != 1.0:
                raise ValueError(f"'{name}' is one number or has levels, not both")
        return self

    def changes(self) -> list[tuple[dict[str, str], Perturbation]]:
        """The versions made of each clip, each with its levels by name; one without levels if none are listed."""
        listed = self.levels.listed
        combined = [dict(zip(listed, chosen, strict=True)) for chosen in product(*listed.values())]
        names = [{name: level_name(level) for name, level in one.items()} for one in combined]
        changes = [self.model_copy(update={**one, "levels": Levels()}) for one in combined]
        return list(zip(names, changes, strict=True))


class CorpusCard(Card):
    """A corpus: where its clips come from, and which are selected."""

    corpus: Name
    version: int = Field(ge=1)
    description: str = Field(min_length=1)
    importer: Name | None = Field(None, description="reads the published layout from --source")
    base: Name | None = Field(None, description="or: the prepared corpus that this one is made from")
    manifest: FilePath | None = Field(
        None, description="or: a CSV, JSONL or Parquet file beside the card; by default the one with the card's name"
    )
    bands: dict[Column, Bands] = Field(
        {},
        description="column of numbers -> where bands begin, age: [30, 50], or their names with the first and the last "
        "number of each, age: {young: [18, 29]}; they are the groups of age_group",
    )
    select: Selection = Selection()
    perturb: Perturbation | None = None
    speaker_strata: dict[Column, list[Column]] = Field(
        {}, description="dimension -> columns of the speaker within which a test permutes: accent: [gender]"
    )
    strata: list[Column] = Field([], description="columns that vary from clip to clip within a speaker: emotion")
    groups: dict[Column, list[str]] = Field(
        {}, description="column -> real groups whose names look like missing values: race: [unknown]"
    )
    distinct_speakers: list[str] = Field(
        [], description="different speakers whose names differ in spelling only: ['0010', '10']"
    )
    notes: str | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> CorpusCard:
        if sum(origin is not None for origin in (self.importer, self.base, self.manifest)) > 1:
            raise ValueError("name one of importer, base (the corpus that this one is made from) and manifest")
        for column, bands in self.bands.items():
            if isinstance(bands, list):
                if bands != sorted(set(bands)) or not bands:
                    raise ValueError(f"the bands of '{column}' are rising numbers, each once")
            else:
                _check_bands(column, bands)
        return self

    @property
    def of_own(self) -> bool:
        """Whether its clips come from a manifest: it has neither importer nor base."""
        return self.importer is None and self.base is None

    @property
    def columns(self) -> list[tuple[tuple[str, ...], str]]:
        """Every column that the card names, with the card field that names it."""
        found: list[tuple[tuple[str, ...], str]] = [(("bands", name), name) for name in self.bands]
        found += [(("select", "where", name), name) for name in self.select.where]
        if balance := self.select.balance:
            found.append((("select", "balance", "column"), balance.column))
            found += [(("select", "balance", "within"), balance.within)] if balance.within else []
        for dimension, columns in self.speaker_strata.items():
            found += [(("speaker_strata", dimension), name) for name in (*parts_of(dimension), *columns)]
        found += [(("strata",), name) for name in self.strata]
        return [*found, *((("groups", name), name) for name in self.groups)]


def _check_bands(column: str, bands: dict[str, list[int]]) -> None:
    if not bands:
        raise ValueError(f"the bands of '{column}': name at least one")
    rising = sorted(bands.items(), key=lambda item: item[1])
    for name, (first, last) in rising:
        if first > last:
            raise ValueError(f"the bands of '{column}': '{name}' ends at {last}, before it begins at {first}")
    for (name, (_, last)), (other, (first, _)) in pairwise(rising):
        if first <= last:
            raise ValueError(f"the bands of '{column}' overlap: '{name}' ends at {last}, '{other}' begins at {first}")


def corpus_cards() -> dict[str, Path]:
    """Name -> card file, for all cards found; see `first_claims` for repeated names."""
    return first_claims(lambda root: [(path.stem, path) for path in sorted(root.glob("*.yaml"))])


def load_corpus_card(name_or_path: str) -> tuple[CorpusCard, Path]:
    """Load a card by name or from a YAML file; returns it with its path. Raises UserError with file, line and field."""
    if name_or_path.endswith(CARD_SUFFIXES):
        path = Path(name_or_path)
    else:
        known = corpus_cards()
        if name_or_path not in known:
            raise UserError(f"no card for a corpus '{name_or_path}'. {did_you_mean(name_or_path, known)}")
        path = known[name_or_path]
    source = read_card(path)
    card = validated(source, CorpusCard)
    if card.of_own:  # its file may have the manifest's name instead of the corpus's
        return card, path
    return named_card(source, CorpusCard, "corpus"), path
