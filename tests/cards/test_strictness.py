"""No card, and nothing that a backend, a synthesizer or a recogniser is told, takes one kind of value for another."""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

import vibe_harness
from vibe_harness.backends.protocol import Options, checked_options
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import Card, Lax
from vibe_harness.corpora.card import Levels, corpus_cards, load_corpus_card
from vibe_harness.errors import UserError

WRONG: dict[Any, list[Any]] = {
    int: [True, "2", 2.0], float: [True, "2"], bool: [1, 0.0, "yes"], str: [2, True], Path: [2]
}  # fmt: skip


def wrong_ones(kind: Any) -> Iterator[Any]:
    """Values of other kinds than an annotation's, within what it holds."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in WRONG:
        yield from WRONG[kind]
    elif origin is Annotated:
        yield from wrong_ones(inner[0])
    elif origin in (Union, types.UnionType):
        held = [one for one in inner if one is not type(None)]
        if len(held) == 1:
            yield from wrong_ones(held[0])
    elif origin in (list, tuple):
        yield from ([one] for one in wrong_ones(inner[0]))
    elif origin is dict:
        yield from ({"a": one} for one in wrong_ones(inner[1]))


def all_of(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for kind in base.__subclasses__():
        yield kind
        yield from all_of(kind)


for module in pkgutil.walk_packages(vibe_harness.__path__, "vibe_harness."):
    if module.name.startswith(("vibe_harness.cards.", "vibe_harness.corpora.", "vibe_harness.backends.",
                               "vibe_harness.speech_sets.", "vibe_harness.studies.study")):  # fmt: skip
        importlib.import_module(module.name)
KINDS = [kind for base in (Card, Options) for kind in all_of(base) if kind.__module__.startswith("vibe_harness.")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}")
def test_no_field_takes_a_value_of_another_kind(kind: type[BaseModel]) -> None:
    for name, field in kind.model_fields.items():
        for value in wrong_ones(field.rebuild_annotation()):
            with pytest.raises(ValidationError) as caught:
                kind.model_validate({name: value})
            assert name in {fault["loc"][0] for fault in caught.value.errors()}, f"{name}: {value!r}"


def test_the_kinds_are_all_there() -> None:
    names = {kind.__name__ for kind in KINDS}
    assert {"TaskCard", "ModelCard", "CorpusCard", "Levels", "SpeechSetCard", "Study", "GeminiConnection"} <= names


def test_whole_numbers_are_numbers() -> None:
    assert Levels.model_validate({"rate": [1, 1.25]}).rate == [1.0, 1.25]


def test_every_card_of_the_library_is_that_strict() -> None:
    index = CardIndex()
    assert [index.model(name) for name in index.model_names()]
    assert [load_corpus_card(name) for name in corpus_cards()]
    assert index.tasks(["*"])


def test_a_number_that_yaml_reads_as_a_word_is_told_so() -> None:
    with pytest.raises(UserError, match=r"rate: Input should be a valid number; this is a string: .* 1e-3"):
        checked_options(Rates, {"rate": "1e-1"}, "", "")


@pytest.mark.parametrize("revision", [1234567, 1.5, True, date(2026, 11, 30)])
def test_a_word_that_yaml_reads_as_something_else_is_told_so(revision: object) -> None:
    with pytest.raises(UserError, match=r"name: Input should be a valid string; YAML .* put it in quotes"):
        checked_options(Rates, {"rate": 1, "name": revision}, "", "")


class Rates(Options):
    rate: float
    name: str = ""


class Kind(StrEnum):
    ONE = "one"


class Further(Options):
    """As docs/adding-code.md has it, for engines of other packages."""

    names: Annotated[tuple[str, ...], Lax] = ()
    folder: Annotated[Path, Lax] = Path()
    kind: Annotated[Kind, Lax] = Kind.ONE


def test_what_yaml_does_not_have_is_read_where_a_field_says_so() -> None:
    found = checked_options(Further, {"names": ["a", "b"], "folder": "own", "kind": "one"}, "", "")
    assert found == Further(names=("a", "b"), folder=Path("own"), kind=Kind.ONE)
    with pytest.raises(UserError, match=r"names\.0: Input should be a valid string"):
        checked_options(Further, {"names": [2]}, "", "")
