"""Read YAML cards safely, resolve includes, and keep the line of every field."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vibe_harness.cards.paths import inside
from vibe_harness.cards.text_file import read_text
from vibe_harness.errors import UserError


@dataclass(frozen=True)
class CardSource:
    """The content of a card after includes, with the location of each field."""

    path: Path
    data: dict[str, Any]
    locations: Mapping[tuple[str | int, ...], str]  # path of keys -> "FILE:LINE"

    def location(self, keys: Sequence[str | int]) -> str:
        """File and line of a field, or of the nearest enclosing field."""
        for end in range(len(keys), -1, -1):
            found = self.locations.get(tuple(keys[:end]))
            if found:
                return found
        return str(self.path)


class _CardLoader(yaml.SafeLoader):
    """SafeLoader without YAML aliases, which make cards hard to read, and without duplicate keys."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(
                None, None, "cards cannot use anchors and aliases: write it out, or use include", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, "cards cannot use '<<': write it out, or use include", key_node.start_mark
                )
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is not a string: put it in quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def read_yaml(path: Path) -> CardSource:
    """Read a YAML file that contains a mapping.

    Raises UserError, with file and line, if it is not UTF-8, not YAML or not a mapping, or has tags that construct
    objects.
    """
    text = read_text(path)
    try:
        loader = _CardLoader(text)
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"{path}:{line}: control character U+{error.character:04X}: remove it") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid YAML: {error}") from None
    if node is None or not isinstance(data, dict):
        raise UserError(f"{path}:1: a card must be a mapping of fields, as in 'task: story'")
    places: dict[tuple[str | int, ...], str] = {}
    _note_places(node, (), str(path), places)
    return CardSource(path, data, places)


def _note_places(
    node: yaml.Node, keys: tuple[str | int, ...], file: str, places: dict[tuple[str | int, ...], str]
) -> None:
    places.setdefault(keys, f"{file}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            inner = (*keys, str(key_node.value))
            places[inner] = f"{file}:{key_node.start_mark.line + 1}"
            _note_places(value, inner, file, places)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _note_places(value, (*keys, index), file, places)


def read_card(path: Path, within: Path | None = None) -> CardSource:
    """Read a card and merge the cards that it includes.

    Mappings are merged key by key; any other value of the including card replaces the included one. `include` is a file
    name or a list of file names, relative to the card. Included files must be inside `within` (default: the folder of
    the card). Raises UserError for a cycle and for a file outside that folder.
    """
    return _read_including(path, (within or path.parent).resolve(), (), {})


def _read_including(path: Path, within: Path, trail: tuple[Path, ...], known: dict[Path, CardSource]) -> CardSource:
    """known: cards read before with all that they include; each is read once, however many include it."""
    resolved = path.resolve()
    if resolved in trail:
        loop = " -> ".join(p.name for p in (*trail[trail.index(resolved) :], resolved))
        raise UserError(f"{path}: cards include each other in a cycle: {loop}")
    if resolved in known:
        return known[resolved]
    card = read_yaml(path)
    includes = card.data.pop("include", [])
    if isinstance(includes, str):
        includes = [includes]
    if not isinstance(includes, list) or not all(isinstance(name, str) for name in includes):
        raise UserError(f"{card.location(['include'])}: include must be a file name or a list of file names")
    data: dict[str, Any] = {}
    places: dict[tuple[str | int, ...], str] = {}
    for name in includes:
        base = _read_including(_included(card, name, within), within, (*trail, resolved), known)
        data = _merged(data, base.data)
        places |= base.locations
    known[resolved] = CardSource(path, _merged(data, card.data), {**places, **card.locations})
    return known[resolved]


def _included(card: CardSource, name: str, within: Path) -> Path:
    try:
        found = inside(within, str(card.path.parent.resolve() / name))
    except UserError as error:
        raise UserError(f"{card.location(['include'])}: {error}") from None
    if found is None:
        raise UserError(f"{card.location(['include'])}: there is no file '{name}' beside {card.path.name}")
    return found


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
