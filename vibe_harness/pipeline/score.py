"""Last stage: observations to scores, with coverage beside every one of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vibe_harness.cards.loading import Task
from vibe_harness.errors import UserError
from vibe_harness.metrics.registry import GROUP_PREFIX, Settings, find_metric, strata_for
from vibe_harness.metrics.tables import Speakers, attributes_of, items_of, speakers_of, strata_codes
from vibe_harness.pipeline.choosing import check_dimension
from vibe_harness.pipeline.journal import read_journal
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import FORMAT, BatchCheck, GroupCoverage, Results, TaskResult, VariantSummary
from vibe_harness.pipeline.run_folder import BATCH_CHECK, RunFolder, RunRecord, TaskRecord
from vibe_harness.pipeline.tables import column_names, read_column, rows_asked, unreadable
from vibe_harness.records import Outcome, Reading, Score, parts_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

WITHOUT_VALUE_LIMIT = 0.10  # of all readings; past it a score is not reliable
DIFFERENCE_LIMIT = 5.0  # points between groups, with an adjusted p under ALPHA
ALPHA = 0.05
COLUMNS = [
    "request", "clip", "speaker", "sentence_id", "attribute", "outcome", "reading", "raw", "values",
]  # fmt: skip
COVERED = ["request", "clip", "speaker", "group", "attribute", "outcome", "reading", "values"]  # what coverage counts


def metrics_of(tasks: Sequence[Task], *, trust_remote_code: bool = False) -> None:
    """Raise UserError where a card names a metric that does not exist or that its kind cannot feed."""
    for task in tasks:
        for name in task.card.metrics:
            metric = find_metric(name, trust_remote_code=trust_remote_code)
            if task.card.kind not in metric.kinds:
                raise UserError(
                    f"{task.path}: the metric '{name}' is for tasks of kind {' or '.join(metric.kinds)}, and "
                    f"'{task.name}' is {task.card.kind}: take it out of the card's metrics"
                )


def score_run(folder: RunFolder, settings: Settings, dimensions: Sequence[str], progress: Progress) -> Results:
    """Score the observations of a run folder; needs neither model nor cards nor corpus.

    dimensions: columns to compare by; those of the run where empty. Raises UserError for one that the run lacks.
    """
    from vibe_harness.pipeline.choice_score import score_choice, unlikely_letters  # which builds on this module

    record = folder.record()
    if not folder.observations.is_file():
        raise UserError(f"{folder.path}: nothing to score yet: finish the run with the command that started it")
    names = column_names(folder.observations, ["task", "variant", *COLUMNS])
    columns = [name.removeprefix(GROUP_PREFIX) for name in names if name.startswith(GROUP_PREFIX)]
    for dimension in dimensions or record.dimensions:
        check_dimension(dimension, columns, "the run")
    steps = [
        (task, variant, dimension)
        for task in record.tasks
        for variant in task.variants
        for dimension in (dimensions or record.dimensions)
    ]
    unlikely = unlikely_letters(folder.responses) if record.answer_by == "likelihood" else {}
    results = []
    with progress.stage("scoring", len(steps)) as tick:
        for task, variant, dimension in steps:
            if task.card.kind == "choice":
                share = unlikely.get((task.card.task, variant), 0.0)
                results.append(score_choice(folder.observations, task, variant, dimension, settings, share))
                tick(1)
                continue
            results.append(
                score_task(  # which alone holds the frame, so that no two are held at once
                    read_frame(folder.observations, task.card.task, variant, dimension),
                    task, variant, dimension, settings_for(record, dimension, settings),
                )
            )  # fmt: skip
            tick(1)
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
        modality=record.modality,
        answer_by=record.answer_by,
        hearing_check=_hearing(folder, record),
        batch_check=_batch_check(folder),
        bad_clips=record.bad_clips,
        long_clips=record.long_clips,
        tasks=results,
        variants=_variant_summaries(results),
    )


def settings_for(record: RunRecord, dimension: str, settings: Settings) -> Settings:
    """The settings with the strata that the run's corpus declares for a dimension."""
    parts = parts_of(dimension)
    strata = tuple(column for column in record.strata if column not in parts)
    return replace(settings, speaker_strata=strata_for(dimension, record.speaker_strata), strata=strata)


def _batch_check(folder: RunFolder) -> BatchCheck | None:
    found = [entry for entry in read_journal(folder.engines) if entry["role"] == BATCH_CHECK]
    return BatchCheck(requests=found[-1]["asked"], different=len(found[-1]["different"])) if found else None


def _hearing(folder: RunFolder, record: RunRecord) -> Literal["passed", "left out", "simulated", "no audio"]:
    if record.model.simulated:
        return "simulated"
    if record.modality == "transcript":
        return "no audio"
    return "passed" if folder.hearing_passed() else "left out"


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


def read_frame(path: Path, task: str, variant: str, dimension: str) -> pd.DataFrame:
    """Observations of one task and variant with the group of one dimension, sorted by request and attribute.

    dimension: a column, or several joined by colons, whose combinations are then the groups ("female:korean"). Clips
    that have no group in that dimension are left out. Words are categories, lists are lists of words: a request of
    a task with six attributes takes some 1.3 kB.
    """
    import pandas as pd
    import pyarrow as pa

    names = column_names(path, ["task", "variant", *COLUMNS])
    groups = [name for name in names if name.startswith(GROUP_PREFIX)]
    parts = [GROUP_PREFIX + name for name in parts_of(dimension)]
    columns = [*COLUMNS, *(["answer"] if "answer" in names else []), *groups]
    try:
        rows = rows_asked(path, task, variant, parts)
        order = np.lexsort([read_column(path, name, rows).to_pandas().cat.codes for name in ("attribute", "request")])
        found = {name: _series(read_column(path, name, rows).take(order)) for name in columns}  # no two under way
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    frame = pd.DataFrame(found, copy=False)
    del found
    frame["group"] = frame[parts[0]].astype(str)
    for part in parts[1:]:
        frame["group"] += ":" + frame[part].astype(str)
    return frame


def _series(column: pa.Array[Any]) -> pd.Series[Any]:
    """Words become categories, lists of words stay lists."""
    import pandas as pd
    import pyarrow as pa

    words = isinstance(column, pa.DictionaryArray)
    return column.to_pandas() if words else pd.Series(pd.arrays.ArrowExtensionArray(column))


def score_task(frame: pd.DataFrame, task: TaskRecord, variant: str, dimension: str, settings: Settings) -> TaskResult:
    """All metrics of a task card on one frame of observations (see `read_frame`), with coverage and warnings."""
    if frame.empty:
        raise UserError(f"task '{task.card.task}': no response has a group in the dimension '{dimension}'")
    speakers = speakers_of(frame)
    _check_crossing(speakers, dimension)
    without = frame["reading"] != Reading.VALUE
    metrics = [find_metric(name, trust_remote_code=settings.trust_remote_code) for name in task.card.metrics]
    scores = [score for metric in metrics for score in metric.compute(frame, settings)]
    warnings = [
        *(f"no {score.metric}: {score.undefined}" for score in scores if score.attribute is None and score.undefined),
        *(f"no {metric} is evened out over {column}: {why}" for metric, column, why in _not_evened(scores)),
        *missing_values(frame, without),
        *_missing_by_group(frame, speakers, settings),
    ]
    reliable = not warnings
    warnings += _undefined_attributes(scores)
    return TaskResult(
        task=task.card.task,
        task_digest=task.digest,
        alias_files=task.alias_files(),
        variant=variant,
        dimension=dimension,
        groups={name: coverage_of(frame.loc[frame["group"] == name, COVERED]) for name in speakers.groups},
        without_value=float(without.mean()),
        reliable=reliable,
        warnings=warnings,
        scores=scores,
    )


def _check_crossing(speakers: Speakers, dimension: str) -> None:
    """Raise UserError where a group of crossed columns has one speaker: voice and group could not be told apart."""
    sizes = dict(zip(speakers.groups, np.bincount(speakers.codes).tolist(), strict=True))
    small = [group for group, size in sizes.items() if size < 2]
    if small and len(parts_of(dimension)) > 1:
        raise UserError(
            f"--dimension {dimension}: {len(small)} of its {len(sizes)} groups have one speaker only "
            f"({', '.join(small[:5])}{', ...' if len(small) > 5 else ''}), and two are needed: compare by one column"
        )


def coverage_of(frame: pd.DataFrame) -> GroupCoverage:
    """How far the requests of a frame came, one group's."""
    requests = frame.drop_duplicates("request")
    readings, items = {}, {}
    for name in attributes_of(frame):
        rows = frame[frame["attribute"] == name]
        found = rows["reading"].astype(str).value_counts()
        readings[name] = {str(reading): int(found.get(str(reading), 0)) for reading in Reading}
        valued = readings[name][Reading.VALUE]
        items[name] = len(items_of(rows, "values")) / valued if valued else None
    outcomes = requests["outcome"].astype(str).value_counts()
    return GroupCoverage(
        speakers=int(frame["speaker"].nunique()),
        clips=int(frame["clip"].nunique()),
        requests=len(requests),
        outcomes={str(outcome): int(outcomes.get(str(outcome), 0)) for outcome in Outcome},
        readings=readings,
        items_per_response=items,
    )


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


def missing_values(frame: pd.DataFrame, without: pd.Series[bool]) -> list[str]:
    """A warning for each attribute whose share without a value is past the limit."""
    shares = without.groupby(frame["attribute"].astype(str)).mean()
    return [
        f"{name}: {share:.0%} of the responses gave no value (limit {WITHOUT_VALUE_LIMIT:.0%})"
        for name, share in sorted(shares.items())
        if share > WITHOUT_VALUE_LIMIT
    ]


def _missing_by_group(frame: pd.DataFrame, speakers: Speakers, settings: Settings) -> list[str]:
    """A warning for each attribute whose share without a value differs between groups.

    More than 5 points and p under 0.05, adjusted over the attributes by Benjamini and Hochberg.
    """
    from vibe_harness.stats.coverage import coverage_tests

    names = attributes_of(frame)
    tables = []
    for name in names:
        rows = frame[frame["attribute"] == name]
        counts = np.zeros((len(speakers.names), 2), dtype=np.int64)
        np.add.at(counts, (speakers.of(rows), (rows["reading"] == Reading.VALUE).to_numpy().astype(np.int64)), 1)
        tables.append(counts)
    strata = strata_codes(frame, speakers, settings.speaker_strata)
    tests = coverage_tests(tables, speakers.codes, strata, permutations=settings.permutations, seed=settings.seed)
    tested = [(name, test) for name, test in zip(names, tests, strict=True) if test.p_value is not None]
    if not any(test.difference is not None and test.difference > DIFFERENCE_LIMIT for _, test in tested):
        return []
    from scipy.stats import false_discovery_control  # takes half a second to import

    adjusted = false_discovery_control([test.p_value for _, test in tested])
    return [
        f"{name}: the share without a value differs by {test.difference:.0f} points between groups (adjusted p {p:.3g})"
        for (name, test), p in zip(tested, adjusted, strict=True)
        if test.difference is not None and test.difference > DIFFERENCE_LIMIT and p < ALPHA
    ]
