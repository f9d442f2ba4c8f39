"""Commands that the documentation gives name verbs and options that there are, also where no test can give them."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from tests.docs.guide import DOCS
from tests.support import ROOT
from vibe_harness.cli.main import VERBS, cli

PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
_COMMAND = re.compile(r"(?:^|[`/])vibe-harness((?: +[^\s`|#]+)+)", re.MULTILINE)


def find(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words name, and the words after it. Raises AssertionError where there is no such verb."""
    command: click.Command = cli
    if words[0].startswith("-"):
        words = ["run", *words]
    while isinstance(command, click.Group) and words:
        if command is not cli and words[0].startswith(("-", "[")):
            break
        inner = command.get_command(click.Context(command), words[0].rstrip(".,:;"))
        assert inner is not None, f"no verb '{words[0]}'"
        command, words = inner, words[1:]
    return command, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_verbs_and_options_are_there(page) -> None:
    for given in _COMMAND.findall(page.read_text(encoding="utf-8")):
        words = shlex.split(given.replace("'", '"') if given.count("'") % 2 else given)
        if words[0] not in VERBS and not words[0].startswith("-"):
            continue  # prose: "vibe-harness measures ..."
        if words[0] in ("-h", "--help", "--version"):
            continue
        command, rest = find(words)
        known = {name for parameter in command.params for name in parameter.opts} | {"--help", "-h"}
        for word in rest:
            if word.startswith("--"):
                assert word.partition("=")[0].rstrip(".,:;)") in known, f"vibe-harness{given}"


def test_a_command_that_is_not_there_is_found() -> None:
    with pytest.raises(AssertionError, match="no verb 'chek'"):
        find(["tasks", "chek"])
