"""Templates: undefined names, bad syntax, escapes from the sandbox and from the folder are each one clear line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vibe_harness.cards.schema import TaskCard
from vibe_harness.cards.templates import TemplateSet
from vibe_harness.errors import UserError


@pytest.fixture
def templates(tmp_path: Path) -> TemplateSet:
    return TemplateSet([tmp_path])


def write(templates: TemplateSet, **sources: str) -> None:
    for name, text in sources.items():
        (templates.roots[0] / f"{name}.j2").write_text(text, encoding="utf-8")


def check_and_render(templates: TemplateSet, source: str) -> str:
    write(templates, t=source)
    templates.check("t.j2", {"text"})
    return templates.render("t.j2", {"text": "words"})


def test_a_template_renders_without_blank_space_around_it(templates: TemplateSet) -> None:
    assert (
        check_and_render(templates, "\n  {% if text %}\n  I heard: {{ text }}\n  {% endif %}\n\n") == "I heard: words"
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("one\n{{ unknown }}", r"t\.j2:2: unknown variable 'unknown': available are text"),
        ("{{ text", r"t\.j2:1: unexpected end of template"),
        ("a\n{% if %}", r"t\.j2:2: "),
        ("a\n{{ text | nofilter }}", r"t\.j2:2: No filter named 'nofilter'"),
        ("{{ text is notest }}", r"t\.j2:1: No test named 'notest'"),
        ("{{ text.nothing }}", r"t\.j2: 'str object' has no attribute 'nothing'"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ text + 1 }}", "TypeError"),
        ("{{ text.encode('no such') }}", "LookupError"),
        ("{{ range(10**9) }}", "Range too big"),
        ("{{ 'x' * 10**8 }}", "more than 1,000,000 characters"),
        ("{{ 'x' * 10**14 }}", "more than 1,000,000 characters"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}", "more than 1,000,000"),
        ("{% macro m() %}x{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
        (" \n ", "renders to an empty text"),
        ("{{ lipsum() }}", "unknown variable 'lipsum'"),
        ("{{ [1, 2] | random }}", "No filter named 'random'"),
        ("{% include text %}", "write the name of an included template"),
        ("{% include 'nowhere.j2' %}", r"there is no file 'nowhere\.j2'"),
        ("{% include 't.j2' %}", r"in a cycle: t\.j2 -> t\.j2"),
        ("{% extends 't.j2' %}", r"in a cycle: t\.j2 -> t\.j2"),
    ],
)
def test_a_broken_template_is_one_clear_line(templates: TemplateSet, source: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        check_and_render(templates, source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ text.__init__.__globals__ }}",
        "{{ text | attr('__class__') }}",
        "{{ text['__class__'] }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ '{0.__class__}'.format(text) }}",
        "{{ '%s' | format(text.__class__) }}",
        "{{ [text] | map(attribute='__class__') | list }}",
        "{{ dict.__subclasses__() }}",
        "{{ {}.update(a=1) }}",
        "{% set x = [] %}{{ x.append(1) }}",
        "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
    ],
)
def test_the_sandbox_holds(templates: TemplateSet, source: str) -> None:
    with pytest.raises(UserError, match=r"cannot reach Python's internals|has no attribute|is unsafe"):
        check_and_render(templates, source)


def test_a_card_object_would_open_the_sandbox(templates: TemplateSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why templates are given plain data: pydantic's models bring a loader of pickles with them."""
    assert hasattr(TaskCard, "parse_raw")
    from vibe_harness.cards.loading import CardIndex

    given: dict[str, object] = {}
    monkeypatch.setattr(TemplateSet, "render", lambda self, name, values: given.update(values) or "x")
    task = CardIndex().tasks(["story"])[0]
    task.prompt("default", "words")
    task.extraction_prompt("words")
    assert set(given) == {"text", "response", "fence", "attributes"}
    attributes = given["attributes"]
    assert isinstance(attributes, dict)
    for value in [given["text"], given["response"], given["fence"], *attributes.values()]:
        public = {name for name in dir(value) if not name.startswith("_") and callable(getattr(value, name))}
        assert isinstance(value, str) or not public


def test_includes_and_parents_are_found_and_their_names_checked(templates: TemplateSet) -> None:
    write(templates, base="{% block a %}{% endblock %} {% include 'part.j2' %}", part="part {{ nobody }}")
    write(templates, t="{% extends 'base.j2' %}{% block a %}{{ text }}{% endblock %}")
    assert set(templates.sources("t.j2")) == {"t.j2", "base.j2", "part.j2"}
    with pytest.raises(UserError, match=r"part\.j2:1: unknown variable 'nobody'"):
        templates.check("t.j2", {"text"})
    write(templates, part="part")
    fresh = TemplateSet(templates.roots)
    fresh.check("t.j2", {"text"})
    assert fresh.render("t.j2", {"text": "words"}) == "words part"


def test_a_longer_circle_is_named(templates: TemplateSet) -> None:
    write(templates, t="{% include 'a.j2' %}", a="{% import 'b.j2' as b %}", b="{% include 'a.j2' %}")
    with pytest.raises(UserError, match=r"in a cycle: a\.j2 -> b\.j2 -> a\.j2"):
        templates.sources("t.j2")


def test_one_part_included_twice_is_no_circle(templates: TemplateSet) -> None:
    write(templates, t="{% include 'a.j2' %}{% include 'b.j2' %}", a="{% include 'b.j2' %}", b="b")
    assert TemplateSet(templates.roots).render("t.j2", {}) == "bb"


@pytest.mark.parametrize("name", ["../secret.j2", "/etc/passwd", "link.j2", "circle.j2", "a\0b.j2", "x" * 5000, "."])
def test_a_template_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.j2").write_text("secret", encoding="utf-8")
    inner = tmp_path / "templates"
    inner.mkdir()
    (inner / "link.j2").symlink_to(tmp_path / "secret.j2")
    (inner / "circle.j2").symlink_to(inner / "circle.j2")
    with pytest.raises(UserError, match=r"is outside of|cannot be a file name|there is no file"):
        TemplateSet([inner]).sources(name)
    (inner / "t.j2").write_text("{% include '../secret.j2' %}", encoding="utf-8")
    with pytest.raises(UserError, match="is outside of"):
        TemplateSet([inner]).render("t.j2", {})


def test_a_template_that_cannot_be_read(templates: TemplateSet) -> None:
    (templates.roots[0] / "t.j2").write_bytes(b"caf\xe9")
    with pytest.raises(UserError, match=r"t\.j2:1: not UTF-8 \(byte 0xe9"):
        templates.check("t.j2", set())


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads any file")
def test_a_template_without_permission(templates: TemplateSet) -> None:
    write(templates, t="x")
    (templates.roots[0] / "t.j2").chmod(0)
    with pytest.raises(UserError, match="cannot be read"):
        templates.check("t.j2", set())
