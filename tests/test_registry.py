"""Names to things: imported when asked for, open to other packages, and never two things under one name."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

import vibe_harness.registry as module
from vibe_harness.errors import UserError
from vibe_harness.registry import Registry, did_you_mean


def plugin(name: str, value: str, package: str) -> EntryPoint:
    point = EntryPoint(name, value, "group")
    vars(point).update(dist=SimpleNamespace(name=package))
    return point


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    points: list[EntryPoint] = []
    monkeypatch.setattr(module, "entry_points", lambda group: points)
    return points


def registry(**builtin: str) -> Registry[object]:
    return Registry("thing", "group", builtin)


def test_a_built_in_thing_is_imported_when_asked_for(plugins: list[EntryPoint]) -> None:
    things = registry(digits="string:digits", broken="no.such.module:x")
    assert things.names() == ["broken", "digits"]
    assert things.get("digits") == "0123456789"


def test_another_package_adds_a_thing(plugins: list[EntryPoint]) -> None:
    plugins.append(plugin("upper", "string:ascii_uppercase", "other"))
    things = registry(digits="string:digits")
    assert things.names() == ["digits", "upper"]
    assert things.get("upper") == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def test_register_adds_and_refuses_a_name_that_is_taken(plugins: list[EntryPoint]) -> None:
    plugins.append(plugin("upper", "string:ascii_uppercase", "other"))
    things = registry(digits="string:digits")
    assert things.register("own")(1) == 1
    assert things.get("own") == 1
    for name in ("own", "digits", "upper"):
        with pytest.raises(UserError, match=f"two things claim the thing name '{name}'"):
            things.register(name)(2)


def test_two_packages_that_claim_one_name_are_both_named(plugins: list[EntryPoint]) -> None:
    plugins += [plugin("same", "string:digits", "one"), plugin("same", "string:hexdigits", "two")]
    with pytest.raises(UserError, match=r"packages 'one' and 'two' both claim the thing name 'same'"):
        registry().get("same")


def test_a_package_cannot_take_a_built_in_name(plugins: list[EntryPoint]) -> None:
    plugins.append(plugin("digits", "string:hexdigits", "other"))
    with pytest.raises(UserError, match=r"package 'other' claims the thing name 'digits', which is built in"):
        registry(digits="string:digits").names()


@pytest.mark.parametrize("value", ["no.such.module:x", "string:no_such_name"])
def test_a_plugin_that_does_not_load_is_named_with_its_package(plugins: list[EntryPoint], value: str) -> None:
    plugins.append(plugin("bad", value, "other"))
    with pytest.raises(UserError, match=r"the thing 'bad' of package 'other' does not load"):
        registry().get("bad")


def test_an_unknown_name_gets_a_suggestion_or_the_list(plugins: list[EntryPoint]) -> None:
    things = registry(digits="string:digits", letters="string:ascii_letters")
    with pytest.raises(UserError, match=r"unknown thing 'digit'\. Did you mean 'digits'\?"):
        things.get("digit")
    with pytest.raises(UserError, match=r"unknown thing 'qqq'\. Known: digits, letters\."):
        things.get("qqq")


def test_did_you_mean_without_anything_known() -> None:
    assert did_you_mean("x", []) == "Known: none."
