"""The card of a speech set: texts, voices, and checks of the speech."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from vibe_harness.cards.paths import inside
from vibe_harness.cards.schema import Card, FilePath, Identifier, Name
from vibe_harness.cards.validating import validated
from vibe_harness.cards.yaml_file import read_card
from vibe_harness.corpora.manifest import KNOWN
from vibe_harness.corpora.table_rows import read_rows
from vibe_harness.errors import UserError
from vibe_harness.registry import did_you_mean

PART = ("file", "text")  # columns of the manifest for each further text: option_a_file, option_a_text


class Rewriting(Card):
    """How a text model rewrites texts so that they can be read aloud."""

    model: str = Field(min_length=1, description="model card, by name or file; audio is not needed")
    template: FilePath = Field(description="Jinja template beside the card; it is given text, part and row")
    max_tokens: int = Field(1024, ge=1)


class Voice(Card):
    """One synthetic speaker."""

    voice: Name = Field(description="its name: the speaker of the manifest")
    synthesizer: Name = "espeak"
    settings: dict[str, Any] = Field({}, description="the synthesizer's own: its voice, rate, pitch, address")
    groups: dict[Identifier, str] = Field(min_length=1, description="what it stands for: gender, accent, language")
    where: dict[str, str] = Field({}, description="it speaks the rows with these cells only: {language: ko}")


class Recognition(Card):
    """One speech recogniser."""

    name: Name
    recogniser: Name
    settings: dict[str, Any] = Field({}, description="the recogniser's own: address, model")


class Rating(Card):
    """The sample that people rate."""

    per_bin: int = Field(40, ge=1, description="clips of each language from each bin of errors but the first")
    stratify: Identifier = Field("accent", description="group whose shares the sample keeps")
    rotate: str | None = Field(None, description="column of the source whose cells take turns: subject")
    seed: int = 0


class SpeechSetCard(Card):
    """A set of questions, and how it is turned into speech."""

    speech_set: Name
    version: int = Field(ge=1)
    description: str = Field(min_length=1)
    source: FilePath = Field(description="table beside the card (CSV, JSONL or Parquet), one row an item")
    id: str = Field(description="column that names the item")
    texts: list[Identifier] = Field(min_length=1, description="columns to speak; the first is the clip itself")
    keep: list[Identifier] = Field([], description="columns that the manifest carries: answer, subject")
    licence: str | None = None
    rewrite: Rewriting | None = None
    voices: list[Voice] = Field(min_length=1)
    recognisers: list[Recognition] = Field([], description="two, so that one's mistakes do not condemn a clip")
    error_unit: dict[str, Literal["word", "character"]] = Field(
        {"zh": "character", "ja": "character", "th": "character"},
        description="language -> what is counted; a word, where it is not named",
    )
    rating: Rating = Rating()

    @field_validator("texts", "keep")
    @classmethod
    def _each_once(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("a column stands twice")
        return value

    @model_validator(mode="after")
    def _names_differ(self) -> SpeechSetCard:
        for what, names in (
            ("voices", [voice.voice for voice in self.voices]),
            ("recognisers", [one.name for one in self.recognisers]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"two {what} have one name")
        taken = {*KNOWN, "sentence_id", *self.texts, *(f"{part}_{what}" for part in self.texts for what in PART)}
        groups = {name for voice in self.voices for name in voice.groups}
        clash = (taken & groups) | (taken & set(self.keep)) | (groups & set(self.keep))
        if clash:
            raise ValueError(f"'{min(clash)}' has a meaning of its own in the manifest, or stands twice: rename it")
        return self


@dataclass(frozen=True, slots=True)
class Item:
    """One row of the source."""

    id: str
    row: Mapping[str, str]  # every column


@dataclass(frozen=True, slots=True)
class SpeechSet:
    """A card with its rows."""

    card: SpeechSetCard
    path: Path
    items: Sequence[Item]


def load_speech_set(path: Path) -> SpeechSet:
    """Read a card and its source. Raises UserError with file, line and remedy."""
    source = read_card(path)
    card = validated(source, SpeechSetCard)
    table = inside(path.parent.resolve(), card.source)
    if table is None:
        raise UserError(f"{source.location(['source'])}: there is no file '{card.source}' beside {path.name}")
    return SpeechSet(card, path, _items(card, table))


def _items(card: SpeechSetCard, table: Path) -> list[Item]:
    wanted = [card.id, *card.texts, *card.keep]
    wanted += [column for voice in card.voices for column in voice.where]
    wanted += [card.rating.rotate] if card.rating.rotate else []

    def check(place: str, columns: list[str]) -> None:
        for column in wanted:
            if column not in columns:
                raise UserError(f"{place}: no column '{column}'. {did_you_mean(column, columns)}")

    items = [_item(card, f"{table}:{row.line}", row.cells) for row in read_rows(table, check)]
    if not items:
        raise UserError(f"{table}: no rows")
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise UserError(f"{table}: the item '{item.id}' stands twice in the column '{card.id}'")
        seen.add(item.id)
    return items


def _item(card: SpeechSetCard, place: str, cells: Mapping[str, str]) -> Item:
    for column in (card.id, *card.texts):
        if not cells.get(column):
            raise UserError(f"{place}: '{column}' is empty")
        if any(unicodedata.category(letter) == "Cc" and not letter.isspace() for letter in cells[column]):
            raise UserError(f"{place}: '{column}' holds a control character, where a synthesizer may stop: remove it")
    return Item(cells[card.id], cells)
