"""Messages name commands that exist."""

import re
from pathlib import Path

import vibe_harness
from vibe_harness.cli.main import VERBS


def test_every_command_in_a_message_exists() -> None:
    named = {
        (path.name, command)
        for path in Path(vibe_harness.__file__).parent.rglob("*.py")
        for command in re.findall(r"[`']vibe-harness ([a-z][a-z_-]*)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 15 and {(file, command) for file, command in named if command not in VERBS} == set()
