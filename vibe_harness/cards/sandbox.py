"""Jinja's sandbox with an end: a template from a stranger can neither compute for ever nor write an address of memory.

A limit by a signal or by another thread stops nothing that runs outside the main thread. So the time is looked at in
the template itself: at every turn of a loop, call, filter and include. What one of these alone may ask for is bounded:
numbers to multiply or raise, widths, counts of parts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import jinja2
import jinja2.sandbox
from jinja2 import nodes

SECONDS = 5.0  # for one rendering: a prompt takes some thousandths
LONGEST = 1_000_000  # letters of a rendered template, and of any text or list on the way
MOST = 100_000  # of a count that one filter or method is given
BITS = 100_000  # of a whole number
_PADS = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})  # methods of words that take a count
_COUNTED = frozenset({"batch", "center", "indent", "round", "slice", "truncate", "wordwrap"})  # filters that do
_WIDTH = re.compile(r"[%:.0-9*<>^=+ #,-]\d{6,}")
_ADDRESS = re.compile(r"<[^<>\n]{1,200} at 0x[0-9A-Fa-f]{4,}>")
_COUNT_LOOP = "each in time"  # no name that a template can write

_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


class Endless(jinja2.TemplateError):
    """A rendering that took too long or asked for too much at once."""


@contextmanager
def limited_time() -> Iterator[None]:
    """Give what is rendered in this block SECONDS."""
    before = _deadline.set(time.monotonic() + SECONDS)
    try:
        yield
    finally:
        _deadline.reset(before)


def _tick() -> None:
    if time.monotonic() > _deadline.get():
        raise Endless(f"renders for more than {SECONDS:g} s: no prompt takes so long")


def _in_time(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _tick()
        yield item


def _check_count(name: str, arguments: Iterable[Any]) -> None:
    for argument in arguments:
        if isinstance(argument, int) and abs(argument) > MOST:
            raise Endless(f"'{name}' is asked for {argument:,} at once: the most is {MOST:,}")


def _check_width(text: object) -> None:
    if isinstance(text, str) and _WIDTH.search(text):
        raise Endless(f"a format asks for more than {MOST:,} letters")


def _filter_in_time(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)  # which keeps how Jinja passes it context and environment
    def called(*arguments: Any, **named: Any) -> Any:
        _tick()
        if name in _COUNTED:
            _check_count(name, [*arguments, *named.values()])
        if name == "format":
            _check_width(arguments[0] if arguments else None)
        return function(*arguments, **named)

    return called


class Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The environment in which templates are rendered."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=_text_alone, **options)
        del self.globals["lipsum"], self.filters["random"]  # no two renderings would be alike
        self.filters.update({name: _filter_in_time(name, function) for name, function in self.filters.items()})
        self.filters[_COUNT_LOOP] = _in_time

    def _generate(self, source: nodes.Template, *arguments: Any, **named: Any) -> Any:
        for loop in source.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, _COUNT_LOOP, [], [], None, None, lineno=loop.lineno)
        return super()._generate(source, *arguments, **named)

    def call(self, context: Any, function: Any, /, *arguments: Any, **named: Any) -> Any:
        _tick()
        owner = getattr(function, "__self__", None)
        if isinstance(owner, str):
            name = getattr(function, "__name__", "")
            if name in _PADS:
                _check_count(name, [*arguments, *named.values()])
            if name in ("format", "format_map"):
                _check_width(owner)
            if name == "replace" and len(arguments) > 1 and isinstance(arguments[1], str):
                _check_product(owner.count(str(arguments[0])), arguments[1])
        return super().call(context, function, *arguments, **named)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        _tick()
        if operator == "*":
            _check_product(left, right)
            _check_product(right, left)
        elif operator == "**":
            if isinstance(left, int) and isinstance(right, int) and left.bit_length() * abs(right) > BITS:
                raise Endless("a power is too large to compute")
        else:
            _check_width(left)
        return super().call_binop(context, operator, left, right)

    def get_template(self, *arguments: Any, **named: Any) -> jinja2.Template:
        _tick()  # one that includes another many times
        return super().get_template(*arguments, **named)


def _check_product(number: Any, other: Any) -> None:
    """Raise Endless for a product that is too large: of two whole numbers, or of a number and a text or list."""
    if not isinstance(number, int):
        return
    if isinstance(other, int) and number.bit_length() + other.bit_length() > BITS:
        raise Endless("a product is too large to compute")
    if isinstance(other, str | list | tuple) and number * len(other) > LONGEST:
        raise Endless(f"renders to more than {LONGEST:,} characters: no prompt is that long")


def _text_alone(value: Any) -> Any:
    """What a template writes out: words, numbers, and lists and mappings of them. Raises TemplateError for what Python
    would write as "<function ... at 0x7f...>"."""
    if _is_plain(value):
        return value
    raise jinja2.TemplateError(f"writes out a {type(value).__name__}, which is no text: a name or its brackets lack?")


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return value is None or isinstance(value, str | int | float | jinja2.Undefined)


def address_in(text: str, values: Any) -> str | None:
    """An address of memory in a rendered text that does not come from the values given to it, as Python writes it; it
    is another one in every process."""
    if " at 0x" not in text:
        return None
    given = "\n".join(_words(values))
    return next((found[0] for found in _ADDRESS.finditer(text) if found[0] not in given), None)


def _words(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from _words(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _words(value)
