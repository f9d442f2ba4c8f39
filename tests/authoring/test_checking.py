"""`tasks check`: what a run would trip over is found before, all of it at once, with what to do about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.corpora import layouts
from vibe_harness.authoring.checking import CheckedTask, check_tasks
from vibe_harness.authoring.skeletons import new_task
from vibe_harness.cards.loading import CardIndex
from vibe_harness.corpora.importers.base import IMPORTERS
from vibe_harness.errors import UserError
from vibe_harness.library import library_root


@pytest.fixture
def own(tmp_path: Path) -> Path:
    new_task("pets", tmp_path / "own")
    return tmp_path / "own"


def check(own: Path) -> CheckedTask:
    [checked] = check_tasks([str(own)])
    return checked


def change(own: Path, file: str, old: str, new: str) -> None:
    path = own / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


CARD, PROMPT, EXTRACT, ALIASES = (
    "tasks/pets.yaml", "templates/pets/default.j2", "templates/pets/extract.j2", "templates/pets/animal.yaml",
)  # fmt: skip
OWN_WORDS = 'Report on {{ response }}: "size" (small, medium, large), "refused".'

# file, what is changed into what, where the finding is, what it says, how it says to mend it
PLANTED = {
    "unknown field": (CARD, "version: 1 ", "verson: 2\nversion: 1 ", CARD, "unknown field 'verson'", "Did you mean"),
    "missing field": (CARD, "version: 1 ", "# ", CARD, "the field 'version' is missing", "add it"),
    "unknown variable": (
        PROMPT, "The person", "{{ name }}, the person", CARD, "unknown variable 'name'",
        "available are text",
    ),
    "demographic prompt": (
        PROMPT, "Name one", "Mind their age and gender. Name one", PROMPT, "'gender'",
        "leave it out",
    ),
    "voice in the prompt": (PROMPT, "Name one", "Mind the voice. Name one", PROMPT, "'voice'", "leave it out"),
    "closed values not offered": (
        PROMPT, ": small, medium or large?", "?", CARD, "does not offer the values of the closed attribute 'size'",
        "Offer them in the prompt",
    ),
    "leading prompt": (
        PROMPT, "Name one", "For example a fish. Name one", PROMPT, "leads the answer",
        "ask without it",
    ),
    "open value in the prompt": (
        PROMPT, "Name one", "Not a dog. Name one", PROMPT, "the prompt names 'dog'",
        "leave it out",
    ),
    "attribute forgotten": (
        EXTRACT, '{% extends "extract.j2" %}', OWN_WORDS, EXTRACT, "the attribute 'animal'",
        "name it",
    ),
    "values forgotten": (
        EXTRACT, '{% extends "extract.j2" %}', '{{ response }} "animal" "size" "refused"', EXTRACT,
        "these values of 'size': small, medium, large", "list them",
    ),
    "response forgotten": (
        EXTRACT, '{% extends "extract.j2" %}', "'animal' 'size' 'refused' small medium large", EXTRACT,
        "not shown the response", "write {{ response }}",
    ),
    "refusals forgotten": (
        EXTRACT, '{% extends "extract.j2" %}', "{{ response }} 'animal' 'size' small medium large", EXTRACT,
        '"refused"', "say that it is true only",
    ),
    "alias of two values": (
        ALIASES, "[puppy]", "[puppy, kitty]", ALIASES, "'kitty' is already an alias of 'cat'",
        "remove one of the two",
    ),
    "alias chain": (ALIASES, "[puppy]", "[puppy, cat]", ALIASES, "'cat' is already the canonical value",
                    "remove one of the two"),
    "alias cycle": (
        ALIASES, "cat: [house cat, kitty]\ndog: [puppy]", "cat: [dog]\ndog: [cat]", ALIASES,
        "'dog' is already the canonical value", "remove one of the two",
    ),
    "values that fold alike": (
        CARD, "[small, medium, large]", "[small, Small, large]", CARD, "a closed list",
        "differ in",
    ),
    "values that count as one": (
        ALIASES, "dog: [puppy]", "counsellor: [mentor]\ncounselor: [coach]", CARD,
        "'counsellor' and 'counselor' of 'animal' are so alike", "make the other its alias",
    ),
    "demographic values": (
        CARD, "[small, medium, large]", "[male, female]", CARD, "groups of people (male, female)", "something else",
    ),
    "no such corpus": (CARD, "crema-d]", "cremad]", CARD, "there is no corpus 'cremad'", "Did you mean 'crema-d'"),
    "no such column": (CARD, "gender: [demo,", "gendr: [demo,", CARD, "no column 'gendr'", "Did you mean 'gender'"),
    "no such column in a corpus to be prepared": (
        CARD, "accent: [demo, speech-accent-archive,", "emotion: [speech-accent-archive,", CARD, "no column 'emotion'",
        "name another corpus",
    ),
    "no such metric": (CARD, "[ntvd,", "[ntvdd,", CARD, "unknown metric 'ntvdd'", "Did you mean 'ntvd'"),
    "one label for two": (CARD, "label: Size", "label: Animal", CARD, "does not read back", "give it a label"),
    "no such template": (
        CARD, "default: pets/default.j2", "default: pets/prompt.j2", CARD, "no file 'pets/prompt.j2'",
        "",
    ),
}  # fmt: skip


def test_the_skeleton_has_nothing_to_mend(own: Path) -> None:
    checked = check(own)
    assert checked.findings == ()
    assert "which animal would suit them" in checked.prompts["default"] and "{#" not in checked.prompts["default"]


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_mistake_is_found(own: Path, planted: str) -> None:
    file, old, new, place, says, mend = PLANTED[planted]
    change(own, file, old, new)
    found = [finding for finding in check(own).findings if says in finding.message]
    assert found, check(own).findings
    assert mend in found[0].message
    assert found[0].place.startswith(str(own / place))


def test_all_planted_mistakes_are_told_at_once(own: Path) -> None:
    together = [
        "unknown field", "unknown variable", "demographic prompt", "leading prompt", "alias chain",
        "no such corpus", "no such metric",
    ]  # fmt: skip
    for file, old, new, *_ in [PLANTED[name] for name in together if name != "unknown variable"]:
        change(own, file, old, new)
    change(own, CARD, "default: pets/default.j2", "default: pets/default.j2\n  other: pets/other.j2")
    (own / "templates/pets/other.j2").write_text("{{ name }}", encoding="utf-8")
    messages = [finding.message for finding in check(own).findings]
    for name in together:
        assert any(PLANTED[name][4] in message for message in messages), name


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("file", [CARD, PROMPT, EXTRACT, ALIASES])
def test_a_file_in_another_encoding(own: Path, file: str, encoding: str) -> None:
    text = (own / file).read_text(encoding="utf-8").replace("pet", "pét").replace("puppy", "püppy")
    (own / file).write_text(text.replace("pét", "pet") if file == ALIASES else text, encoding=encoding)
    before = (own / file).read_bytes()
    findings = check(own).findings
    assert findings and any(Path(file).name in str(finding) for finding in findings)
    assert any("UTF-8" in finding.message for finding in findings), findings
    assert (own / file).read_bytes() == before


@pytest.mark.parametrize("task", sorted(CardIndex().task_files()))
def test_every_card_that_comes_along(task: str) -> None:
    [checked] = check_tasks([task])
    assert checked.findings == ()


def copied(folder: Path, task: str, old: str, new: str) -> Path:
    """A card of the user's own, made from one that comes along."""
    text = (library_root() / "tasks" / f"{task}.yaml").read_text(encoding="utf-8")
    assert old in text
    card = folder / "own" / "tasks" / "mine.yaml"
    card.parent.mkdir(parents=True)
    card.write_text(text.replace(f"task: {task}", "task: mine").replace(old, new), encoding="utf-8")
    shutil.copytree(library_root() / "templates", folder / "own" / "templates")
    return card


@pytest.mark.parametrize(
    ("task", "old", "new"),
    [("biasinear", "text: option_b_text", "text: option_b"), ("spoken_stereoset", "item: item", "item: itm")],
)
def test_columns_of_a_choice_task(tmp_path: Path, task: str, old: str, new: str) -> None:
    [checked] = check_tasks([str(copied(tmp_path, task, old, new))])
    wrong = new.rpartition(" ")[2]
    assert checked.findings and all(f"has no column '{wrong}'" in finding.message for finding in checked.findings)


def test_a_choice_task_is_tried_the_whole_way(tmp_path: Path) -> None:
    card = copied(tmp_path, "biasinear", "metrics: [accuracy,", "metrics: [slbs, accuracy,")
    [checked] = check_tasks([str(card)])
    [finding] = checked.findings
    assert "slbs" in finding.message and "stereotypical" in finding.message, finding


def test_a_spoken_label_that_cannot_be_played(tmp_path: Path) -> None:
    card = copied(tmp_path, "biasinear", "kind: choice", "kind: choice")
    (tmp_path / "own" / "templates" / "labels" / "question.ogg").write_bytes(b"")
    [checked] = check_tasks([str(card)])
    assert any("question.ogg" in finding.message for finding in checked.findings), checked.findings


def test_a_card_copied_over_another_name(own: Path) -> None:
    text = (library_root() / "tasks" / "story.yaml").read_text(encoding="utf-8")
    (own / CARD).write_text(text, encoding="utf-8")
    assert "the card says 'task: story' but its file is named 'pets'" in check(own).findings[0].message
    (own / "tasks" / "story.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="two cards are named 'story'"):
        check_tasks([str(own)])


def test_a_folder_without_cards(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no task cards there"):
        check_tasks([str(tmp_path)])


def test_columns_that_importers_promise(tmp_path: Path) -> None:
    crema = layouts.crema_d(tmp_path / "crema", ["1001_DFA_ANG_XX.wav", "1002_IEO_HAP_LO.wav"])
    arctic = layouts.l2_arctic(tmp_path / "arctic", {"arctic_a0001": "Words."}, ["ABA"])
    archive = layouts.saa(tmp_path / "saa", ["27,9,paris,french1,french,female,1,france,,,,"], ["french1"])
    for name, source in (("crema-d", crema), ("l2-arctic", arctic), ("speech-accent-archive", archive)):
        importer = IMPORTERS.get(name)
        columns = {column for clip in importer.read(source, tmp_path / "work", name).clips for column in clip.groups}
        assert columns and columns <= set(importer.columns), name


@pytest.mark.parametrize(
    ("prompt", "offered"),
    [
        ("Small, MEDIUM or large?", True),
        ("Is it middle class? Is it single-parent?", False),
        ("It is smallish, and enlarged.", False),
        ("How large should it be?", False),
    ],
)
def test_values_are_offered_whatever_their_spelling(own: Path, prompt: str, offered: bool) -> None:
    (own / PROMPT).write_text(f"{prompt}\n", encoding="utf-8")
    assert any("does not offer" in finding.message for finding in check(own).findings) != offered


def test_values_in_a_script_without_spaces_are_found_in_the_prompt(own: Path) -> None:
    change(own, CARD, "[small, medium, large]", "[小さい, 大きい]")
    (own / PROMPT).write_text("その動物は小さいですか、大きいですか。\n", encoding="utf-8")
    assert not any("does not offer" in finding.message for finding in check(own).findings)
