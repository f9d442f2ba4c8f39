"""A registry of objects by name. Objects are imported on first use; other packages add theirs by entry points."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from vibe_harness.errors import UserError

T = TypeVar("T")


MOST_LISTED = 16
"""Names that an error lists; of more it gives the first ones and the number of the others."""


def did_you_mean(name: str, known: Iterable[str], listed_by: str | None = None) -> str:
    """A hint for a mistyped name: similar names, or else the command that lists all names, or the names themselves.

    listed_by: that command, where there is one.
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(repr(n) for n in near)}?"
    if listed_by:
        return f"`{listed_by}` shows what there is."
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    return f"Known: {', '.join(known[:MOST_LISTED]) or 'none'}{more}."


class Registry(Generic[T]):
    """Maps names to objects, which are imported on first use.

    kind: what is registered ("backend"), for error messages.
    group: entry-point group in which other packages register theirs.
    builtin: name -> "module:attribute".
    """

    def __init__(self, kind: str, group: str, builtin: dict[str, str] | None = None) -> None:
        self.kind = kind
        self.group = group
        self._lazy: dict[str, str] = dict(builtin or {})
        self._loaded: dict[str, T] = {}
        self._plugins: dict[str, EntryPoint] | None = None

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that registers an object under a name. Raises UserError if the name is taken."""

        def add(thing: T) -> T:
            if name in self._loaded or name in self._lazy or name in self._entry_points():
                raise UserError(f"two things claim the {self.kind} name '{name}': rename one of them")
            self._loaded[name] = thing
            return thing

        return add

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self._lazy, *self._loaded, *self._entry_points()})

    def get(self, name: str) -> T:
        """The object with this name. Raises UserError, with a suggestion, if there is none."""
        if name not in self._loaded:
            plugins = self._entry_points()
            if name in self._lazy:
                module, attribute = self._lazy[name].split(":")
                self._loaded[name] = cast(T, getattr(importlib.import_module(module), attribute))
            elif name in plugins:
                self._loaded[name] = self._load_plugin(plugins[name])
            else:
                raise UserError(f"unknown {self.kind} '{name}'. {did_you_mean(name, self.names())}")
        return self._loaded[name]

    def _load_plugin(self, plugin: EntryPoint) -> T:
        try:
            return cast(T, plugin.load())
        except (ImportError, AttributeError) as error:
            raise UserError(
                f"the {self.kind} '{plugin.name}' of package '{_owner(plugin)}' does not load: {error}"
            ) from error

    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._plugins is None:
            found: dict[str, EntryPoint] = {}
            for point in entry_points(group=self.group):
                if point.name in self._lazy or point.name in self._loaded:
                    raise UserError(
                        f"package '{_owner(point)}' claims the {self.kind} name '{point.name}', which is built in: "
                        "rename it there, or uninstall that package"
                    )
                if point.name in found:
                    raise UserError(
                        f"packages '{_owner(found[point.name])}' and '{_owner(point)}' both claim the {self.kind} "
                        f"name '{point.name}': uninstall one of them"
                    )
                found[point.name] = point
            self._plugins = found
        return self._plugins


def _owner(point: EntryPoint) -> str:
    dist: Any = point.dist
    return str(dist.name) if dist is not None else point.value
