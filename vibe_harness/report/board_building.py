"""From runs to the blocks, columns and rows of a leaderboard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from vibe_harness.analysis.model_labels import flattened
from vibe_harness.analysis.tests_used import EARLIER, test_names
from vibe_harness.cards.digest import digest
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Score
from vibe_harness.report.board import Block, Board, Cell, Column, Row, mean_of
from vibe_harness.report.board_runs import Entry, ExcludedRun, model_labels
from vibe_harness.report.ranking import marked
from vibe_harness.report.stars import family_of, stars, tested
from vibe_harness.report.trust import trust_columns
from vibe_harness.store.results import TaskResult

_DIGEST = re.compile("[0-9a-f]{32}")
ColumnKey = tuple[str, str, str, str | None]  # see `Column.key`
NOT_SETTINGS = ("model", "tasks", "variants", "seed", "corpus", "limit")  # parts of a question that stand elsewhere


@dataclass
class _Draft:
    """A block while runs are put into it: column key -> identity -> what was found."""

    settings: Mapping[str, str]
    reader: str  # the extractor's name
    found: dict[ColumnKey, dict[str, tuple[Score, TaskResult, Entry]]]
    tasks: dict[str, tuple[str, str]]  # task -> its kind, and the first of its prompts
    entries: dict[str, Entry]


def build_board(
    entries: Sequence[Entry], left_out: Sequence[ExcludedRun] = (), published: Sequence[Block] = ()
) -> Board:
    """The board of these runs, with the published blocks after it."""
    lines = list(left_out)
    entries = _of_one_test(entries, lines)
    labels = model_labels(entries)
    drafts = _drafts(entries, lines)
    cells = [
        (place, key, identity, score)
        for place, draft in drafts.items()
        for key, by_model in draft.found.items()
        for identity, (score, *_) in by_model.items()
    ]
    family = family_of([score for *_, score in cells])
    adjusted = {(p, k, i): value for (p, k, i, _), value in zip(cells, family.p_values, strict=True)}
    blocks = []
    for place, draft in sorted(drafts.items(), key=lambda item: (item[0][1], item[0][0])):
        found = {
            key: {i: _cell(*own, adjusted[place, key, i]) for i, own in by_model.items()}
            for key, by_model in draft.found.items()
        }
        alike = [other for there, other in drafts.items() if there[:2] == place[:2]]
        blocks.append(_block(place, draft, found, labels, _apart(draft, alike)))
    return Board(blocks=(*blocks, *published), family=family, left_out=tuple(dict.fromkeys(lines)))


def _of_one_test(entries: Sequence[Entry], lines: list[ExcludedRun]) -> list[Entry]:
    """The runs without those that the test of version 0.1.0 scored, where others were scored by a later test."""
    names = {name for entry in entries for name in test_names(entry.results)}
    if names <= {EARLIER} or EARLIER not in names:
        return list(entries)
    for entry in entries:
        if EARLIER in test_names(entry.results):
            words = f"scored by another test than the others ({EARLIER}): run `vibe-harness score {entry.path}`"
            lines.append(ExcludedRun(entry.path, words))
    return [entry for entry in entries if EARLIER not in test_names(entry.results)]


def _drafts(entries: Sequence[Entry], lines: list[ExcludedRun]) -> dict[tuple[str, str, str], _Draft]:
    drafts: dict[tuple[str, str, str], _Draft] = {}
    for entry in entries:
        tasks = {task.card.task: (str(task.card.kind), next(iter(task.card.prompts))) for task in entry.record.tasks}
        for result in entry.results.tasks:
            settings = _settings(entry, result)
            place = (entry.results.corpus, result.dimension, digest(settings))
            draft = drafts.setdefault(place, _Draft(settings, entry.results.extractor, {}, {}, {}))
            draft.tasks.update(tasks)
            for score in tested(result):
                key = (result.task, score.metric, result.variant, _card(result))
                held = draft.found.setdefault(key, {})
                if entry.identity in held:
                    words = f"its {result.task} by {result.dimension} is shown from another run of the same question"
                    lines.append(ExcludedRun(entry.path, words))
                    continue
                held[entry.identity] = (score, result, entry)
                draft.entries.setdefault(entry.identity, entry)
    return drafts


def _card(result: TaskResult) -> str:
    """Digest of the task's card and, after a "+", of the alias files that its values were counted under."""
    return f"{result.task_digest}+{digest(dict(result.alias_files), 6)}" if result.alias_files else result.task_digest


def _settings(entry: Entry, result: TaskResult) -> dict[str, str]:
    """What must be alike for two runs to stand in one table."""
    asked = {name: value for name, value in entry.asked.items() if name not in NOT_SETTINGS}
    within = entry.record.speaker_strata.get(result.dimension, ())
    return {
        "answer_by": entry.results.answer_by,
        **dict(flattened("", asked)),
        "tau": str(entry.results.tau),
        "permuted within": ", ".join(within) or "nothing",
        "evened out over": ", ".join(entry.record.strata) or "nothing",
    }


def _apart(draft: _Draft, alike: Sequence[_Draft]) -> str:
    """How a draft's settings differ from the others of its corpus and dimension; "" where it is the only one.

    Two extractors are told apart by their names, two of one name by their settings.
    """
    told = [f"read by {draft.reader}"] if len({other.reader for other in alike}) > 1 else []
    for name in sorted({name for other in alike for name in other.settings}):
        among = [other for other in alike if other.reader == draft.reader or name.split(".")[0] != "extractor"]
        if len({other.settings.get(name) for other in among}) > 1:
            value = draft.settings.get(name, "not set")
            shown = value[:12] if _DIGEST.fullmatch(value) else value or "empty"
            told.append(f"{name.replace('_', ' ').replace('.', ' ')} {shown}")
    return ", ".join(told)


def _cell(score: Score, result: TaskResult, entry: Entry, adjusted_p: float | None) -> Cell:
    parts = [part for part in result.scores if part.metric == score.metric and part.attribute]
    return Cell(
        value=score.value,
        why=score.undefined,
        at_least=score.at_least,
        at_most=score.at_most,
        interval=score.interval,
        no_interval=score.detail.get("no_interval"),
        null_p95=score.null_p95,
        p_value=score.p_value,
        adjusted_p=adjusted_p,
        permutations=score.permutations,
        reliable=result.reliable,
        with_value=None if result.without_value is None else 1 - result.without_value,
        attributes=tuple(sorted(str(part.attribute) for part in parts if part.value is not None)),
        stars=stars(adjusted_p),
        trust=tuple(trust_columns(entry.results, result)),
        result=result,
    )


Found = Mapping[ColumnKey, Mapping[str, Cell]]


def _block(place: tuple[str, str, str], draft: _Draft, found: Found, labels: Mapping[str, str], apart: str) -> Block:
    columns, cells = [], []
    for column, by_model in _columns(found, draft.tasks):
        columns.append(column)
        cells.append(marked(by_model) if column.compared else by_model)
    main = [i for i, column in enumerate(columns) if column.is_shift and column.compared]
    one_metric = len({columns[i].metric for i in main}) == 1
    rows = []
    for identity, entry in draft.entries.items():
        own = tuple(by_model.get(identity) for by_model in cells)
        rows.append(
            Row(
                key=identity,
                model=labels[identity],
                simulated=entry.results.simulated,
                card=entry.record.model,
                cells=own,
                mean=mean_of([own[i] for i in main]) if one_metric else None,
            )
        )
    rows.sort(key=lambda row: row.model.casefold())
    synthetic = any(entry.results.corpus_synthetic for entry in draft.entries.values())
    return Block(
        corpus=place[0], synthetic=synthetic, dimension=place[1], settings=draft.settings, columns=tuple(columns),
        rows=tuple(rows), extractor=draft.reader, apart=apart,
    )  # fmt: skip


def _columns(found: Found, tasks: Mapping[str, tuple[str, str]]) -> Iterator[tuple[Column, Mapping[str, Cell]]]:
    """Columns with their cells.

    Where the models' means are over different attributes, they are not compared; a column over those that all have is.
    """
    shifts = {metric for _, metric, *_ in found if presentation_of(metric).role == "shift"}
    for key, by_model in found.items():
        column = _column(key, by_model, found, tasks, shifts)
        sets = {cell.attributes for cell in by_model.values() if cell.value is not None}
        if not column.is_shift or len(sets) < 2:
            every = _attributes(by_model, column.metric) if column.is_shift and sets else set()
            yield replace(column, missing=tuple(sorted(every - set().union(*sets)))), by_model
            continue
        yield replace(column, compared=False), by_model
        common = tuple(sorted(set.intersection(*map(set, sets))))
        if common:
            shared = replace(column, label=f"{column.label}, over {', '.join(common)}", common=common)
            yield shared, {identity: _over(cell, column.metric, common) for identity, cell in by_model.items()}


def _column(
    key: ColumnKey, by_model: Mapping[str, Cell], found: Found, tasks: Mapping[str, tuple[str, str]], shifts: set[str]
) -> Column:
    """A column of these cells. shifts: the metrics of the block that measure a shift."""
    task, metric, variant, card = key
    others = [other for other in found if other[:2] == (task, metric)]
    kind, first = tasks[task]
    name = task
    if variant != first or len({other[2] for other in others}) > 1:
        name += f" / {variant}"
    if len({other[3] for other in others}) > 1:
        own, plus, aliases = str(card).partition("+")
        name += f" (card {own[:6]}{plus}{aliases})"
    shown = presentation_of(metric)
    return Column(
        task=task, metric=metric, variant=variant, digest=card, kind=kind, name=name,
        label=name if shifts == {metric} else f"{name}: {shown.title}",
        digits=shown.decimals(*(cell.value for cell in by_model.values())),
    )  # fmt: skip


def _attributes(by_model: Mapping[str, Cell], metric: str) -> set[str]:
    """The attributes that the models were scored on, with a score or without."""
    scores = [score for cell in by_model.values() if cell.result for score in cell.result.scores]
    return {score.attribute for score in scores if score.metric == metric and score.attribute}


def _over(cell: Cell, metric: str, common: tuple[str, ...]) -> Cell:
    """The plain mean over the attributes that all models have; no test was made of it."""
    assert cell.result is not None
    values = [
        score.value
        for score in cell.result.scores
        if score.metric == metric and score.attribute in common and score.value is not None
    ]
    value = fmean(values) if cell.value is not None else None
    return Cell(
        value=value, why=cell.why, reliable=cell.reliable, with_value=cell.with_value, attributes=common,
        trust=cell.trust, result=cell.result,
    )  # fmt: skip
