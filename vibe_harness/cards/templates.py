"""Jinja templates in a sandbox. Undefined names are errors, and only the template folders can be read."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta

from vibe_harness.cards.paths import find_file
from vibe_harness.cards.sandbox import LONGEST, Sandbox, address_in, limited_time
from vibe_harness.cards.text_file import read_text
from vibe_harness.errors import UserError

_TOO_MUCH = (ValueError, RecursionError, SyntaxError)  # for Python: a number too long to write, blocks nested too deep
ROOM = 1 << 28  # bytes that the first rendering of a template may take


class _Undefined(jinja2.StrictUndefined):
    """As StrictUndefined, but also an error where it stands in a list that is rendered."""

    __repr__ = jinja2.StrictUndefined.__str__


@dataclass(frozen=True, slots=True)
class _Parsed:
    text: str
    names: frozenset[str]  # variables that it reads and does not set
    others: tuple[str | None, ...]  # templates that it includes, imports or extends; None if named by an expression


class TemplateSet:
    """The templates in some folders, rendered in a sandbox."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self._rendered: set[str] = set()
        self._parsed: dict[str, _Parsed] = {}  # each file is read once: what was checked is what is rendered
        self._environment = Sandbox(
            loader=jinja2.FunctionLoader(self._load),
            undefined=_Undefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )

    def __reduce__(self) -> tuple[type[TemplateSet], tuple[Sequence[Path]]]:
        return TemplateSet, (self.roots,)  # another process reads the files again

    def _load(self, name: str) -> tuple[str, str, None]:
        path = find_file(self.roots, name)
        if name in self._parsed:
            return self._parsed[name].text, str(path), None
        return read_text(path), str(path), None

    def sources(self, name: str) -> dict[str, str]:
        """The text of a template and of all templates that it includes, imports or extends, by name.

        Raises UserError if one does not parse, if they form a cycle, or if one is named by an expression.
        """
        found: dict[str, _Parsed] = {}
        self._collect(name, (), found)
        return {name: parsed.text for name, parsed in found.items()}

    def check(self, name: str, known: Collection[str]) -> dict[str, str]:
        """As `sources`, and raises UserError if a template uses a variable that is not in `known`."""
        found: dict[str, _Parsed] = {}
        self._collect(name, (), found)
        for current, parsed in found.items():
            unknown = parsed.names - set(known) - set(self._environment.globals)
            if unknown:
                path = find_file(self.roots, current)
                raise UserError(
                    f"{path}:{_first_line(parsed.text, min(unknown))}: unknown variable '{min(unknown)}': "
                    f"available are {', '.join(sorted(known))}"
                )
        return {name: parsed.text for name, parsed in found.items()}

    def _collect(self, name: str, trail: tuple[str, ...], found: dict[str, _Parsed]) -> None:
        if name in trail:
            loop = " -> ".join((*trail[trail.index(name) :], name))
            raise UserError(f"{find_file(self.roots, trail[-1])}: templates include each other in a cycle: {loop}")
        if name in found:
            return
        if name not in self._parsed:
            self._parsed[name] = self._parse(name)
        found[name] = self._parsed[name]
        for other in found[name].others:
            if other is None:
                raise UserError(
                    f"{find_file(self.roots, name)}: write the name of an included template as a string, not as an "
                    "expression"
                )
            self._collect(other, (*trail, name), found)

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """The rendered text, stripped. Raises UserError, with file and line, on errors and if the text is empty."""
        try:
            with limited_time():
                text = self._bounded(name, values).strip()
        except jinja2.TemplateSyntaxError as error:
            raise UserError(f"{error.filename or name}:{error.lineno}: {error.message}") from None
        except jinja2.exceptions.SecurityError as error:
            raise UserError(
                f"{find_file(self.roots, name)}: {error}: templates cannot reach Python's internals"
            ) from None
        except jinja2.TemplateError as error:
            raise UserError(f"{find_file(self.roots, name)}: {error.message}") from None
        except MemoryError:
            raise self._too_long(name) from None
        except (TypeError, ArithmeticError, LookupError, AttributeError, *_TOO_MUCH) as error:
            raise UserError(f"{find_file(self.roots, name)}: {type(error).__name__}: {error}") from None
        if not text:
            raise UserError(f"{find_file(self.roots, name)}: renders to an empty text")
        if address := address_in(text, values):
            raise UserError(
                f"{find_file(self.roots, name)}: writes out an address of memory, {address}, which is another in every "
                "run: a name or its brackets lack?"
            )
        return text

    def _bounded(self, name: str, values: Mapping[str, Any]) -> str:
        """Render, and stop as soon as the text is too long, because a loop may never end.

        The first rendering, which checks the card, has limited memory, because one expression can use all of it.
        """
        pieces, length = [], 0
        with nullcontext() if name in self._rendered else _little_memory():
            for piece in self._environment.get_template(name).generate(values):
                length += len(piece)
                if length > LONGEST:
                    raise self._too_long(name)
                pieces.append(piece)
        self._rendered.add(name)
        return "".join(pieces)

    def _too_long(self, name: str) -> UserError:
        return UserError(f"{find_file(self.roots, name)}: renders to more than {LONGEST:,} characters: shorten it")

    def _parse(self, name: str) -> _Parsed:
        text, path, _ = self._load(name)
        try:
            tree = self._environment.parse(text, name)
            with _little_memory():  # jinja evaluates constant expressions here
                names = frozenset(jinja2.meta.find_undeclared_variables(tree))
            return _Parsed(text, names, tuple(jinja2.meta.find_referenced_templates(tree)))
        except MemoryError:
            raise self._too_long(name) from None
        except jinja2.TemplateSyntaxError as error:  # also an unknown filter or test
            raise UserError(f"{path}:{error.lineno}: {error.message}") from None
        except _TOO_MUCH as error:
            raise UserError(f"{path}: {type(error).__name__}: {error}") from None


@contextmanager
def _little_memory() -> Iterator[None]:
    """Limit the growth of this process to `ROOM` bytes; MemoryError beyond. On Linux only; no limit elsewhere."""
    if sys.platform != "linux":
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + ROOM
    if any(limit != resource.RLIM_INFINITY and limit < most for limit in (soft, hard)):
        yield  # a lower limit is set already
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _first_line(source: str, word: str) -> int:
    return next((number for number, line in enumerate(source.splitlines(), 1) if word in line), 1)
