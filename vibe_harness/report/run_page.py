"""The page of one run: one HTML file that needs no network. Private: it holds single answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from vibe_harness.errors import UserError
from vibe_harness.metrics.registry import METRICS
from vibe_harness.progress import Progress
from vibe_harness.records import Score
from vibe_harness.report.forest import Axis, Marks, axis_for, ends_of, marks_of
from vibe_harness.report.html import environment, score_digits
from vibe_harness.report.samples import Samples, pack_samples
from vibe_harness.report.shifts import Shift, share_scale, shifts_of
from vibe_harness.report.stars import Family, family_of, task_level_scores, tested
from vibe_harness.report.trust import trust_columns
from vibe_harness.report.verdict import (
    SHIFT_METRICS,
    ScoreVerdict,
    attribute_verdict,
    dimension_name,
    p_value_words,
    task_name,
    verdict,
)
from vibe_harness.store.atomic_files import atomic_write, check_replaced
from vibe_harness.store.engines import hearing_answers
from vibe_harness.store.results import NO_SCORES, Results, TaskResult, read_verified_results
from vibe_harness.store.run_folder import RunFolder, RunRecord
from vibe_harness.validation.results import RunValidation, read_run_validation

TOLD_VALUES = 3  # named values that stand below a verdict


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A score as a row of a forest plot. figures: sentences below the verdict."""

    score: Score
    verdict: ScoreVerdict
    marks: Marks | None
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskPart:
    """What the page tells of one task and dimension."""

    task: TaskResult
    anchor: str
    lead: ScoreRow  # the score that the verdict is of
    attributes: tuple[ScoreRow, ...]  # of the same metric
    shifts: tuple[Shift, ...]

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
    shown = [score for task in results.tasks for score in task.scores if score.metric in SHIFT_METRICS]
    axis = axis_for(ends_of(shown)) if shown else None
    parts = list(_parts(results, family, axis))
    return environment().get_template("run.html.j2").render(
        results=results, record=record, heard=heard, samples=samples, family=family, parts=parts, axis=axis,
        scale=share_scale([shift for part in parts for shift in part.shifts]), trust=_trust(results),
        opened=next((part.anchor for part in parts if part.lead.verdict.kind == "shift"), "task-1"),
        checked=checked, stale=stale, shifts_told=bool(shown), varied=_varied,
        meanings=_meanings(results), script="samples.js" if samples else None, version=version("vibe-harness"),
    )  # fmt: skip


def _parts(results: Results, family: Family, axis: Axis | None) -> Iterator[TaskPart]:
    """One for each task and dimension that has a score of its own."""
    adjusted = iter(family.p_values)
    for number, task in enumerate(results.tasks, start=1):
        scores = [(score, next(adjusted)) for score in task_level_scores(task)]
        if not scores:
            continue
        lead, p_value = next(((score, p) for score, p in scores if p is not None), scores[0])
        yield TaskPart(
            task=task,
            anchor=f"task-{number}",
            lead=_row(lead, verdict(task, lead, p_value), axis, p_value, [one for one, _ in scores if one is not lead]),
            attributes=tuple(
                _row(score, attribute_verdict(task, score), axis)
                for score in task.scores
                if score.attribute is not None and score.metric == lead.metric and score.metric in SHIFT_METRICS
            ),
            shifts=tuple(shifts_of(task)),
        )


def _row(
    score: Score, found: ScoreVerdict, axis: Axis | None, p_value: float | None = None, others: Sequence[Score] = ()
) -> ScoreRow:
    """A row with what its verdict does not tell yet. others: further scores, told beside it."""
    marks = marks_of(score, axis) if axis is not None and score.metric in SHIFT_METRICS else None
    told = []
    if marks is not None and score.value is not None and found.kind != "not reliable":
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
    return ScoreRow(score, found, marks, tuple(filter(None, sentences)))


def _told(score: Score) -> str:
    """A score of its own in words, with its interval."""
    name = score.metric.replace("_", " ")
    if score.value is None:
        return f"{name} undefined: {score.undefined}"
    digits = score_digits(score)
    ends = "" if score.interval is None else f" ({score.interval[0]:.{digits}f} to {score.interval[1]:.{digits}f})"
    return f"{name} {score.value:.{digits}f}{ends}"


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
    """Metric, as pages write it -> what it is; of those that come along, but for nTVD, which the page explains."""
    names = dict.fromkeys(score.metric for task in results.tasks for score in tested(task) if score.metric != "ntvd")
    return {name.replace("_", " "): METRICS.get(name).summary for name in names if name in METRICS.names()}


def _varied(task: TaskResult) -> dict[str | None, Score]:
    """Attribute -> how varied its answers are; None -> how alike the responses are."""
    return {score.attribute: score for score in task.scores if score.metric == "diversity"}


def _heard(folder: RunFolder) -> list[tuple[str, str]]:
    """Clip and answer of the hearing check that was passed last."""
    return list((hearing_answers(folder.engines) or {}).items())
