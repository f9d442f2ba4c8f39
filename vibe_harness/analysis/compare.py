"""Two runs over the same clips: where their scores differ, by how much and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vibe_harness.analysis.model_labels import disambiguate
from vibe_harness.cards.digest import digest
from vibe_harness.errors import UserError
from vibe_harness.metrics.balance import balance_of
from vibe_harness.metrics.frame_counts import Cells, Speakers, attributes_of, cell_counts, speakers_of
from vibe_harness.metrics.metric import Settings
from vibe_harness.records import Outcome, Reading
from vibe_harness.scoring.score import recorded_settings, settings_for
from vibe_harness.stats.adjust import adjusted
from vibe_harness.stats.comparison import Comparison, compare
from vibe_harness.stats.ntvd import kept_values
from vibe_harness.store.checksums import check_sums, same_answers
from vibe_harness.store.run_folder import RunFolder, RunRecord, TaskRecord
from vibe_harness.store.run_tables import read_frame, rows_of

if TYPE_CHECKING:
    import pandas as pd

SAME = ("corpus", "extractor", "limit", "seed")  # of a run's question: what should differ between two runs is the model


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One task by one dimension in two runs, paired over the clips that both have an answer to."""

    task: str
    variant: str
    dimension: str
    clips: int
    whole: Comparison
    attributes: dict[str, Comparison]
    standardised_over: tuple[str, ...] = ()
    adjusted: float | None = None  # p of the whole over all that is compared (Benjamini and Hochberg)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """before, after: models. tau: values that neither run has so often are left out. not_compared: why, for what the
    first run asked and can be compared in nothing. warnings: what else differs between the two runs, in words.
    same_run: the two hold the same responses."""

    before: str
    after: str
    tau: int
    compared: tuple[Compared, ...]
    not_compared: tuple[str, ...]
    warnings: tuple[str, ...]
    same_run: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_runs(
    before: Path, after: Path, *, tau: int | None = None, permutations: int | None = None
) -> RunComparison:
    """Compares two finished runs, run folders, by every task, prompt and dimension that both have.

    Answers are paired over the clips, the same sound in both runs, that neither run's engine or extractor failed on.
    A value enters where one of the runs alone has it at least tau times, so that a run beside itself has its own score.
    tau, permutations: by default those that the runs were scored with.

    A task asked with another card is not compared, and said so: the change could be the prompt's. What else differs
    between the runs (extractor, corpus, seed, clips) is a warning.

    Raises UserError where there is nothing to compare, and where the runs were scored with different tau and none is
    given.
    """
    folders = RunFolder(before), RunFolder(after)
    records = folders[0].record(), folders[1].record()
    for folder in folders:
        _check_finished(folder)
    alike, changed = _same_clips(*folders)
    if not alike:
        raise UserError(f"{before} and {after} have no clip in common: runs over the same clips are needed")
    settings = _settings(folders, tau, permutations, records[0].seed)
    same_run = same_answers(*folders)
    shared, refused, aside = _shared_tasks(*records)
    if not shared:
        raise UserError(f"{before} and {after} cannot be compared: {'; '.join([*refused, *aside])}")
    dimensions = [name for name in records[0].dimensions if name in records[1].dimensions]
    if not dimensions:
        raise UserError(f"{before} and {after} share no dimension: score one of them by the other's --dimension first")
    refused += [f"by {name}: only the first run has it" for name in records[0].dimensions if name not in dimensions]
    compared = [
        _compared(folders, task, variant, dimension, alike, settings_for(records[0], dimension, settings))
        for task in shared
        for variant in task.variants
        for dimension in dimensions
    ]
    names = _model_labels(folders, records)
    p_values = adjusted([one.whole.p_value for one in compared], [None] * len(compared))
    return RunComparison(
        before=names[0],
        after=names[1],
        tau=settings.tau,
        same_run=same_run,
        compared=tuple(replace(one, adjusted=p) for one, p in zip(compared, p_values, strict=True)),
        not_compared=tuple(refused),
        warnings=(*_other_differences(*folders), *changed, *aside),
    )


def _check_finished(folder: RunFolder) -> None:
    if not folder.observations.is_file():
        raise UserError(f"{folder.path}: nothing to compare yet: finish the run with the command that started it")
    check_sums(folder)


def _model_labels(folders: Sequence[RunFolder], records: Sequence[RunRecord]) -> list[str]:
    """The name of each run's model, with a suffix where two different models have the same name."""
    models = [folder.identity()["model"] for folder in folders]
    labels = disambiguate({digest(one): (record.model.model, one) for record, one in zip(records, models, strict=True)})
    return [labels[digest(model)] for model in models]


def _settings(folders: Sequence[RunFolder], tau: int | None, permutations: int | None, seed: int) -> Settings:
    """What is given, else what both runs were scored with."""
    own = [recorded_settings(folder) for folder in folders]
    taus = [one.tau for one in own]
    if tau is None and taus[0] != taus[1]:
        raise UserError(
            f"{folders[0].path} was scored with tau {taus[0]}, {folders[1].path} with {taus[1]}: say which with --tau"
        )
    return Settings(
        tau=taus[0] if tau is None else tau,
        permutations=max(one.permutations for one in own) if permutations is None else permutations,
        seed=seed,
    )


def _shared_tasks(before: RunRecord, after: RunRecord) -> tuple[list[TaskRecord], list[str], list[str]]:
    """Tasks of one card in both runs, with the prompts that both asked; why others of the first are not compared; and a
    line on those that there is nothing to compare in."""
    others = {task.card.task: task for task in after.tasks}
    shared, refused, aside = [], [], []
    for task in before.tasks:
        other = others.pop(task.card.task, None)
        if "ntvd" not in task.card.metrics:
            aside.append(f"{task.card.task}: its card does not ask for nTVD")
        elif other is None:
            refused.append(f"{task.card.task}: only the first run asked it")
        elif task.digest != other.digest:
            versions = f"versions {task.card.version} and {other.card.version}, digests {task.digest[:8]}"
            refused.append(
                f"{task.card.task}: asked with two different cards ({versions} and {other.digest[:8]}), so that the "
                "change could be the prompt's"
            )
        elif variants := [name for name in task.variants if name in other.variants]:
            shared.append(replace(task, variants=variants))
            refused += [
                f"{task.card.task}/{name}: only the first run asked it"
                for name in task.variants
                if name not in variants
            ]
        else:
            refused.append(f"{task.card.task}: asked in no prompt that both runs have")
    return shared, refused, [*aside, *(f"{name}: only the second run asked it" for name in others)]


def _same_clips(before: RunFolder, after: RunFolder) -> tuple[set[str], list[str]]:
    """Clips whose sound is the same in both runs, or that one of them asked in words; and a line on the others."""
    first, second = (dict(rows_of(folder.clips, ["clip", "waveform"])) for folder in (before, after))
    in_words = {clip for clip in first.keys() & second.keys() if not (first[clip] and second[clip])}
    alike = in_words | {clip for clip, waveform in first.items() if second.get(clip) == waveform}
    lines = []
    if other := sum(1 for clip in first if clip in second) - len(alike):
        lines.append(f"{other} clips sound otherwise in the second run and are left out")
    if alone := len(set(first) ^ set(second)):
        lines.append(f"{alone} clips were played in one of the runs only and are left out")
    return alike, lines


def _other_differences(before: RunFolder, after: RunFolder) -> list[str]:
    first, second = before.identity(), after.identity()
    return [
        f"the runs differ in {name} as well: {_told(first.get(name))}, then {_told(second.get(name))}"
        for name in SAME
        if first.get(name) != second.get(name)
    ]


def _told(value: Any) -> str:
    return str(value.get("name", value) if isinstance(value, dict) else value)[:80]


def _compared(
    folders: tuple[RunFolder, RunFolder],
    task: TaskRecord,
    variant: str,
    dimension: str,
    alike: set[str],
    settings: Settings,
) -> Compared:
    frame = _joined([read_frame(one.observations, task.card.task, variant, dimension) for one in folders], alike)
    if frame.empty:
        raise UserError(f"{task.card.task} by {dimension}: no clip has an answer in both runs")
    speakers = speakers_of(frame)
    if speakers.owners is not None:
        raise UserError(
            f"{task.card.task} by {dimension}: every speaker has clips in several groups, and runs are compared over "
            "groups of speakers: name another --dimension"
        )
    columns = balance_of(frame, speakers, settings).columns
    cells = Cells.of(frame, columns)
    names = attributes_of(frame)
    pairs = [_pair(frame, name, speakers, cells, settings.tau) for name in names]
    before, after = ([pair[run] for pair in pairs] for run in (0, 1))
    return Compared(
        task=task.card.task,
        variant=variant,
        dimension=dimension,
        clips=int(frame["clip"].nunique()),
        whole=compare(before, after, speakers.codes, seed=settings.seed),
        attributes={
            name: compare([one], [other], speakers.codes, seed=settings.seed)
            for name, (one, other) in zip(names, pairs, strict=True)
        },
        standardised_over=columns,
    )


def _joined(frames: Sequence[pd.DataFrame], alike: set[str]) -> pd.DataFrame:
    """The rows of both runs, marked in the column "run" (0, 1), of the clips that both have an answer to."""
    import pandas as pd

    usable = []
    for run, frame in enumerate(frames):
        failed = (frame["outcome"] == Outcome.ERROR) | (frame["reading"] == Reading.ERROR)
        broken = set(frame["clip"][failed].astype(str))
        usable.append((frame.assign(run=run), (set(frame["clip"].astype(str)) & alike) - broken))
    both = usable[0][1] & usable[1][1]
    rows = [frame[frame["clip"].astype(str).isin(both)] for frame, _ in usable]
    return pd.concat(rows, ignore_index=True)


def _pair(frame: pd.DataFrame, name: str, speakers: Speakers, cells: Cells, tau: int) -> list[np.ndarray[Any, Any]]:
    """Tables (S, H, V) of one attribute in each run, over the values that one of them alone would keep."""
    rows = (frame["attribute"] == name).to_numpy()
    values, together = cell_counts(frame[rows], speakers, cells[rows])
    place = {value: index for index, value in enumerate(values)}
    tables = []
    for run in (0, 1):
        own = rows & (frame["run"] == run).to_numpy()
        found, counts = cell_counts(frame[own], speakers, cells[own])
        table = np.zeros_like(together)
        table[..., [place[value] for value in found]] = counts
        tables.append(table)
    kept = kept_values(tables[0], tau) | kept_values(tables[1], tau)
    return [table[..., kept] for table in tables]
