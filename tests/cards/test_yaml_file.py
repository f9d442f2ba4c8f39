"""Reading YAML: what is not plain data is refused, with file and line; includes merge and stay in their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from vibe_harness.cards.yaml_file import read_card, read_yaml
from vibe_harness.errors import UserError


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice"),
        ("a:\n  b: 1\n  b: 2\n", 3, "'b' is given twice"),
        ("a: !!python/object/apply:os.system [x]\n", 1, "could not determine a constructor"),
        ("x: 1\na: !!python/name:os.system\n", 2, "could not determine a constructor"),
        ("a: !own x\n", 1, "could not determine a constructor"),
        ("a: &x 1\nb: *x\n", 2, "cards cannot use anchors and aliases"),
        ("a: {b: 1}\n<<: {c: 1}\n", 2, "cards cannot use '<<'"),
        ("a: 1\n1: 2\n", 2, "the key 1 is not a string"),
        ("yes: 2\n", 1, "the key True is not a string"),
        ("? [a]\n: 2\n", 1, r"the key \['a'\] is not a string"),
        ("a: 1\nb:\t\n\tc: 1\n", 2, "cannot start any token"),
        ("a: 1\nb: [1, 2\n", 3, "expected"),
        ("a: 1\n--- \nb: 1\n", 2, "another document"),
        ("a: 1\nb: \x07\n", 2, r"control character U\+0007"),
        ("", 1, "a card must be a mapping"),
        ("# nothing\n", 1, "a card must be a mapping"),
        ("- a\n", 1, "a card must be a mapping"),
        ("hello", 1, "a card must be a mapping"),
    ],
)
def test_what_is_not_a_plain_mapping_is_refused_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    with pytest.raises(UserError, match=rf"card\.yaml:{line}: .*{says}"):
        read_yaml(write(tmp_path / "card.yaml", text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("täsk: t".encode("utf-16"), "not UTF-8"),
        (b"a: \xe4\n", r"1: not UTF-8 \(byte 0xe4"),
        (b"a: " + b"[" * 20_000, "not valid YAML"),
        (b"a: 2020-13-45", "not valid YAML"),
    ],
)
def test_what_is_not_yaml_is_refused(tmp_path: Path, text: bytes, says: str) -> None:
    with pytest.raises(UserError, match=rf"card\.yaml:.*{says}"):
        read_yaml(write(tmp_path / "card.yaml", text))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_yaml(tmp_path / "card.yaml")
    with pytest.raises(UserError, match="cannot be read"):
        read_yaml(tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert read_yaml(write(tmp_path / "card.yaml", "\ufeffa: 1\n")).data == {"a": 1}


def test_every_field_knows_its_line(tmp_path: Path) -> None:
    card = read_yaml(write(tmp_path / "card.yaml", "a: 1\nb:\n  - x\n  - c: 2\n"))
    assert card.location(["a"]).endswith("card.yaml:1")
    assert card.location(["b", 1, "c"]).endswith("card.yaml:4")
    assert card.location(["b", 1, "missing"]).endswith("card.yaml:4")
    assert card.location(["missing"]).endswith("card.yaml:1")


def test_an_include_is_merged_key_by_key_and_each_field_keeps_its_place(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "a: 1\ndeep: {x: 1, y: 2}\nlist: [1, 2]\n")
    card = read_card(write(tmp_path / "card.yaml", "include: base.yaml\ndeep: {y: 3}\nlist: [9]\n"))
    assert card.data == {"a": 1, "deep": {"x": 1, "y": 3}, "list": [9]}
    assert card.location(["a"]).endswith("base.yaml:1")
    assert card.location(["deep", "x"]).endswith("base.yaml:2")
    assert card.location(["deep", "y"]).endswith("card.yaml:2")


def test_of_several_includes_the_last_wins_and_the_card_itself_over_all(tmp_path: Path) -> None:
    write(tmp_path / "one.yaml", "a: 1\nb: 1\nc: 1\n")
    write(tmp_path / "two.yaml", "b: 2\nc: 2\n")
    card = read_card(write(tmp_path / "card.yaml", "include: [one.yaml, two.yaml]\nc: 3\n"))
    assert card.data == {"a": 1, "b": 2, "c": 3}


def test_an_include_that_loops_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "b.yaml", "include: c.yaml\n")
    write(tmp_path / "c.yaml", "include: b.yaml\n")
    with pytest.raises(UserError, match=r"in a cycle: b\.yaml -> c\.yaml -> b\.yaml"):
        read_card(write(tmp_path / "a.yaml", "include: b.yaml\n"))
    with pytest.raises(UserError, match=r"in a cycle: d\.yaml -> d\.yaml"):
        read_card(write(tmp_path / "d.yaml", "include: d.yaml\n"))


@pytest.mark.parametrize("name", ["../secret.yaml", "/etc/passwd", "link.yaml", "sub/../../secret.yaml"])
def test_an_include_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path / "secret.yaml", "a: 1\n")
    card = write(tmp_path / "cards" / "card.yaml", f"a: 1\ninclude: {name}\n")
    (tmp_path / "cards" / "sub").mkdir()
    (tmp_path / "cards" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    with pytest.raises(UserError, match=r"card\.yaml:2: .* is outside of"):
        read_card(card)
    assert read_card(write(card, "include: ../secret.yaml\n"), within=tmp_path).data == {"a": 1}


@pytest.mark.parametrize("include", ["nowhere.yaml", ".", "{a: b}", "[1]", '"a\\0b"', "3"])
def test_an_include_names_a_file(tmp_path: Path, include: str) -> None:
    with pytest.raises(UserError, match=r"card\.yaml:1: "):
        read_card(write(tmp_path / "card.yaml", f"include: {include}\n"))
