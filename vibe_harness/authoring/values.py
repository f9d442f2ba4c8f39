"""The raw and canonical values in a run, and proposals for aliases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import fuzz, process, utils

from vibe_harness.cards.schema import Attribute
from vibe_harness.errors import UserError
from vibe_harness.extraction.canonical import Canonicaliser
from vibe_harness.records import GROUP_PREFIX, Reading
from vibe_harness.registry import did_you_mean
from vibe_harness.store.run_folder import RunFolder, TaskRecord
from vibe_harness.store.run_tables import column_names, read_frame

ALIKE = 85.0  # of 100, by rapidfuzz's token_sort_ratio: similar enough to propose an alias


@dataclass(frozen=True, slots=True)
class ValueCount:
    """One canonical value of an attribute in a run."""

    value: str
    by_group: Mapping[str, int]  # group -> number of answers with it
    raw: Mapping[str, int]  # raw value -> number of times
    in_card: bool  # whether the card or its alias file lists it

    @property
    def total(self) -> int:
        return sum(self.by_group.values())


@dataclass(frozen=True, slots=True)
class Proposal:
    """A value that may be another spelling of a canonical value."""

    spelling: str
    value: str
    likeness: float  # 0 to 100


@dataclass(frozen=True, slots=True)
class RunValues:
    """The values of one attribute of one task in a run."""

    task: str
    attribute: str
    dimension: str
    groups: tuple[str, ...]
    alias_file: str | None  # and its digest, as it was when the run was read
    values: tuple[ValueCount, ...]  # the commonest first
    proposals: tuple[Proposal, ...]  # none for a closed attribute


def run_values(run: Path, attribute: str, task: str | None = None, dimension: str | None = None) -> RunValues:
    """Count the values of an attribute in a finished run, by the groups of a dimension (default: the run's first).

    task: needed if several tasks of the run have the attribute. All prompt variants are counted. Raises UserError for
    an unknown run, task, attribute or dimension.
    """
    folder = RunFolder(run)
    record = folder.record()
    found = _task_with(record.tasks, attribute, task, run)
    dimension = dimension or record.dimensions[0]
    spec = found.card.extraction.attributes[attribute]
    canonicaliser = Canonicaliser(spec, found.aliases.get(attribute, {}))
    by_value: dict[str, Counter[str]] = {}
    spellings: dict[str, Counter[str]] = {}
    rows = list(_answers(folder, found, attribute, dimension))
    for group, raw in rows:
        for value in canonicaliser.canonical_values(raw):
            by_value.setdefault(value, Counter())[group] += 1
        for written in raw:
            if (canonical := canonicaliser.canonical(written)) is not None:
                spellings.setdefault(canonical, Counter())[written] += 1
    counts = [
        ValueCount(value, dict(by_value[value]), dict(spellings[value].most_common()), canonicaliser.is_known(value))
        for value in sorted(by_value, key=lambda value: (-by_value[value].total(), value))
    ]
    return RunValues(
        task=found.card.task,
        attribute=attribute,
        dimension=dimension,
        groups=tuple(sorted({group for group, _ in rows})),
        alias_file=found.alias_files().get(attribute),
        values=tuple(counts),
        proposals=tuple(propose(counts, spec)),
    )


def _answers(
    folder: RunFolder, task: TaskRecord, attribute: str, dimension: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The group and the raw values of every answer that gave a value."""
    if not folder.observations.is_file():
        raise UserError(f"{folder.path}: no values yet: finish the run with the command that started it")
    names = column_names(folder.observations)
    columns = [name.removeprefix(GROUP_PREFIX) for name in names if name.startswith(GROUP_PREFIX)]
    if dimension not in columns:
        raise UserError(f"--dimension {dimension}: the run has no such column. {did_you_mean(dimension, columns)}")
    for variant in task.variants:
        frame = read_frame(folder.observations, task.card.task, variant, dimension)
        rows = frame[(frame["attribute"] == attribute) & (frame["reading"] == Reading.VALUE)]
        yield from ((str(group), tuple(raw)) for group, raw in zip(rows["group"], rows["raw"], strict=True))


def propose(counts: Sequence[ValueCount], attribute: Attribute) -> list[Proposal]:
    """Propose aliases for similar values: the rarer becomes an alias of the more frequent, or of one in the card.

    Two values of the card are never merged. A value is either kept or proposed as an alias, so proposals cannot chain.
    """
    if attribute.values != "open":
        return []
    heads: dict[str, ValueCount] = {}
    proposals = []
    for one in sorted(counts, key=lambda one: (not one.in_card, -one.total, one.value)):
        near = None
        if not one.in_card:
            near = process.extractOne(
                one.value, heads.keys(), scorer=fuzz.token_sort_ratio, processor=utils.default_process,
                score_cutoff=ALIKE,
            )  # fmt: skip
        if near is None:
            heads[one.value] = one
        else:
            proposals.append(Proposal(one.value, near[0], near[1]))
    return sorted(proposals, key=lambda proposal: (-proposal.likeness, proposal.spelling))


def _task_with(tasks: Sequence[TaskRecord], attribute: str, name: str | None, run: Path) -> TaskRecord:
    names = [task.card.task for task in tasks]
    if name is not None and name not in names:
        raise UserError(f"--task {name}: the run {run} has no such task. {did_you_mean(name, names)}")
    asked = [task for task in tasks if name in (None, task.card.task)]
    having = [task for task in asked if attribute in task.card.extraction.attributes]
    if not having:
        known = [one for task in asked for one in task.card.extraction.attributes]
        raise UserError(
            f"--attribute {attribute}: the run {run} reads no such attribute. {did_you_mean(attribute, known)}"
        )
    if len(having) > 1:
        raise UserError(
            f"--attribute {attribute}: the tasks {', '.join(task.card.task for task in having)} all have it: name one "
            "with --task"
        )
    return having[0]
