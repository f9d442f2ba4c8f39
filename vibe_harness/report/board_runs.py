"""Reading many runs for a leaderboard: what cannot be shown is said in a line, the rest is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vibe_harness.cards.digest import digest
from vibe_harness.errors import UserError
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import Results, read_scored
from vibe_harness.pipeline.run_folder import RunFolder, RunRecord


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a leaderboard does not show, and why, in a line."""

    path: Path
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run with scores."""

    path: Path
    results: Results
    record: RunRecord
    asked: Mapping[str, Any]  # what makes the run another run

    @property
    def identity(self) -> str:
        """Digest of all that makes its model another model: weights, engine, arguments, seed of generation."""
        return digest([self.asked.get("model"), self.asked.get("seed")])


def read_entries(paths: Sequence[Path], progress: Progress, *, simulated: bool) -> tuple[list[Entry], list[LeftOut]]:
    """The runs that can be shown, in the order given, and what is left out.

    simulated: show runs of simulated models too.
    """
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    seen: dict[str, Path] = {}
    with progress.stage("reading runs", len(paths)) as tick:
        for path in paths:
            tick(1)
            try:
                entry = _read(path)
            except UserError as error:
                words = " ".join(str(error).split())  # its own path is told beside it
                left_out.append(LeftOut(path, words.removeprefix(f"{path}: ").replace(f"{path}/", "")))
                continue
            if entry.results.simulated and not simulated:
                left_out.append(LeftOut(path, "a simulated model, shown only with --include-simulated"))
                continue
            same = digest([dict(entry.asked), entry.results.tau, _places(entry)])
            if same in seen:
                left_out.append(LeftOut(path, f"the same run as {seen[same].name}, which is shown"))
                continue
            seen[same] = path
            entries.append(entry)
    return entries, left_out


def _read(path: Path) -> Entry:
    folder = RunFolder(path)
    record, asked = folder.record(), folder.question()
    return Entry(path=path, results=read_scored(folder), record=record, asked=asked)


def _places(entry: Entry) -> list[list[str]]:
    return sorted([task.task, task.variant, task.dimension, str(task.alias_files)] for task in entry.results.tasks)


def model_labels(entries: Sequence[Entry]) -> dict[str, str]:
    """Identity -> what its row is called: the model's name, and what tells it from others of that name."""
    named: dict[str, dict[str, dict[str, str]]] = {}
    for entry in entries:
        facts = dict(flat("", {**entry.asked.get("model", {}), "seed": entry.asked.get("seed")}))
        named.setdefault(entry.results.model, {})[entry.identity] = facts
    labels = {}
    for name, identities in named.items():
        keys = sorted({key for facts in identities.values() for key in facts})
        differing = [key for key in keys if len({facts.get(key) for facts in identities.values()}) > 1]
        for identity, facts in identities.items():
            told = ", ".join(f"{key} {facts.get(key, 'not set')}" for key in differing)
            labels[identity] = f"{name} ({told})" if told else name
    return labels


def flat(prefix: str, value: Any) -> list[tuple[str, str]]:
    """Nested settings as (dotted name, text)."""
    if isinstance(value, Mapping):
        names = {key: f"{prefix}.{key}" if prefix and key != prefix else str(key) for key in value}
        return [pair for key, inner in value.items() for pair in flat(names[key], inner)]
    return [(prefix, str(value))]
