"""Templates that would compute for ever, ask for too much at once, or write what is another in every process."""

import threading
import time
from pathlib import Path

import pytest

from vibe_harness.cards import sandbox
from vibe_harness.cards.templates import TemplateSet
from vibe_harness.errors import UserError

LOOPS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}x"
CALLS = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}x"


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TemplateSet:
    monkeypatch.setattr(sandbox, "SECONDS", 0.2)
    return TemplateSet([tmp_path])


def rendered(templates: TemplateSet, source: str, **others: str) -> str:
    for name, text in {"t": source, **others}.items():
        (templates.roots[0] / f"{name}.j2").write_text(text, encoding="utf-8")
    return templates.render("t.j2", {"text": "words", "several": ["a", "b"], "spec": {"values": ["x"]}})


@pytest.mark.parametrize(
    "source",
    [
        LOOPS,
        CALLS,
        "{% for i in range(99999) %}{{ range(99999) | list | sum * 0 or '' }}{% endfor %}",
        "{% set n = namespace(x=3) %}{% for i in range(99999) %}{% set n.x = n.x * 7 % 9999 %}"
        "{% for j in range(999) %}{% endfor %}{% endfor %}x",
        "{% for item in [[1], [2]] recursive %}{% for i in range(9999) %}{{ loop(item) if loop else '' }}"
        "{% endfor %}{% endfor %}x",
    ],
)
def test_what_computes_without_end_is_given_up(templates: TemplateSet, source: str) -> None:
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"t\.j2: .*(no prompt takes so long|RecursionError|TypeError)") as caught:
        rendered(templates, source)
    assert time.monotonic() - begun < 10 and "\n" not in str(caught.value)


def test_includes_that_multiply_are_given_up(templates: TemplateSet) -> None:
    twice = "{{% include '{0}.j2' %}}{{% include '{0}.j2' %}}"
    chain = {f"c{depth}": twice.format(f"c{depth + 1}") for depth in range(40)}
    with pytest.raises(UserError, match="no prompt takes so long"):
        rendered(templates, twice.format("c0"), **chain, c40="")


@pytest.mark.parametrize("source", [LOOPS, CALLS])
def test_the_limit_holds_outside_of_the_main_thread(templates: TemplateSet, source: str) -> None:
    said: list[str] = []

    def render() -> None:
        try:
            rendered(templates, source)
        except UserError as error:
            said.append(str(error))

    thread = threading.Thread(target=render, daemon=True)
    thread.start()
    thread.join(20)
    assert said and "no prompt takes so long" in said[0]


@pytest.mark.parametrize(
    "source",
    [
        "{{ 9 ** (9 ** 9) }}",
        "{{ 2 ** (10 ** 7) > 1 }}",
        "{% set n = namespace(x=3) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}x",
        "{{ ('a' * 10 ** 9) | length }}",
        "{{ (10 ** 9 * 'a') | length }}",
        "{{ ([0] * 10 ** 9) | length }}",
        "{{ [1] | slice(10 ** 9) | list | length }}",
        "{{ [1] | batch(10 ** 9, 'x') | list | length }}",
        "{{ 'a' | center(10 ** 9) | length }}",
        "{{ 'a'.center(10 ** 9) | length }}",
        "{{ '1'.zfill(10 ** 9) | length }}",
        "{{ 'a\\nb' | indent(10 ** 9) | length }}",
        "{{ 1.5 | round(10 ** 9, 'ceil') }}",
        "{{ '%1000000000d' | format(1) | length }}",
        "{{ ('%1000000000d' % 1) | length }}",
        "{{ '{:>1000000000}'.format(1) | length }}",
        "{{ ('a' * 99999).replace('a', 'b' * 99999) | length }}",
    ],
)
def test_what_asks_for_too_much_at_once_is_one_line(templates: TemplateSet, source: str) -> None:
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"t\.j2: ") as caught:
        rendered(templates, source)
    assert time.monotonic() - begun < 2 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "{{ text.upper }}",
        "{{ spec.items }}",
        "{{ several | map('upper') }}",
        "{{ joiner() }}",
        "{{ joiner() ~ '' }}",
        "{{ [joiner()] | join }}",
        "{{ joiner() | string }}",
        "{{ '%s' | format(text.upper) }}",
        "{{ several | select }}",
        "{{ cycler('a') }}",
        "{{ range }}",
        "{{ self }}",
        "{{ [text.upper] }}",
        "{{ {'a': text.upper} }}",
        "{% macro m() %}{% endmacro %}{{ m }}",
        "{{ namespace(a=1) }}",
    ],
)
def test_what_is_no_text_is_not_written_out(templates: TemplateSet, source: str) -> None:
    with pytest.raises(UserError, match=r"t\.j2: writes out") as caught:
        rendered(templates, source)
    assert "\n" not in str(caught.value)


def test_an_address_that_an_answer_quotes_stays(templates: TemplateSet) -> None:
    quoted = "it printed <function f at 0x7f00deadbeef>"
    (templates.roots[0] / "t.j2").write_text("{{ response }} {{ [response] | join }}", encoding="utf-8")
    assert templates.render("t.j2", {"response": quoted}) == f"{quoted} {quoted}"


def test_ordinary_templates_render_as_before(templates: TemplateSet) -> None:
    source = (
        "{% for i in several %}{{ loop.index }}/{{ loop.length }} {{ i }}{{ ', ' if not loop.last }}{% endfor %}; "
        "{% for key, value in spec.items() %}{{ key }}: {{ value | join('/') }}{% else %}none{% endfor %}; "
        "{% for n in [1, 2, 3] if n != 2 %}{{ loop.revindex }}{{ n }}{% endfor %}; {{ several }} {{ 7 * 6 }} "
        "{{ 'a' * 3 }} {{ 2 ** 10 }} {{ '%05.1f' % 2.5 }} {{ 'x' | center(5) }}|{{ 12345678 | string }} "
        "{{ '%s' | format(1234567) }} {{ [[1, [2]], 3] | length }}"
        "{% for one in [[1, [2]]] recursive %}{{ loop(one) if one is iterable else one }}{% endfor %}"
    )
    assert rendered(templates, source) == (
        "1/2 a, 2/2 b; values: x; 2113; ['a', 'b'] 42 aaa 1024 002.5   x  |12345678 1234567 212"
    )
