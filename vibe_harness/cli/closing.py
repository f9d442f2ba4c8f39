"""What is said of a run as a whole, below its scores: how it was made, what failed, and where the rest is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from vibe_harness.records import Outcome, Reading
from vibe_harness.report.html import counted
from vibe_harness.store.results import GroupCoverage, Results, TaskResult
from vibe_harness.store.run_folder import RunFolder


def run_lines(results: Results) -> Iterator[str]:
    """How the run was made, where that is out of the ordinary."""
    for summary in results.variants:
        values = ", ".join(f"{n} {'undefined' if v is None else format(v, '.1f')}" for n, v in summary.ntvd.items())
        mean = "undefined" if summary.mean is None else f"{summary.mean:.1f} (sd {summary.standard_deviation:.1f})"
        yield f"{summary.task} by {summary.dimension} over its prompts: mean {mean}: {values}"
    if results.served_as_asked is False:
        yield f"The server answered as '{results.served_model}', which is not the model of the card {results.model}"
    if results.modality != "audio":
        yield f"Modality {results.modality}: the model was given words in place of the clip"
    if results.answer_by != "generate":
        yield "Answered by likelihood: by the option whose letter the model gives the highest probability"
    if check := results.batch_check:
        yield f"Batch invariance: {check.different} of {check.requests} answers differ when asked one by one"
    if results.long_clips:
        counts = ", ".join(f"{count} {done}" for done, count in results.long_clips.items())
        yield f"Clips longer than the model takes: {counts}"
    if results.bad_clips:
        yield f"{counted(len(results.bad_clips), 'clip')} left out, since they cannot be used: see results.json"


def closing_lines(results: Results, folder: Path, *, full: bool) -> Iterator[str]:
    """What failed and whether it is asked again, and where the rest is.

    full: everything was printed already.
    """
    yield from _failed(results)
    if not full:
        yield f"All figures: vibe-harness show {folder}"
    page = RunFolder(folder).page
    yield f"Page: {page}" if page.is_file() else f"Run folder: {folder}"


def _failed(results: Results) -> Iterator[str]:
    """How many requests failed, came empty or were not read, and of which group more."""
    failed = _told(results, "failed", partial(_ended, Outcome.ERROR))
    unread = _told(results, "could not be read by the extractor, whose call failed", _unread)
    for line in (failed, unread):
        if line:
            yield f"{line}: the same command asks again"
    for outcome, words in ((Outcome.EMPTY, "came empty"), (Outcome.BLOCKED, "were blocked by a filter")):
        if line := _told(results, words, partial(_ended, outcome)):
            yield line


def _ended(outcome: Outcome, group: GroupCoverage) -> int:
    return group.outcomes.get(outcome, 0)


def _unread(group: GroupCoverage) -> int:
    """Responses of a group of which the extractor's call failed; it reads all attributes in one."""
    return max((counts.get(Reading.ERROR, 0) for counts in group.readings.values()), default=0)


def _told(results: Results, words: str, count: Callable[[GroupCoverage], int]) -> str | None:
    """How many requests are of that kind, and of which groups more than of others; None if none is.

    Every task is scored once for each dimension: the requests are those of the dimension that covers most of them.
    """
    dimensions = [_by_group(results.tasks, name, count) for name in dict.fromkeys(t.dimension for t in results.tasks)]
    found, requests = max((_totals(groups) for groups in dimensions), key=lambda totals: (totals[0], totals[1]))
    if not found:
        return None
    apart = max(dimensions, key=_spread)
    line = f"{found:,} of {counted(requests, 'request')} {words}"
    if not _spread(apart):
        return line
    high, low = (pick(apart, key=lambda name: _share(apart[name])) for pick in (max, min))
    (many, of), (few, of_few) = apart[high], apart[low]
    return f"{line}, more for {high} ({many:,} of {of:,}) than for {low} ({few:,} of {of_few:,})"


Counts = Mapping[str, tuple[int, int]]
"""Group -> requests of the kind that is counted, requests."""


def _by_group(tasks: Sequence[TaskResult], dimension: str, count: Callable[[GroupCoverage], int]) -> Counts:
    """The counts of each group over all tasks compared by a dimension."""
    counts: dict[str, tuple[int, int]] = {}
    for task in tasks:
        if task.dimension == dimension:
            for name, group in task.groups.items():
                found, requests = counts.get(name, (0, 0))
                counts[name] = found + count(group), requests + group.requests
    return counts


def _totals(groups: Counts) -> tuple[int, int]:
    return sum(found for found, _ in groups.values()), sum(requests for _, requests in groups.values())


def _share(counts: tuple[int, int]) -> float:
    return counts[0] / counts[1] if counts[1] else 0.0


def _spread(groups: Counts) -> float:
    """How far the shares of groups lie apart."""
    shares = [_share(counts) for counts in groups.values()]
    return max(shares) - min(shares)
