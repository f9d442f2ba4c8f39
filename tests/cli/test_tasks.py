"""`vibe-harness tasks`: filters that nothing answers to, skeletons, and the check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import QuickCommand
from vibe_harness.authoring import skeletons


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--dimension=gendr", "--dimension gendr: no task has it. Did you mean 'gender'?"),
        ("--corpus=cremad", "--corpus cremad: no task has it. Did you mean 'crema-d'?"),
        ("--kind=open", "--kind open: no task has it."),
    ],
)
def test_a_mistyped_filter(quick: QuickCommand, option: str, said: str) -> None:
    assert said in quick.refuses("tasks", "list", option)


def test_filters_that_a_task_answers_to(quick: QuickCommand) -> None:
    shown = quick("tasks", "list", "--dimension=accent", "--corpus=l2-arctic", check=0).stdout
    assert all(task in shown for task in ("story", "advisory", "candidate", "casting", "shopper"))
    assert "story" not in quick("tasks", "list", "--dimension=gender", "--corpus=l2-arctic", check=0).stdout


def test_the_command(quick: QuickCommand, tmp_path: Path) -> None:
    skeletons.new_task("pets", tmp_path / "own")
    shown = quick("tasks", "check", "own", check=0)
    assert "nothing to mend" in shown.stdout and "which animal would suit them" in shown.stdout
    assert "a run of 3 clips" in shown.stdout and "the values of animal, size" in shown.stdout
    prompt = tmp_path / "own" / "templates" / "pets" / "default.j2"
    prompt.write_text("Mind the voice in the recording: a small or a large animal?\n", encoding="utf-8")
    done = quick("tasks", "check", "own/tasks/pets.yaml", check=2)
    assert "1 to mend" in done.stdout and done.stderr == ""
    [checked] = json.loads(quick("tasks", "check", "own", "--json", check=2).stdout)
    [finding] = checked["findings"]
    assert finding["place"].endswith("default.j2:1") and "'voice'" in finding["message"]
    assert "Did you mean 'pets'?" in quick.refuses("tasks", "check", "pet", "--include-path", "own")


def test_new_tells_what_it_wrote(quick: QuickCommand, tmp_path: Path) -> None:
    shown = quick("tasks", "new", "pets", "--folder", "own", check=0).stdout.splitlines()
    assert [Path(line).name for line in shown[:-1]] == ["pets.yaml", "default.j2", "extract.j2", "animal.yaml"]
    assert quick(*shown[-1].split("vibe-harness ")[1].split(), check=0)
    assert "there is a task 'pets' already" in quick.refuses("tasks", "new", "pets", "--folder", "own")
    shown = quick("models", "new", "mine", "--folder", "own", check=0).stdout.splitlines()
    assert quick(*shown[-1].split("vibe-harness ")[1].split(), check=0)
