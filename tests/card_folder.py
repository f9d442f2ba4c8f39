"""A folder of a user's own cards, as `--include-path` takes it."""

from __future__ import annotations

from pathlib import Path

from vibe_harness.cards.loading import CardIndex, Task

CARD = """\
task: t
version: 1
description: made by a test
prompts: {default: p.j2}
extraction:
  template: e.j2
  attributes:
    a: {values: open}
dimensions: {gender: [demo]}
"""


class Folder:
    """A folder with one task `t`, its card and templates changed as a test needs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("tasks", "models", "templates"):
            (root / name).mkdir(parents=True)
        self.template("p.j2", "Say something.")
        self.template("e.j2", "{{ response }}")

    def template(self, name: str, text: str) -> Path:
        path = self.root / "templates" / name
        path.write_text(text, encoding="utf-8")
        return path

    def card(self, old: str = "", new: str = "", name: str = "t") -> Path:
        """The card with `old` replaced by `new`."""
        assert old in CARD
        path = self.root / "tasks" / f"{name}.yaml"
        path.write_text(CARD.replace(old, new) if old else CARD, encoding="utf-8")
        return path

    def load(self, name: str = "t") -> Task:
        return CardIndex([self.root]).tasks([name])[0]
