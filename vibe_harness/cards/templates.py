"""Jinja templates in a sandbox: an undefined name is an error, and nothing outside the template folders is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import jinja2.sandbox

from vibe_harness.cards.paths import find_file
from vibe_harness.errors import UserError


class _Undefined(jinja2.StrictUndefined):
    """Strict where StrictUndefined is not: a list that holds an undefined value is not written out either."""

    __repr__ = jinja2.StrictUndefined.__str__


class TemplateSet:
    """The templates below some folders, rendered in a sandbox."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self._environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            loader=jinja2.FunctionLoader(self._load),
            undefined=_Undefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        del self._environment.globals["lipsum"], self._environment.filters["random"]  # no two renderings would be alike

    def _load(self, name: str) -> tuple[str, str, None]:
        path = find_file(self.roots, name)
        try:
            return path.read_text(encoding="utf-8"), str(path), None
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 (byte {error.start}): save it as UTF-8") from None
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from None

    def sources(self, name: str) -> dict[str, str]:
        """The text of a template and of all that it includes, imports or extends, by name.

        Raises UserError where these go round in a circle, or are named by an expression.
        """
        found: dict[str, str] = {}
        self._collect(name, (), found)
        return found

    def _collect(self, name: str, trail: tuple[str, ...], found: dict[str, str]) -> None:
        if name in trail:
            loop = " -> ".join((*trail[trail.index(name) :], name))
            raise UserError(f"{find_file(self.roots, trail[-1])}: templates go round in a circle: {loop}")
        if name in found:
            return
        found[name] = self._load(name)[0]
        for other in jinja2.meta.find_referenced_templates(self._parse(name, found[name])):
            if other is None:
                raise UserError(f"{find_file(self.roots, name)}: a template names what it includes in full")
            self._collect(other, (*trail, name), found)

    def check(self, name: str, known: Collection[str]) -> None:
        """Raise UserError where a template does not parse, or uses a name that nobody will give it."""
        for current, source in self.sources(name).items():
            unknown = self._names_used(current, source) - set(known) - set(self._environment.globals)
            if unknown:
                path = find_file(self.roots, current)
                raise UserError(
                    f"{path}:{_first_line(source, min(unknown))}: unknown variable '{min(unknown)}': "
                    f"this template is given {', '.join(sorted(known))}"
                )

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """The rendered text, without blank space around it. Raises UserError with file and line, and for no text."""
        try:
            text = self._environment.get_template(name).render(values).strip()
        except jinja2.TemplateSyntaxError as error:
            raise UserError(f"{error.filename or name}:{error.lineno}: {error.message}") from None
        except jinja2.exceptions.SecurityError as error:
            raise UserError(
                f"{find_file(self.roots, name)}: {error}: templates cannot reach Python's internals"
            ) from None
        except jinja2.TemplateError as error:
            raise UserError(f"{find_file(self.roots, name)}: {error.message}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            raise UserError(f"{find_file(self.roots, name)}: {type(error).__name__}: {error}") from None
        if not text:
            raise UserError(f"{find_file(self.roots, name)}: renders to nothing")
        return text

    def _names_used(self, name: str, source: str) -> set[str]:
        try:
            return jinja2.meta.find_undeclared_variables(self._parse(name, source))
        except jinja2.TemplateAssertionError as error:  # no such filter or test
            raise UserError(f"{find_file(self.roots, name)}:{error.lineno}: {error.message}") from None

    def _parse(self, name: str, source: str) -> jinja2.nodes.Template:
        try:
            return self._environment.parse(source, name)
        except jinja2.TemplateSyntaxError as error:
            raise UserError(f"{find_file(self.roots, name)}:{error.lineno}: {error.message}") from None


def _first_line(source: str, word: str) -> int:
    return next((number for number, line in enumerate(source.splitlines(), 1) if word in line), 1)
