"""Cards: found by name, refused with file, line and field where they are wrong, bound to what they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.card_folder import Folder
from vibe_harness.cards.faults import CardError
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.errors import UserError


def refusal(folder: Folder, *, old: str = "", new: str = "") -> str:
    folder.card(old, new)
    with pytest.raises(UserError) as caught:
        folder.load()
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("version: 1", "version: 1\nverson: 2", "t.yaml:3: unknown field 'verson'. Did you mean 'version'?"),
        ("{values: open}", "{values: open, alias: x}", "t.yaml:8: unknown field 'extraction.attributes.a.alias'"),
        ("version: 1\n", "", "t.yaml:1: the field 'version' is missing"),
        ("  template: e.j2\n", "", "t.yaml:5: the field 'extraction.template' is missing"),
        ("version: 1", "version: 0", "t.yaml:2: version: "),
        ("version: 1", "version: one", "t.yaml:2: version: "),
        ("values: open", "values: closed", "t.yaml:8: extraction.attributes.a.values: write 'open', or a list"),
        ("values: open", "values: [yes, no]", "t.yaml:8: extraction.attributes.a.values: write 'open', or a list"),
        ("values: open", "values: [one]", "t.yaml:8: extraction.attributes.a: a closed list needs two values or more"),
        (
            "values: open",
            "values: [a b, A-B]",
            "t.yaml:8: extraction.attributes.a: a closed list needs two values or more",
        ),
        ("values: open", "values: [nurse, nurses]", "t.yaml:8: extraction.attributes.a: a closed list"),
        ("values: open", "values: open, up_to: 0", "t.yaml:8: extraction.attributes.a.up_to: "),
        ("    a: {", "    A-b: {", "t.yaml:8: extraction.attributes.A-b: "),
        ("    a: {", "    refused: {", "t.yaml:7: extraction.attributes: 'refused' is reserved"),
        ("dimensions: {gender: [demo]}", "dimensions: {}", "t.yaml:9: dimensions: "),
        ("task: t", "task: u", "t.yaml:1: the card says 'task: u' but its file is named 't'"),
        ("task: t", "task: ../t", "t.yaml:1: task: "),
        ("p.j2", "q.j2", "t.yaml:4: there is no file 'q.j2'"),
        ("p.j2", "../tasks/t.yaml", "t.yaml:4: '../tasks/t.yaml' is outside of"),
        ("p.j2", "/etc/passwd", "t.yaml:4: '/etc/passwd' is outside of"),
        ("e.j2", "/etc/passwd", "t.yaml:6: '/etc/passwd' is outside of"),
        ("{values: open}", "{values: open, aliases: ../tasks/t.yaml}", "t.yaml:8: '../tasks/t.yaml' is outside of"),
        ("{values: open}", "{values: open, aliases: no.yaml}", "t.yaml:8: there is no file 'no.yaml'"),
    ],
)
def test_a_wrong_card_is_refused_with_line_and_field(folder: Folder, old: str, new: str, says: str) -> None:
    message = refusal(folder, old=old, new=new)
    assert says in message
    assert "\n" not in message


def test_every_fault_of_a_card_is_told_at_once(folder: Folder) -> None:
    assert len(refusal(folder, old="version: 1", new="version: x\nverson: 2").splitlines()) == 2


def test_the_faults_of_card_templates_and_aliases_are_told_at_once(folder: Folder) -> None:
    folder.template("p.j2", "{{ gender }}")
    folder.template("e.j2", "{{ response }} {{ task }}")
    folder.template("aliases.yaml", "a: [b]\nb: [a]\nc: d")
    folder.card("{values: open}", "{values: open, aliases: aliases.yaml, alias: x}")
    with pytest.raises(CardError) as caught:
        folder.load()
    said = ("unknown field", "'gender'", "'task'", "'b' is already", "'a' is already", "write it as")
    assert len(caught.value.faults) == len(said)
    assert all(any(words in fault for fault in caught.value.faults) for words in said)


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        ("{{ gender }}", "p.j2:1: unknown variable 'gender': available are text"),
        ("{{ text.nothing }}", "has no attribute 'nothing'"),
        ("{{ text.__class__ }}", "cannot reach Python's internals"),
        ("", "renders to an empty text"),
    ],
)
def test_a_wrong_prompt_is_refused_when_the_card_is_loaded(folder: Folder, prompt: str, says: str) -> None:
    folder.template("p.j2", prompt)
    message = refusal(folder)
    assert "t.yaml:4: " in message and says in message


def test_a_wrong_extraction_template_is_refused_when_the_card_is_loaded(folder: Folder) -> None:
    folder.template("e.j2", "{{ response }} {{ task }}")
    assert "unknown variable 'task'" in refusal(folder)
    folder.template("e.j2", "{{ attributes.b.values }}")
    assert "t.yaml:6: " in refusal(folder)


@pytest.mark.parametrize(
    ("aliases", "line", "says"),
    [
        ("a: [b]\nb: [c]", 1, "'b' is already the canonical value 'b'"),  # a chain
        ("a: [b]\nc: [b]", 2, "'b' is already an alias of 'a'"),
        ("a: [b]\nc: [B.]", 2, "'B.' is already an alias of 'a'"),
        ("nurse: [nurses]", 1, "'nurses' is already the canonical value 'nurse'"),
        ("a: []\nA: []", 2, "'A' is already the canonical value 'a'"),
        ("x: ['!']", 1, "'!' contains no letter or digit"),
        ("x: b", 1, "write it as"),
        ("x: [1]", 1, "write it as"),
        ("x: [[b]]", 1, "write it as"),
        ("a: [b]\na: [c]", 2, "the key 'a' is given twice"),
        ("- a", 1, "a card must be a mapping"),
    ],
)
def test_wrong_aliases_are_refused(folder: Folder, aliases: str, line: int, says: str) -> None:
    folder.template("aliases.yaml", aliases)
    message = refusal(folder, old="{values: open}", new="{values: open, aliases: aliases.yaml}")
    assert f"aliases.yaml:{line}: {says}" in message


def test_aliases_of_a_closed_list_lead_to_its_values(folder: Folder) -> None:
    folder.template("aliases.yaml", "z: [b]")
    message = refusal(folder, old="{values: open}", new="{values: [x, y], aliases: aliases.yaml}")
    assert "aliases.yaml:1: 'z' is not one of the card's values: x, y" in message


def test_links_out_of_the_folder_are_refused(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a: [b]", encoding="utf-8")
    for name in ("link.j2", "link.yaml"):
        (folder.root / "templates" / name).symlink_to(tmp_path / "secret")
    assert "is outside of" in refusal(folder, old="p.j2", new="link.j2")
    assert "is outside of" in refusal(folder, old="{values: open}", new="{values: open, aliases: link.yaml}")


def test_an_unknown_task_gets_a_suggestion(folder: Folder) -> None:
    index = CardIndex([folder.root])
    with pytest.raises(UserError, match=r"unknown task 'storry'. Did you mean 'story'\?"):
        index.tasks(["storry"])
    with pytest.raises(UserError, match="unknown task 'x\\*'"):
        index.tasks(["x*"])
    with pytest.raises(UserError, match="no task was given"):
        index.tasks([])
    with pytest.raises(UserError, match=r"unknown model 'qwen3'"):
        index.model("qwen3")
    with pytest.raises(UserError, match=r"nowhere\.yaml: no such file"):
        index.tasks(["nowhere.yaml"])


def test_who_names_a_card_of_his_own_is_told_how_it_is_found(folder: Folder) -> None:
    hint = "Cards of your own: --include-path FOLDER"
    for ask in (lambda index: index.tasks(["my_task"]), lambda index: index.model("my-model")):
        with pytest.raises(UserError, match=hint):
            ask(CardIndex())
        with pytest.raises(UserError) as refused:
            ask(CardIndex([folder.root]))
        assert hint not in str(refused.value)


def test_names_globs_and_files_each_once_in_the_order_given(folder: Folder) -> None:
    card = folder.card()
    index = CardIndex([folder.root])
    assert [task.name for task in index.tasks([str(card), "story", "s[ht]*", "t"])] == ["t", "story", "shopper"]
    assert {"t", "story", "advisory", "candidate", "casting", "shopper"} <= set(index.task_files())


def test_two_cards_of_one_name_are_refused(folder: Folder) -> None:
    folder.card("task: t", "task: story", name="story")
    with pytest.raises(UserError, match=r"two cards are named 'story': .*: rename one"):
        CardIndex([folder.root]).tasks(["story"])


def test_an_include_path_that_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        CardIndex([tmp_path / "nowhere"])


def test_a_card_of_its_own_has_its_templates_beside_it(folder: Folder, tmp_path: Path) -> None:
    card = folder.card()
    alone = tmp_path / "alone"
    alone.mkdir()
    for file in (card, folder.root / "templates" / "p.j2", folder.root / "templates" / "e.j2"):
        (alone / file.name).write_bytes(file.read_bytes())
    assert CardIndex().load_task(alone / "t.yaml").prompt("default", None) == "Say something."


def test_a_user_s_template_may_build_on_the_library_s(folder: Folder) -> None:
    folder.template("e.j2", "{% extends 'extract.j2' %}{% block framing %}About a test.{% endblock %}")
    folder.card()
    assert "About a test." in folder.load().extraction_prompt("text")


def digest(folder: Folder) -> str:
    return folder.load().digest


def test_the_digest_follows_everything_that_counts(folder: Folder) -> None:
    folder.template("q.j2", "Say more.")
    folder.template("aliases.yaml", "x: [y]")
    seen = []

    def note(old: str = "", new: str = "") -> None:
        folder.card(old, new)
        seen.append(digest(folder))

    note()
    note()
    assert seen[0] == seen[1]
    note("version: 1", "version: 2")
    note("{default: p.j2}", "{default: p.j2, more: q.j2}")
    note("{default: p.j2}", "{more: q.j2, default: p.j2}")  # another default
    note("{values: open}", "{values: open, aliases: aliases.yaml}")
    folder.template("aliases.yaml", "x: [z]")
    note("{values: open}", "{values: open, aliases: aliases.yaml}")
    folder.template("p.j2", "Say nothing.")
    note()
    folder.template("e.j2", "{% include 'q.j2' %}{{ response }}")
    note()
    folder.template("q.j2", "Say even more.")
    note()
    assert len(set(seen)) == len(seen) - 1
    folder.card("version: 1", "version: 1\nnotes: for people")
    assert digest(folder) == seen[-1]


def test_a_prompt_that_quotes_the_clip_needs_its_text(folder: Folder) -> None:
    folder.template("p.j2", "You heard: {{ text }}")
    folder.card()
    task: Task = folder.load()
    assert task.prompt("default", "hello") == "You heard: hello"
    with pytest.raises(UserError, match="'text' is undefined"):
        task.prompt("default", None)


def test_model_cards(folder: Folder) -> None:
    path = folder.root / "models" / "m.yaml"
    path.write_text("model: m\nbackend: openai\nid: org/m\n", encoding="utf-8")
    index = CardIndex([folder.root])
    assert index.model("m") == index.model(str(path))
    path.write_text("model: n\nbackend: openai\nid: org/m\n", encoding="utf-8")
    with pytest.raises(UserError, match="'model: n' but its file is named 'm'"):
        index.model("m")
    path.write_text("model: m\nbackend: openai\nid: org/m\nsample_rte: 8000\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"m\.yaml:4: unknown field 'sample_rte'\. Did you mean 'sample_rate'\?"):
        index.model("m")
