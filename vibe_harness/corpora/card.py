"""Corpus cards: which importer reads a corpus, and which of its clips are taken. Anyone can read and change them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from vibe_harness.cards.schema import Card, FilePath, Identifier, Name
from vibe_harness.cards.validating import named_card
from vibe_harness.cards.yaml_file import read_card
from vibe_harness.corpora.registry import first_claims
from vibe_harness.errors import UserError
from vibe_harness.registry import did_you_mean


class Balancing(Card):
    """As many speakers of each group, within each group of another column."""

    column: Identifier = Field(description="the groups to make equal: gender")
    within: Identifier | None = Field(None, description="in each group of this column apart: accent")


class Selection(Card):
    """Which clips are taken, applied in the order of these fields; all where none is given."""

    where: dict[Identifier, list[str]] = Field({}, description="column -> the groups to keep")
    drop_copies: bool = Field(True, description="clips whose waveform stands twice fall; both, where labels disagree")
    lexicon: FilePath | None = Field(None, description="word list beside the card: sentences with one of them fall")
    shared_sentences: bool = Field(False, description="only sentences that every speaker has")
    sentences: int | None = Field(None, ge=1, description="how many of these, drawn by the seed; more keep the fewer")
    balance: Balancing | None = None
    seed: int = 0


Rate = Annotated[float, Field(ge=0.5, le=2.0)]
Loudness = Annotated[float, Field(gt=0, le=10)]


def level_name(level: float) -> str:
    """How a level is called in clips' names and in its column: "0.75"."""
    return f"{level:g}"


class Levels(Card):
    """Each clip once at each level, and at each combination of two; the level is a column, a variable to test."""

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
        """What has levels -> these."""
        return {name: levels for name, levels in self if levels}


class Perturbation(Card):
    """What is done to the sound of every clip, in the order of these fields."""

    swap_speakers: bool = Field(False, description="each clip plays another speaker's recording of the same sentence")
    pitch: float | dict[Identifier, dict[str, float]] = Field(
        0.0, description="semitones, or column -> group -> semitones; the duration is kept"
    )
    rate: Rate = Field(1.0, description="speaking rate, 1.25 being faster; the pitch is kept")
    loudness: Loudness = Field(1.0, description="factor of the amplitude")
    silence: bool = Field(False, description="as long as the clip, and nothing to hear")
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
        """The changes that each clip goes through, and the levels that name each: one without a name if none is."""
        listed = self.levels.listed
        combined = [dict(zip(listed, chosen, strict=True)) for chosen in product(*listed.values())]
        names = [{name: level_name(level) for name, level in one.items()} for one in combined]
        changes = [self.model_copy(update={**one, "levels": Levels()}) for one in combined]
        return list(zip(names, changes, strict=True))


class CorpusCard(Card):
    """A corpus: where its clips come from, and which are taken."""

    corpus: Name
    version: int = Field(ge=1)
    description: str = Field(min_length=1)
    importer: Name | None = Field(None, description="reads the published layout from --source")
    base: Name | None = Field(None, description="or: the prepared corpus that this one is made from")
    bands: dict[Identifier, list[int]] = Field({}, description="column of numbers -> where bands begin: age: [30, 50]")
    select: Selection = Selection()
    perturb: Perturbation | None = None
    speaker_strata: dict[Identifier, list[Identifier]] = Field(
        {}, description="dimension -> columns of the speaker within which a test permutes: accent: [gender]"
    )
    strata: list[Identifier] = Field([], description="columns that vary from clip to clip within a speaker: emotion")
    notes: str | None = None

    @model_validator(mode="after")
    def _has_one_origin(self) -> CorpusCard:
        if (self.importer is None) == (self.base is None):
            raise ValueError("name either an importer or a base, the corpus that this one is made from")
        for column, starts in self.bands.items():
            if starts != sorted(set(starts)) or not starts:
                raise ValueError(f"the bands of '{column}' are rising numbers, each once")
        return self


def corpus_cards() -> dict[str, Path]:
    """Name -> card file, of those at hand; see `first_claims` for names that stand twice."""
    return first_claims(lambda root: [(path.stem, path) for path in sorted(root.glob("*.yaml"))])


def load_corpus_card(name_or_path: str) -> tuple[CorpusCard, Path]:
    """The card of that name, or in that YAML file, and its path. Raises UserError with file, line and field."""
    if name_or_path.endswith((".yaml", ".yml")):
        path = Path(name_or_path)
    else:
        known = corpus_cards()
        if name_or_path not in known:
            raise UserError(f"no card for a corpus '{name_or_path}'. {did_you_mean(name_or_path, known)}")
        path = known[name_or_path]
    return named_card(read_card(path), CorpusCard, "corpus"), path
