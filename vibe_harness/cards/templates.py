"""Jinja templates in a sandbox: an undefined name is an error, and nothing outside the template folders is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import jinja2.sandbox

from vibe_harness.errors import UserError


def inside(root: Path, name: str) -> Path | None:
    """The file `name` below `root`, or None where there is none. Raises UserError where it leaves the folder."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise UserError(f"'{name}' lies outside of {root}: name a file inside that folder")
    return path if path.is_file() else None


def find_file(roots: Sequence[Path], name: str) -> Path:
    """The first of `roots` that holds the file. Raises UserError where none does."""
    for root in roots:
        found = inside(root, name)
        if found:
            return found
    raise UserError(f"there is no file '{name}' in {' or '.join(str(root) for root in roots)}")


class TemplateSet:
    """The templates below some folders, rendered in a sandbox."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self._environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            loader=jinja2.FunctionLoader(self._load),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )

    def _load(self, name: str) -> tuple[str, str, None]:
        path = find_file(self.roots, name)
        try:
            return path.read_text(encoding="utf-8"), str(path), None
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 (byte {error.start}): save it as UTF-8") from None

    def sources(self, name: str) -> dict[str, str]:
        """The text of a template and of all that it includes, imports or extends, by name."""
        found: dict[str, str] = {}
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current in found:
                continue
            found[current] = self._load(current)[0]
            for other in jinja2.meta.find_referenced_templates(self._parse(current, found[current])):
                if other is None:
                    raise UserError(f"{find_file(self.roots, current)}: a template names what it includes in full")
                waiting.append(other)
        return found

    def check(self, name: str, known: Collection[str]) -> None:
        """Raise UserError where a template does not parse, or uses a name that nobody will give it."""
        for current, source in self.sources(name).items():
            unknown = jinja2.meta.find_undeclared_variables(self._parse(current, source)) - set(known)
            if unknown:
                path = find_file(self.roots, current)
                raise UserError(
                    f"{path}:{_first_line(source, min(unknown))}: unknown variable '{min(unknown)}': "
                    f"this template is given {', '.join(sorted(known))}"
                )

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """The rendered text, without blank space around it. Raises UserError with file and line."""
        try:
            return self._environment.get_template(name).render(values).strip()
        except jinja2.TemplateSyntaxError as error:
            raise UserError(f"{error.filename or name}:{error.lineno}: {error.message}") from None
        except jinja2.exceptions.SecurityError as error:
            raise UserError(
                f"{find_file(self.roots, name)}: {error}: templates cannot reach Python's internals"
            ) from None
        except jinja2.UndefinedError as error:
            raise UserError(f"{find_file(self.roots, name)}: {error.message}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError, OverflowError, RecursionError) as error:
            raise UserError(f"{find_file(self.roots, name)}: {type(error).__name__}: {error}") from None

    def _parse(self, name: str, source: str) -> jinja2.nodes.Template:
        try:
            return self._environment.parse(source, name)
        except jinja2.TemplateSyntaxError as error:
            raise UserError(f"{find_file(self.roots, name)}:{error.lineno}: {error.message}") from None


def _first_line(source: str, word: str) -> int:
    return next((number for number, line in enumerate(source.splitlines(), 1) if word in line), 1)
