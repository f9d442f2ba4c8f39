"""Last stage: observations to scores, with coverage beside every one of them."""

from __future__ import annotations

import statistics
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from vibe_harness.cards.schema import TaskCard
from vibe_harness.cards.served_names import is_served_as
from vibe_harness.corpora.confounds import Confound, confounds
from vibe_harness.corpora.group_names import check_group_names
from vibe_harness.corpora.sampling import check_dimension
from vibe_harness.errors import HarnessError, UserError
from vibe_harness.kinds.base import kind_of
from vibe_harness.metrics.frame_counts import Speakers, speakers_of
from vibe_harness.metrics.metric import Settings, strata_for
from vibe_harness.metrics.registry import find_metric
from vibe_harness.progress import Progress
from vibe_harness.records import GROUP_PREFIX, Reading, Score, group_in, parts_of
from vibe_harness.scoring.reliability import (
    COVERED,
    SHOWN,
    answers_in_doubt,
    coverage_of,
    filter_warnings,
    missing_by_group,
    missing_by_share,
    missing_values,
)
from vibe_harness.stats.level import TOO_OFTEN
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.engines import batch_checks, engine_starts, passed_hearing_check
from vibe_harness.store.extractions import extractor_served_model
from vibe_harness.store.responses import served_model
from vibe_harness.store.results import (
    FORMAT,
    BatchCheck,
    HearingResult,
    Results,
    TaskResult,
    VariantSummary,
    read_results,
)
from vibe_harness.store.run_folder import RunFolder, RunRecord, TaskRecord
from vibe_harness.store.run_tables import SCORED, column_names, read_clips, read_measured, rows_of

if TYPE_CHECKING:
    import pandas as pd

METRIC_ERRORS = "metric-errors.txt"
"""Of a run folder: the tracebacks of metrics that failed when it was last scored."""


def score_run(
    folder: RunFolder,
    settings: Settings,
    dimensions: Sequence[str],
    progress: Progress,
    *,
    keep_traces: bool = True,
) -> Results:
    """Score the observations of a run folder; needs neither model nor cards nor corpus.

    dimensions: columns to compare by; those of the run where empty. keep_traces: write the tracebacks of metrics that
    failed to metric-errors.txt in the folder. Raises UserError for a dimension that the run lacks.
    """
    traces: list[str] = []
    record = folder.record()
    if not folder.observations.is_file():
        raise UserError(f"{folder.path}: nothing to score yet: finish the run with the command that started it")
    dimensions = dimensions or record.dimensions
    _check_dimensions(folder, record, dimensions)
    steps = [
        (task, variant, dimension) for task in record.tasks for variant in task.variants for dimension in dimensions
    ]
    compared = _confounds(folder, record, dimensions or record.dimensions)
    by_likelihood = record.answer_by == "likelihood"
    results = []
    with progress.stage("scoring", len(steps)) as tick:
        for task, variant, dimension in steps:
            kind = kind_of(task.card)
            found = score_task(  # which alone holds the frame, so that no two are held at once
                kind.frame(folder.observations, task.card, variant, dimension),
                task, variant, dimension, settings_for(record, dimension, settings),
                kind.warnings(folder.responses, task.card, variant) if by_likelihood else [],
                traces,
                [one.sentence for one in compared if one.dimension == dimension and one.sentence],
            )  # fmt: skip
            results.append(found)
            tick(1)
    if keep_traces:
        _write_traces(folder, traces)
    served = served_model(folder.responses)
    return Results(
        format=FORMAT,
        model=record.model.model,
        simulated=record.model.simulated,
        corpus=record.corpus,
        corpus_synthetic=record.corpus_synthetic,
        extractor=record.extractor,
        tau=settings.tau,
        permutations=settings.permutations,
        seed=settings.seed,
        also_test=settings.also_test,
        served_model=served,
        served_as_asked=_as_asked(folder, record, served),
        extractor_served_model=extractor_served_model(folder.extractions),
        modality=record.modality,
        answer_by=record.answer_by,
        hearing_check=_hearing(folder, record),
        hearing=_hearing_result(folder),
        batch_check=_batch_check(folder),
        bad_clips=record.bad_clips,
        long_clips=record.long_clips,
        confounds=compared,
        tasks=results,
        variants=_variant_summaries(results),
    )


def _confounds(folder: RunFolder, record: RunRecord, dimensions: Sequence[str]) -> list[Confound]:
    """What the groups of each dimension differ in beyond the voice, as far as the run knows its clips.

    The strata of the corpus are left out, since scores are standardised over them. A file that several clips name has
    one measurement.
    """
    clips, measured = list(read_clips(folder.clips)), read_measured(folder.clips)
    found = []
    for dimension in dimensions:
        evened = {*record.strata, *strata_for(dimension, record.speaker_strata)}
        if any(group_in(clip.groups, dimension) for clip in clips):
            found += confounds(clips, measured, dimension, evened)
    return found


def _check_dimensions(folder: RunFolder, record: RunRecord, dimensions: Sequence[str]) -> None:
    names = column_names(folder.observations, ["task", "variant", *SCORED])
    columns = [name.removeprefix(GROUP_PREFIX) for name in names if name.startswith(GROUP_PREFIX)]
    for dimension in dimensions:
        check_dimension(dimension, columns, "the run")
        if dimension not in record.dimensions:  # those of the run were checked before it
            held = set(rows_of(folder.clips, [GROUP_PREFIX + name for name in parts_of(dimension)]))
            groups = sorted(tuple(map(str, row)) for row in held if None not in row)
            check_group_names(dimension, groups, record.named_groups)


def recorded_settings(folder: RunFolder) -> Settings:
    """The settings that a run was scored with; the defaults, with the run's seed, where it has no scores yet."""
    if not folder.results.is_file():
        return Settings(seed=folder.record().seed)
    results = read_results(folder.results)
    return Settings(
        tau=results.tau, permutations=results.permutations, seed=results.seed, also_test=tuple(results.also_test)
    )


def settings_for(record: RunRecord, dimension: str, settings: Settings) -> Settings:
    """The settings with the strata that the run's corpus declares for a dimension."""
    parts = parts_of(dimension)
    strata = tuple(column for column in record.strata if column not in parts)
    return replace(settings, speaker_strata=strata_for(dimension, record.speaker_strata), strata=strata)


def _as_asked(folder: RunFolder, record: RunRecord, served: str | None) -> bool | None:
    """Whether a server gave its model the name that is on the card; None where there was no server, or no name."""
    if served is None or not any(start.addresses for start in engine_starts(folder.engines, "model")):
        return None
    return is_served_as(record.model.id, served, record.model.served_as)


def _batch_check(folder: RunFolder) -> BatchCheck | None:
    found = batch_checks(folder.engines)
    return BatchCheck(requests=found[-1].asked, different=len(found[-1].different)) if found else None


def _hearing(folder: RunFolder, record: RunRecord) -> Literal["passed", "left out", "simulated", "no audio"]:
    if record.model.backend == "simulated":
        return "simulated"
    if record.modality == "transcript":
        return "no audio"
    return "left out" if passed_hearing_check(folder.engines) is None else "passed"


def _hearing_result(folder: RunFolder) -> HearingResult | None:
    check = passed_hearing_check(folder.engines)
    if check is None or check.by is None:
        return None
    return HearingResult(by=check.by, clips=check.clips, right=check.right, error_rate=check.error_rate)


def _variant_summaries(results: Sequence[TaskResult]) -> list[VariantSummary]:
    """Mean and spread of the task's nTVD over prompt variants, for tasks asked in more than one."""
    found: dict[tuple[str, str], dict[str, float | None]] = {}
    for result in results:
        for score in result.scores:
            if score.metric == "ntvd" and score.attribute is None:
                found.setdefault((result.task, result.dimension), {})[result.variant] = score.value
    summaries = []
    for (task, dimension), by_variant in found.items():
        values = [value for value in by_variant.values() if value is not None]
        if len(by_variant) > 1:
            whole = len(values) == len(by_variant)
            summaries.append(
                VariantSummary(
                    task=task,
                    dimension=dimension,
                    ntvd=by_variant,
                    mean=statistics.mean(values) if whole else None,
                    standard_deviation=statistics.stdev(values) if whole else None,
                )
            )
    return summaries


def score_task(
    frame: pd.DataFrame,
    task: TaskRecord,
    variant: str,
    dimension: str,
    settings: Settings,
    unreliable: Sequence[str] = (),
    traces: list[str] | None = None,
    notes: Sequence[str] = (),
) -> TaskResult:
    """All metrics of a task card on one frame of observations (see `TaskKind.frame`), with coverage and warnings.

    unreliable: further reasons why the scores are not reliable. traces: is given the tracebacks of metrics that failed.
    notes: what else is to be said of the scores.
    """
    if frame.empty:
        raise UserError(f"task '{task.card.task}': no response has a group in the dimension '{dimension}'")
    kind, card = kind_of(task.card), task.card
    settings = replace(settings, conditions=kind.conditions(card, frame, dimension))
    if kind.free_text:
        speakers = speakers_of(frame)
        _check_crossing(speakers, dimension)
        by_group = [
            *missing_by_group(frame, speakers, settings),
            *answers_in_doubt(frame, speakers, settings),
        ]
    else:  # a speaker may stand in several groups, such as orders of the options
        by_group = missing_by_share(frame)
    scores = compute_metrics(frame, card, settings, traces)
    for name, part in kind.parts(card, frame):
        for score in compute_metrics(part, card, settings, traces):
            scores.append(replace(score, attribute=f"{name}, {score.attribute}" if score.attribute else name))
    without = frame["reading"] != Reading.VALUE
    covered = frame[[column for column in COVERED if column in frame]]
    warnings = [
        *(f"no {score.metric}: {score.undefined}" for score in scores if score.attribute is None and score.undefined),
        *(f"no {metric} is evened out over {column}: {why}" for metric, column, why in _not_evened(scores)),
        *_levels_not_held(scores),
        *missing_values(frame, without),
        *by_group,
        *filter_warnings(scores, settings.tau),
        *unreliable,
    ]
    return TaskResult(
        task=card.task,
        task_digest=task.digest,
        alias_files=task.alias_files(),
        variant=variant,
        dimension=dimension,
        groups={name: coverage_of(covered[frame["group"] == name]) for name in sorted(frame["group"].unique())},
        without_value=float(without.mean()),
        reliable=not warnings,
        warnings=[*warnings, *(_notes(scores) if kind.free_text else []), *notes],
        scores=scores,
    )


def _notes(scores: Sequence[Score]) -> list[str]:
    """What is to be said of scores that are reliable all the same."""
    return [*_undefined_attributes(scores), *_cells_left_out(scores)]


def _cells_left_out(scores: Sequence[Score]) -> list[str]:
    """A line where a stratum is left out of the evened-out distributions, since some group has no answer there."""
    found: dict[str, float] = {}
    for score in scores:
        for cell, share in score.detail.get("cells_left_out", {}).items():
            found[cell] = max(share, found.get(cell, 0.0))
    if not found:
        return []
    named = ", ".join(f"'{cell}' ({share:.0%})" for cell, share in list(found.items())[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return [f"not every group has answers in {named}{more}: they are left out where strata are evened out"]


def compute_metrics(
    frame: pd.DataFrame, card: TaskCard, settings: Settings, traces: list[str] | None = None
) -> list[Score]:
    """The scores of every metric of a card. One that fails has an undefined score, beside those of the others.

    traces: is given the traceback of each that failed. Raises UserError for a metric that is not there, and what a
    metric raises of it.
    """
    metrics = {name: find_metric(name, trust_remote_code=settings.trust_remote_code) for name in card.metrics}
    scores: list[Score] = []
    for name, metric in metrics.items():
        try:
            scores += metric.compute(frame, settings)
        except (HarnessError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - any package may register a metric, and it may raise anything
            if traces is not None:
                traces.append(f"{card.task}, metric {name}:\n{traceback.format_exc()}")
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            scores.append(Score(metric=name, undefined=f"the metric failed ({said})"))
    return scores


def _write_traces(folder: RunFolder, traces: Sequence[str]) -> None:
    """Write the tracebacks of metrics that failed; without any, remove those of an earlier scoring."""
    path = folder.path / METRIC_ERRORS
    if not traces:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as aside:
        aside.write_text("\n".join(traces), encoding="utf-8")


def _check_crossing(speakers: Speakers, dimension: str) -> None:
    """Raise UserError where a group of crossed columns has one speaker: voice and group could not be told apart."""
    sizes = dict(zip(speakers.groups, np.bincount(speakers.codes).tolist(), strict=True))
    small = [group for group, size in sizes.items() if size < 2]
    if small and len(parts_of(dimension)) > 1:
        raise UserError(
            f"--dimension {dimension}: {len(small)} of its {len(sizes)} groups have one speaker only "
            f"({', '.join(small[:5])}{', ...' if len(small) > 5 else ''}), and two are needed: compare by one column"
        )


def _levels_not_held(scores: Sequence[Score]) -> list[str]:
    """A warning for each metric whose test rejects true nulls too often in this design, and where."""
    found: dict[str, list[Score]] = {}
    for score in scores:
        if score.detail.get("level", 0.0) >= TOO_OFTEN:
            found.setdefault(score.metric, []).append(score)
    return [
        f"{metric}: too few speakers for answers so rare, or numbers of answers or habits so unlike: the test of "
        f"{', '.join(score.attribute or 'the task' for score in own)} rejects up to "
        f"{max(score.detail['level'] for score in own):.0%} of true nulls at 0.05"
        for metric, own in found.items()
    ]


def _undefined_attributes(scores: Sequence[Score]) -> list[str]:
    """A line for each metric and reason: "pay, vibe: no ntvd: REASON"."""
    found: dict[tuple[str, str], list[str]] = {}
    for score in scores:
        if score.attribute and score.undefined:
            found.setdefault((score.metric, score.undefined), []).append(score.attribute)
    return [f"{', '.join(names)}: no {metric}: {why}" for (metric, why), names in found.items()]


def _not_evened(scores: Sequence[Score]) -> list[tuple[str, str, str]]:
    """Metric, column, why, for strata that are unbalanced over the groups all the same."""
    return [
        (score.metric, column, why)
        for score in scores
        for column, why in score.detail.get("not_standardised", {}).items()
    ]
