"""The page of one run: one HTML file that needs no network. Private: it holds single answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vibe_harness.errors import UserError
from vibe_harness.metrics.registry import METRICS
from vibe_harness.progress import Progress
from vibe_harness.records import Score
from vibe_harness.report.html import environment
from vibe_harness.report.samples import Samples, pack_samples
from vibe_harness.report.stars import Family, family_of, stars, task_level_scores, tested
from vibe_harness.stats.adjust import ALPHA
from vibe_harness.store.atomic_files import atomic_write, check_replaced
from vibe_harness.store.engines import hearing_answers
from vibe_harness.store.results import NO_SCORES, Results, TaskResult, read_verified_results
from vibe_harness.store.run_folder import RunFolder, RunRecord
from vibe_harness.validation.results import RunValidation, read_run_validation

MAX_VALUES = 12  # values of an attribute that are drawn


@dataclass(frozen=True, slots=True)
class Shift:
    """The distribution of one attribute by group, the values that carry the shift first."""

    attribute: str
    title: str
    groups: tuple[str, ...]
    counts: tuple[str, ...]  # by group, in words: responses that gave a value, and how much of them the filter keeps
    rows: tuple[tuple[str, tuple[float, ...]], ...]  # value, share of each group's kept values (0 to 1)
    scale: float  # the largest share
    hidden: int  # values that are not drawn


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
    return environment().get_template("run.html.j2").render(
        results=results, record=record, heard=heard, samples=samples, family=family,
        summary=list(_summary(results, family)), checked=checked, stale=stale,
        tasks=[(task, list(shifts_of(task)), _varied(task)) for task in results.tasks],
        shifts_told=any(score.metric == "ntvd" for task in results.tasks for score in task.scores),
        meanings=_meanings(results), script="samples.js" if samples else None, version=version("vibe-harness"),
    )  # fmt: skip


def _summary(results: Results, family: Family) -> Iterator[dict[str, Any]]:
    """A line for each task and dimension: its score, and what it comes to in words."""
    adjusted = iter(family.p_values)
    ends = [s.interval[1] for task in results.tasks for s in tested(task) if s.metric == "ntvd" and s.interval]
    for task in results.tasks:
        for score, told in zip(task_level_scores(task), tested(task), strict=True):
            p_value = next(adjusted)
            beside = score.p_value is not None and told.p_value is None
            yield {
                "task": task, "score": score, "adjusted": p_value, "stars": stars(p_value),
                "scale": max([1.0, *ends]) / 100,
                "verdict": "its p stands below" if beside and task.reliable else _verdict(task, score, p_value),
            }  # fmt: skip


def _meanings(results: Results) -> dict[str, str]:
    """Metric, as pages write it -> what it is; of those that come along, but for nTVD, which the page explains."""
    names = dict.fromkeys(score.metric for task in results.tasks for score in tested(task) if score.metric != "ntvd")
    return {name.replace("_", " "): METRICS.get(name).summary for name in names if name in METRICS.names()}


def _verdict(task: TaskResult, score: Score, p_value: float | None) -> str:
    if score.value is None:
        return f"no score: {score.undefined}"
    if not task.reliable:
        return "not reliable: see the warnings"
    if score.p_value is None:
        return "no test of its own"
    if score.smallest_p is not None and score.smallest_p > ALPHA:
        return f"no shift can be found: with so few speakers p is at least {score.smallest_p:.2g}"
    if p_value is None:
        return "not adjusted for several tests"
    return "more than chance gives" if p_value < ALPHA else "no more than chance gives"


def _varied(task: TaskResult) -> dict[str | None, Score]:
    """Attribute -> how varied its answers are; None -> how alike the responses are."""
    return {score.attribute: score for score in task.scores if score.metric == "diversity"}


def shifts_of(task: TaskResult) -> Iterator[Shift]:
    """What is drawn of a task: each attribute that has a score."""
    for score in task.scores:
        distribution = score.detail.get("distribution")
        if score.metric != "ntvd" or score.attribute is None or score.value is None or not distribution:
            continue
        groups = [group for group in task.groups if distribution.get(group)]
        carried = [part["value"] for part in score.detail.get("contributions", [])]
        rest = sorted({value for group in groups for value in distribution[group]} - set(carried))
        values = [*carried, *rest]
        rows = tuple(
            (value, tuple(float(distribution[group].get(value, 0.0)) for group in groups))
            for value in values[:MAX_VALUES]
        )
        answers = {group: task.groups[group].readings[score.attribute]["value"] for group in groups}
        kept = score.detail.get("kept_share_by_group", {})
        name = score.attribute.replace("_", " ")
        yield Shift(
            attribute=score.attribute,
            title=f"{name}: nTVD {score.value:.1f}",
            groups=tuple(groups),
            counts=tuple(_counted(answers[group], kept.get(group)) for group in groups),
            rows=rows,
            scale=max((share for _, shares in rows for share in shares), default=1.0) or 1.0,
            hidden=len(values) - len(rows),
        )


def _counted(answers: int, kept: float | None) -> str:
    """How many answers a group gave, and the share of them (0 to 1) that its bars are drawn from, where it is known."""
    return f"n = {answers:,}" if kept is None else f"n = {answers:,}, {kept:.0%} kept"


def _heard(folder: RunFolder) -> list[tuple[str, str]]:
    """Clip and answer of the hearing check that was passed last."""
    return list((hearing_answers(folder.engines) or {}).items())
