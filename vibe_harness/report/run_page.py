"""The page of one run: one HTML file that needs no network. Private: it holds single answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from vibe_harness.errors import UserError
from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.metrics.registry import METRICS, presentation_of
from vibe_harness.progress import Progress
from vibe_harness.records import Score
from vibe_harness.report.forest import Axis, Marks, axis_for, ends_of, marks_of
from vibe_harness.report.html import environment, score_digits
from vibe_harness.report.samples import Samples, pack_samples
from vibe_harness.report.shifts import Shift, figures_by_group, share_scale, shifts_of
from vibe_harness.report.stars import Family, family_of, task_level_scores, tested
from vibe_harness.report.trust import trust_columns
from vibe_harness.report.verdict import ScoreVerdict, attribute_verdict, dimension_name, is_shift, task_name, verdict
from vibe_harness.store.atomic_files import atomic_write, check_replaced
from vibe_harness.store.engines import hearing_answers
from vibe_harness.store.results import NO_SCORES, Results, TaskResult, read_verified_results
from vibe_harness.store.run_folder import RunFolder, RunRecord
from vibe_harness.validation.results import RunValidation, read_run_validation

TOLD_VALUES = 3  # named values that stand below a verdict
NO_OWN_SCORE = Score(metric="", undefined="no metric of its card scores the task as a whole")


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A score as a row of a forest plot. figures: sentences below the verdict."""

    score: Score
    verdict: ScoreVerdict
    marks: Marks | None
    figures: tuple[str, ...]

    @property
    def shown(self) -> str:
        """What is shown where something is."""
        return "shift shown" if is_shift(self.score) else "effect shown"


@dataclass(frozen=True, slots=True)
class FigureTable:
    """All scores of a task. headings: of the columns that its metrics add. rows: name, score and those columns."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, Score, tuple[str, ...]], ...]
    commonest: Mapping[str | None, float]  # attribute -> share of its commonest value


@dataclass(frozen=True, slots=True)
class TaskPart:
    """What the page tells of one task and dimension."""

    task: TaskResult
    anchor: str
    axis: Axis | None  # on which its scores are drawn
    lead: ScoreRow  # the score that the verdict is of
    attributes: tuple[ScoreRow, ...]  # of the same metric
    shifts: tuple[Shift, ...]
    by_group: Shift | None  # figures of the groups, where the task has some
    table: FigureTable

    @property
    def named(self) -> list[str]:
        """The values that the test names, in words."""
        return [shift.words(row) for shift in self.shifts for row in shift.named]

    @property
    def told(self) -> str:
        """The first of them and how many more there are, where the task's score is a finding."""
        if self.lead.verdict.kind != "shift":
            return ""
        more = len(self.named) - TOLD_VALUES
        return "; ".join(self.named[:TOLD_VALUES]) + (f"; and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class TrustItem:
    """One column of trust over all tasks. lines: of which tasks (empty: of all), the words, whether they are fine."""

    heading: str
    ok: bool | None
    lines: tuple[tuple[str, str, bool | None], ...]


def write_run_page(folder: RunFolder, output: Path, progress: Progress | None = None, *, clips: bool = True) -> None:
    """Write the page of a run.

    clips: play them from where the corpus lies, where its licence lets them be passed on; else their paths are shown.

    Raises UserError where the run has no scores, a file of it is damaged, another process works in its folder, or
    `output` is a file that is no page.
    """
    check_replaced(output, ".html", ".htm")
    record = folder.record()  # before a lock is laid into what is no run folder
    if not folder.results.is_file():
        raise UserError(f"{folder.path}: {NO_SCORES}")
    with folder.locked():
        results = read_verified_results(folder)
        samples = pack_samples(folder, record, output.parent if clips else None, progress or Progress())
        checked = read_run_validation(folder)
        stale = checked.stale(folder) if checked else None
        page = run_page(results, record, _heard(folder), samples, checked, stale)
        with atomic_write(output) as aside:
            aside.write_text(page, encoding="utf-8", errors="replace")


def run_page(
    results: Results, record: RunRecord, heard: Sequence[tuple[str, str]] = (), samples: Samples | None = None,
    checked: RunValidation | None = None, stale: str | None = None,
) -> str:  # fmt: skip
    """The page as HTML. Everything a model wrote is shown as text.

    heard: clip and answer of the hearing check. checked: what people judged; stale: why that is of an earlier state.
    """
    family = family_of([score for task in results.tasks for score in tested(task)])
    parts = list(_parts(results, family))
    drawn = [shift for part in parts for shift in (*part.shifts, *([part.by_group] if part.by_group else []))]
    return environment().get_template("run.html.j2").render(
        results=results, record=record, heard=heard, samples=samples, family=family, parts=parts,
        plots=[(axis, [part for part in parts if part.axis is axis]) for axis in _each(part.axis for part in parts)],
        scale=share_scale(drawn), trust=_trust(results),
        opened=next((part.anchor for part in parts if part.lead.verdict.kind == "shift"), "task-1"),
        checked=checked, stale=stale, shifted=any(is_shift(part.lead.score) for part in parts),
        meanings=_meanings(results), script="samples.js" if samples else None, version=version("vibe-harness"),
    )  # fmt: skip


def _each(axes: Iterable[Axis | None]) -> list[Axis | None]:
    """Each axis once, in order."""
    return list({id(axis): axis for axis in axes}.values())


def _parts(results: Results, family: Family) -> Iterator[TaskPart]:
    """One for each task and dimension."""
    adjusted = iter(family.p_values)
    found = []
    for number, task in enumerate(results.tasks, start=1):
        scores = [(score, next(adjusted)) for score in task_level_scores(task)] or [(NO_OWN_SCORE, None)]
        lead, p_value = next(((score, p) for score, p in scores if p is not None), scores[0])
        found.append((f"task-{number}", task, lead, p_value, [one for one, _ in scores if one is not lead]))
    axes = _axes([score for _, task, lead, *_ in found for score in (lead, *_attributes(task, lead))])
    for anchor, task, lead, p_value, others in found:
        axis = axes.get(_scale(lead))
        yield TaskPart(
            task=task,
            anchor=anchor,
            axis=axis,
            lead=_row(lead, verdict(task, lead, p_value), axis, p_value, others),
            attributes=tuple(_row(one, attribute_verdict(task, one), axis) for one in _attributes(task, lead)),
            shifts=tuple(shifts_of(task)),
            by_group=figures_by_group(task),
            table=_table(task),
        )


def _attributes(task: TaskResult, lead: Score) -> list[Score]:
    """The scores of attributes that make up a shift."""
    return [one for one in task.scores if one.attribute is not None and one.metric == lead.metric and is_shift(lead)]


Scale = tuple[str, tuple[float, float] | None]


def _scale(score: Score) -> Scale:
    """Scores of one scale are drawn on one axis."""
    shown = presentation_of(score.metric)
    return shown.title if shown.role == "shift" else shown.unit, shown.scale


def _axes(scores: Sequence[Score]) -> dict[Scale, Axis]:
    """An axis for each scale that scores have; none for figures that may be of any size."""
    axes = {}
    for scale in dict.fromkeys(map(_scale, scores)):
        if scale[1] is not None:
            own = [score for score in scores if _scale(score) == scale]
            neutral = [presentation_of(score.metric).neutral for score in own]
            axes[scale] = axis_for([*ends_of(own), *neutral], *scale[1])
    return axes


def _row(
    score: Score, found: ScoreVerdict, axis: Axis | None, p_value: float | None = None, others: Sequence[Score] = ()
) -> ScoreRow:
    """A row with what its verdict does not tell yet. others: further scores, told beside it."""
    told = []
    if is_shift(score) and score.value is not None and found.kind != "not reliable":
        told.append(f"raw {score.value:.1f}")
        if score.null_p95 is not None:
            told.append(f"chance reaches {score.null_p95:.1f}")
        if p_value is not None and found.kind != "shift":
            told.append(f"adjusted p {p_value_words(p_value)}")
    reason = score.detail.get("no_interval") if score.interval is None else None
    sentences = [
        ", ".join(told),
        *found.notes,
        f"No interval: {reason}" if reason else "",
        ", ".join(_told(one) for one in others),
    ]
    marks = None if axis is None else marks_of(score, axis)
    return ScoreRow(score, found, marks, tuple(filter(None, sentences)))


def _told(score: Score) -> str:
    """A score of its own in words, with its interval."""
    shown = presentation_of(score.metric)
    if score.value is None:
        return f"{shown.title} undefined: {score.undefined}"
    digits, unit = score_digits(score), f" {shown.unit}" if shown.unit else ""
    ends = "" if score.interval is None else f" ({score.interval[0]:.{digits}f} to {score.interval[1]:.{digits}f})"
    return f"{shown.title} {score.value:.{digits}f}{unit}{ends}"


def _table(task: TaskResult) -> FigureTable:
    """All scores of a task as its metrics present them; the variety of an attribute's answers is a column alone."""
    shown = [
        score for score in task.scores if score.attribute is None or presentation_of(score.metric).role != "beside"
    ]
    columns = {column.heading: column for score in shown for column in presentation_of(score.metric).columns}
    return FigureTable(
        tuple(columns),
        tuple((_name(one), one, tuple(column.text(one) for column in columns.values())) for one in shown),
        {
            score.attribute: score.detail["commonest_share"]
            for score in task.scores
            if score.detail.get("commonest_share") is not None
        },
    )


def _name(score: Score) -> str:
    """A score's name in the table of its task."""
    title = presentation_of(score.metric).title
    if score.attribute is None:
        return title
    attribute = score.attribute.replace("_", " ")
    return attribute if is_shift(score) else f"{title}: {attribute}"


def _trust(results: Results) -> list[TrustItem]:
    """The columns of trust, each told once for all tasks of which it says the same."""
    rows = [trust_columns(results, task) for task in results.tasks]
    cells = [(task_name(task), dimension_name(task)) for task in results.tasks]
    items = []
    for number, column in enumerate(rows[0]):
        found: dict[tuple[str, bool | None], list[tuple[str, str]]] = {}
        for cell, columns in zip(cells, rows, strict=True):
            found.setdefault((columns[number].words, columns[number].ok), []).append(cell)
        verdicts = {ok for _, ok in found}
        items.append(
            TrustItem(
                column.heading,
                False if False in verdicts else None if None in verdicts else True,
                tuple((_cells_in_words(own, cells), words, ok) for (words, ok), own in found.items()),
            )
        )
    return items


def _cells_in_words(own: Sequence[tuple[str, str]], cells: Sequence[tuple[str, str]]) -> str:
    """Which tasks and dimensions: "story, advisory", "by gender", "story by gender"; empty for all there are."""
    tasks, dimensions = dict.fromkeys(task for task, _ in own), dict.fromkeys(name for _, name in own)
    if set(own) != {cell for cell in cells if cell[0] in tasks and cell[1] in dimensions}:
        return ", ".join(f"{task} by {name}" for task, name in own)
    some = ", ".join(tasks) if len(tasks) < len({task for task, _ in cells}) else ""
    by = f"by {', '.join(dimensions)}" if len(dimensions) < len({name for _, name in cells}) else ""
    return f"{some} {by}".strip()


def _meanings(results: Results) -> dict[str, str]:
    """Metric, as pages write it -> what it is."""
    names = dict.fromkeys(score.metric for task in results.tasks for score in tested(task))
    return {presentation_of(name).title: METRICS.get(name).summary for name in names if name in METRICS.names()}


def _heard(folder: RunFolder) -> list[tuple[str, str]]:
    """Clip and answer of the hearing check that was passed last."""
    return list((hearing_answers(folder.engines) or {}).items())
