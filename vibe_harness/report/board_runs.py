"""Reading many runs for a leaderboard: what cannot be shown is said in a line, the rest is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vibe_harness.analysis.model_labels import disambiguate
from vibe_harness.analysis.tests_used import EARLIER, test_names
from vibe_harness.cards.digest import digest
from vibe_harness.errors import UserError
from vibe_harness.progress import Progress
from vibe_harness.records import Outcome
from vibe_harness.store.fresh_runs import fresh_number
from vibe_harness.store.results import Results, read_verified_results, to_json
from vibe_harness.store.run_folder import RunFolder, RunRecord


@dataclass(frozen=True, slots=True)
class ExcludedRun:
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


def read_entries(
    paths: Sequence[Path], progress: Progress, *, simulated: bool
) -> tuple[list[Entry], list[ExcludedRun]]:
    """The runs that can be shown and what is left out, both in an order that does not hang on the order given.

    Of several runs of one question one that the present test scored is shown, then the one with the most answers, then
    that with the most permutations.
    simulated: show runs of simulated models too.
    """
    found: list[Entry] = []
    left_out: list[ExcludedRun] = []
    with progress.stage("reading runs", len(paths)) as tick:
        for path in paths:
            tick(1)
            try:
                entry = _read(path)
            except UserError as error:
                words = " ".join(str(error).split())  # its own path is told beside it
                left_out.append(ExcludedRun(path, words.removeprefix(f"{path}: ").replace(f"{path}/", "")))
                continue
            if entry.results.simulated and not simulated:
                left_out.append(ExcludedRun(path, "a simulated model, shown only with --include-simulated"))
                continue
            found.append(entry)
    shown: dict[str, Entry] = {}
    for entry in sorted(found, key=_order):
        first = shown.setdefault(digest([dict(entry.asked), entry.results.tau, _places(entry)]), entry)
        if first.results == entry.results and first is not entry:
            left_out.append(ExcludedRun(entry.path, f"the same run as {first.path.name}, which is shown"))
        elif first is not entry:
            words = f"another run of the same question as {first.path.name}, which is shown"
            left_out.append(ExcludedRun(entry.path, words))
    return list(shown.values()), sorted(left_out, key=lambda one: (str(one.path), one.why))


def _order(entry: Entry) -> tuple[Any, ...]:
    """Where a run comes among others: by what it is, and by its path where it is what another is."""
    results = entry.results
    groups = [group for task in results.tasks for group in task.groups.values()]
    answered = sum(group.requests - group.outcomes.get(Outcome.ERROR, 0) for group in groups)
    return (
        results.model.casefold(), results.model, results.corpus, digest(dict(entry.asked)),
        EARLIER in test_names(results), -answered,
        -results.permutations, -fresh_number(entry.path), digest(to_json(results)), str(entry.path),
    )  # fmt: skip


def _read(path: Path) -> Entry:
    folder = RunFolder(path)
    record, asked = folder.record(), folder.identity()
    return Entry(path=path, results=read_verified_results(folder), record=record, asked=asked)


def _places(entry: Entry) -> list[list[str]]:
    return sorted([task.task, task.variant, task.dimension, str(task.alias_files)] for task in entry.results.tasks)


def model_labels(entries: Sequence[Entry]) -> dict[str, str]:
    """Identity -> what its row is called: the model's name, and what tells it from others of that name."""
    return disambiguate({
        entry.identity: (
            entry.record.label or entry.results.model,
            {**entry.asked.get("model", {}), "seed": entry.asked.get("seed")},
        )
        for entry in entries
    })  # fmt: skip
