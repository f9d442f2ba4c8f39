"""Tasks to extract for: a built-in one, and cards written on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from vibe_harness.cards.loading import CardIndex, Task

MakeTask = Callable[..., Task]


@pytest.fixture(scope="session")
def story() -> Task:
    return CardIndex().tasks(["story"])[0]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Writes a card with these attributes (and alias files) and loads it."""

    def make(attributes: dict[str, dict[str, object]], **aliases: dict[str, list[str]]) -> Task:
        for name, table in aliases.items():
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(table), encoding="utf-8")
            attributes[name]["aliases"] = f"{name}.yaml"
        (tmp_path / "prompt.j2").write_text("Say something.", encoding="utf-8")
        (tmp_path / "own.j2").write_text("{{ fence }} {{ response }} {{ fence }}", encoding="utf-8")
        card = {
            "task": "made",
            "version": 1,
            "description": "made by a test",
            "prompts": {"default": "prompt.j2"},
            "extraction": {"template": "own.j2", "attributes": attributes},
            "dimensions": {"gender": ["demo"]},
        }
        (tmp_path / "made.yaml").write_text(yaml.safe_dump(card), encoding="utf-8")
        return CardIndex().load_task(tmp_path / "made.yaml")

    return make
