"""What a person is told who begins, comes from lm-evaluation-harness, or presses the tabulator."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys

import pytest

from tests.command_line import Command, QuickCommand
from vibe_harness.cli.completion import VARIABLE
from vibe_harness.cli.help_page import EXAMPLES, VERB_GROUPS
from vibe_harness.cli.main import VERBS, main
from vibe_harness.cli.run import command as run_command


def test_without_arguments_the_help_is_shown_and_nothing_failed(quick: QuickCommand) -> None:
    done = quick(check=0)
    assert done.stdout == quick("--help", check=0).stdout and done.stderr == ""
    assert "vibe-harness --model simulated --tasks story,advisory" in done.stdout
    assert all(line == line.rstrip() or line.strip() for line in done.stdout.splitlines())


def test_the_help_holds_every_verb_and_an_example_of_each_option_it_shows(quick: QuickCommand) -> None:
    shown = quick("--help", check=0).stdout
    assert all(f"\n  {verb} " in shown for verb in VERBS)
    assert {name for names in VERB_GROUPS.values() for name in names} <= VERBS.keys()
    options = {option for parameter in run_command.params for option in parameter.opts}
    for example in EXAMPLES.values():
        assert example in shown and example.split()[0] in options, example


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--batch_size", "8"), "--check-batch-invariance"),
        (("--log_samples",), "responses.jsonl"),
        (("--num_fewshot", "5"), "no examples"),
        (("--apply_chat_template",), "leave it out"),
        (("--device", "cuda"), "device=cuda"),
    ],
)
def test_options_of_lm_eval_are_answered_with_what_to_use(
    quick: QuickCommand, typed: tuple[str, ...], said: str
) -> None:
    told = quick.refuses("--model", "simulated", "--tasks", "story", *typed)
    assert said in told and typed[0].replace("_", "-") in told and len(told.splitlines()) == 1


@pytest.mark.parametrize("typed", [("ls", "tasks"), ("ls",), ("list",)])
def test_verbs_of_lm_eval_are_answered_with_what_to_use(quick: QuickCommand, typed: tuple[str, ...]) -> None:
    assert "`vibe-harness tasks list`" in quick.refuses(*typed)
    assert "`vibe-harness tasks list`" in quick.refuses("--model", "simulated", "--tasks", "list")


@pytest.mark.parametrize("name", ["vllm", "vllm:", "vllm:/", "hf"])
def test_an_engine_given_as_a_model_is_explained(quick: QuickCommand, name: str) -> None:
    said = quick.refuses("--model", name, "--tasks", "story")
    assert f"{name.rstrip(':/')}:ORG/NAME" in said and len(said.splitlines()) == 1


def test_no_error_lists_all_models(quick: QuickCommand) -> None:
    said = quick.refuses("--model", "zzzz", "--tasks", "story")
    assert "`vibe-harness models list`" in said and "qwen" not in said


def completions(quick: QuickCommand, monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash") -> list[str]:
    """What a shell is offered for the last word of a line."""
    words = line.split(" ")
    monkeypatch.setenv(VARIABLE, f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # click writes bytes for a shell
    with contextlib.chdir(quick.folder), contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
        main([])
    assert not end.value.code
    offered = out.buffer.getvalue().decode("utf-8").splitlines()  # type: ignore[attr-defined]
    return offered[1::3] if shell == "zsh" else [item.split(",", 1)[1].split("\t")[0] for item in offered if item]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("vibe-harness tas", {"tasks"}),
        ("vibe-harness tasks sh", {"show"}),
        ("vibe-harness --tas", {"--tasks"}),
        ("vibe-harness --model simulated-ra", {"simulated-random"}),
        ("vibe-harness run --model simulated-ra", {"simulated-random"}),
        ("vibe-harness --tasks sto", {"story"}),
        ("vibe-harness --model simulated --tasks story,adv", {"story,advisory"}),
        ("vibe-harness --tasks story,stor", set()),
        ("vibe-harness --corpus dem", {"demo"}),
        ("vibe-harness power --corpus dem", {"demo"}),
        ("vibe-harness --extractor rul", {"rules"}),
        ("vibe-harness tasks check advi", {"advisory"}),
        ("vibe-harness models show simulated-ra", {"simulated-random"}),
        ("vibe-harness no-verb --model sim", set()),
    ],
)  # fmt: skip
def test_a_shell_is_offered(
    quick: QuickCommand, monkeypatch: pytest.MonkeyPatch, shell: str, line: str, offered: set[str]
) -> None:
    assert set(completions(quick, monkeypatch, line, shell)) == offered


def test_own_cards_are_offered_and_broken_folders_break_nothing(
    quick: QuickCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("own", "twice"):
        (quick.folder / name / "tasks").mkdir(parents=True)
    (quick.folder / "own" / "tasks" / "storm.yaml").touch()
    (quick.folder / "twice" / "tasks" / "story.yaml").touch()
    assert completions(quick, monkeypatch, "vibe-harness --include-path own --tasks stor") == ["storm", "story"]
    assert completions(quick, monkeypatch, "vibe-harness --include-path twice --tasks stor") == []
    assert completions(quick, monkeypatch, "vibe-harness --include-path nowhere --tasks stor") == ["story"]
    assert completions(quick, monkeypatch, "vibe-harness --tasks own/ta") == ["own/ta"]  # the shell completes the file


def test_completing_imports_nothing_heavy(vibe: Command) -> None:
    asked = {VARIABLE: "bash_complete", "COMP_WORDS": "vibe-harness --tasks story,adv", "COMP_CWORD": "2"}
    code = (
        "import sys\nfrom vibe_harness.cli.main import main\ntry:\n    main([])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('pandas', 'scipy', 'pyarrow', 'rich', 'soundfile') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=vibe.folder, capture_output=True, text=True, env={**os.environ, **asked}, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["plain,story,advisory", "[]"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(quick: QuickCommand, shell: str) -> None:
    script = quick("completion", shell, check=0).stdout
    assert f"{VARIABLE}={shell}_complete" in script and "vibe-harness" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_itself_completes_a_name_behind_a_comma(quick: QuickCommand) -> None:
    (quick.folder / "script").write_text(quick("completion", "bash", check=0).stdout, encoding="utf-8")
    (quick.folder / "vibe-harness").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vibe_harness "$@"\n')
    (quick.folder / "vibe-harness").chmod(0o755)
    typed = (
        ". ./script; COMP_WORDS=(./vibe-harness --tasks story,adv); COMP_CWORD=2; "
        '_vibe_harness_completion ./vibe-harness; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", typed], cwd=quick.folder, capture_output=True, text=True, check=False)
    assert done.stdout == "story,advisory\n", done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_itself_completes_a_name_behind_a_comma(quick: QuickCommand) -> None:
    (quick.folder / "script").write_text(quick("completion", "fish", check=0).stdout, encoding="utf-8")
    (quick.folder / "vibe-harness").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vibe_harness "$@"\n')
    (quick.folder / "vibe-harness").chmod(0o755)
    done = subprocess.run(
        ["fish", "--no-config", "-c", "source script; complete -C 'vibe-harness --tasks story,adv'"],
        cwd=quick.folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{quick.folder}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout == "story,advisory\n", done.stderr


def test_the_script_of_fish_keeps_what_stands_behind_a_comma(quick: QuickCommand) -> None:
    assert 'string split --max 1 "," $completion' in quick("completion", "fish", check=0).stdout
