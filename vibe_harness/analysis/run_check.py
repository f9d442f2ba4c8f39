"""Whether a run folder is whole: every planned request has one outcome, nothing was torn, edited or mixed up, and the
scores are those of the answers.

Checksums tell an accident, and making scores anew a slip; neither stops a forger, who writes all of it anew.

Reads the folder alone: no model, no corpus, no cards, and nothing is written, so that it also holds for a copy on
another machine or on a medium that takes no writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vibe_harness.analysis.recompute import differing_observations, first_difference, rescored
from vibe_harness.analysis.tests_used import EARLIER, test_names
from vibe_harness.cards.loading import task_digests
from vibe_harness.errors import UserError
from vibe_harness.progress import Progress
from vibe_harness.records import Outcome
from vibe_harness.store.checksums import changed_files
from vibe_harness.store.engines import decode_engine
from vibe_harness.store.extractions import ExtractionKeys, decode_extraction
from vibe_harness.store.journal import Line, Record, journal_lines
from vibe_harness.store.request_ids import Ids, RequestSet, RequestTable
from vibe_harness.store.responses import decode_response
from vibe_harness.store.results import Results, read_results
from vibe_harness.store.run_folder import RunFolder, RunRecord
from vibe_harness.store.run_tables import read_clips_digest, read_requests

AGAIN = "run the command that started the run again"


@dataclass(frozen=True)
class RunCheck:
    """What a check found. A request whose call failed has an outcome, `error`: it is counted, and is no fault."""

    planned: int
    answered: int  # with an outcome other than error
    errors: int
    faults: list[str]  # a line each

    @property
    def whole(self) -> bool:
        return not self.faults


def check_run(folder: RunFolder, progress: Progress | None = None, *, trust_remote_code: bool = False) -> RunCheck:
    """Check a run folder: what it holds against what was asked, and observations and scores by making them anew.

    That takes as long as scoring. trust_remote_code: run the code of a metric that a card names, as scoring did.

    Raises UserError where it is no run folder, or of a format that this version does not read.
    """
    record = folder.record()
    data = folder.read()
    asked, written = data["asked"], data["record"]
    faults = [*_cards(asked, written), *_clips(folder, asked), *_engines(folder)]
    try:
        planned = RequestTable(read_requests(folder.requests))
    except UserError as error:
        faults.append(str(error))
        return RunCheck(0, 0, 0, faults)
    if planned.digest != record.requests:
        faults.append(f"{folder.requests}: these are not the requests that were planned: {AGAIN}")
    outcomes = _Outcomes(folder, planned)
    faults += outcomes.faults
    faults += _extractions(folder, record, asked, planned)
    faults += _made_anew(_observations(folder, record, asked, planned), bool(faults))
    results = _results(folder, record)
    if isinstance(results, str):
        faults.append(results)
    else:
        faults += _sums(folder)
        faults += _made_anew(_scores(folder, results, progress or Progress(), trust_remote_code), bool(faults))
    return RunCheck(len(planned), len(outcomes.settled), outcomes.errors, faults)


def _made_anew(faults: Iterator[str], known: bool) -> list[str]:
    """The faults that making something anew shows. What it fails on is told where no fault is known yet that explains
    it."""
    try:
        return list(faults)
    except UserError as error:
        return [] if known else [f"not all could be made anew: {error}"]


def _cards(asked: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
    """What run.json holds against what it says was asked, as written: fields that later versions add change nothing."""
    for name, value in asked["model"].items():
        if record["model"].get("model" if name == "name" else name) != value:
            yield f"run.json: the model card is not the one that was asked: it differs in {name}"
    for task in record["tasks"]:
        name, said = task["card"]["task"], asked["tasks"].get(task["card"]["task"], {}).get("digest")
        card = {
            key: value for key, value in task["card"].items() if key != "notes" and (key, value) != ("settings", None)
        }
        whole, question = task_digests(card, task["sources"], task["aliases"])
        if (whole, question) != (task["digest"], said):
            yield f"run.json: the task '{name}' is not the one that was asked: its digest is {question}, not {said}"


def _clips(folder: RunFolder, asked: Mapping[str, Any]) -> Iterator[str]:
    try:
        if read_clips_digest(folder.clips) != asked["clips"]:
            yield f"{folder.clips}: these are not the clips that were asked: {AGAIN}"
    except UserError as error:
        yield str(error)


def _engines(folder: RunFolder) -> Iterator[str]:
    faulty = _Faulty("engines.jsonl")
    lines = [faulty.read(line) for line in journal_lines(folder.engines, decode_engine)]
    yield from faulty.lines()
    if not lines:
        yield f"engines.jsonl: names no engine: {AGAIN}"


class _Faulty:
    """Faults of one journal, those of a kind counted, with the line of the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: dict[str, list[int]] = {}

    def add(self, what: str, line: int) -> None:
        self._found.setdefault(what, []).append(line)

    def lines(self) -> Iterator[str]:
        for what, at in self._found.items():
            more = f", and {len(at) - 1} more such lines" if len(at) > 1 else ""
            yield f"{self._name}:{at[0]}: {what}{more}"

    def read(self, line: Line[Record]) -> Record | None:
        """The line's record, None (and a fault) where it holds none."""
        if line.torn:
            self.add(f"torn, as by a power loss: {AGAIN}, which drops the torn record and makes it anew", line.number)
        elif line.record is None:
            self.add(f"not a record: remove that line, and {AGAIN}", line.number)
        return line.record


class _Outcomes:
    """The outcome of every planned request: the first answer, or an error where there is no answer."""

    def __init__(self, folder: RunFolder, planned: RequestTable) -> None:
        self.settled, failed_calls = RequestSet(planned), RequestSet(planned)
        self.of = np.full(len(planned), -1, dtype=np.int8)  # index of the outcome; -1: none
        faulty = _Faulty("responses.jsonl")
        for line in journal_lines(folder.responses, decode_response):
            stored = faulty.read(line)
            if stored is None:
                continue
            key, index = planned.get(stored.request), planned.index(stored.request)
            if key is None or index is None:
                faulty.add("the answer to a request that was not planned: remove that line", line.number)
            elif key != stored.key:
                faulty.add(f"names another task, prompt or clip than {key}: remove that line", line.number)
            elif stored.outcome is Outcome.ERROR:
                failed_calls.add(stored.request)
                if self.of[index] < 0:
                    self.of[index] = OUTCOMES.index(Outcome.ERROR)
            elif self.settled.add(stored.request):
                self.of[index] = OUTCOMES.index(stored.outcome)
            else:
                faulty.add("a second answer to its request: the first counts, remove that line", line.number)
        self.errors = int((self.of == OUTCOMES.index(Outcome.ERROR)).sum())
        self.faults = list(faulty.lines())
        missing = int((self.of < 0).sum())
        if missing:
            _, key = next(one for one, outcome in zip(planned, self.of, strict=True) if outcome < 0)
            self.faults.append(
                f"responses.jsonl: {missing} of {len(planned)} planned requests have no outcome, the first: "
                f"{key}: {AGAIN}"
            )


OUTCOMES = [str(outcome) for outcome in Outcome]


def _extractions(
    folder: RunFolder, record: RunRecord, asked: Mapping[str, Any], planned: RequestTable
) -> Iterator[str]:
    faulty = _Faulty("extractions.jsonl")

    def read() -> Iterator[str]:
        for line in journal_lines(folder.extractions, decode_extraction):
            stored = faulty.read(line)
            if stored is not None:
                yield stored.key

    made = Ids(read())
    yield from faulty.lines()
    tasks = {task.card.task: task for task in record.tasks}
    keys = ExtractionKeys(asked["extractor"], tasks)
    seen, unread = RequestSet(planned), 0
    for line in journal_lines(folder.responses, decode_response):
        response = line.record
        if response is None or not response.readable or response.task not in tasks:
            continue
        if seen.add(response.request) and keys.of(response) not in made:
            unread += 1
    if unread:
        yield f"extractions.jsonl: {unread} answers have no reading of just that text: {AGAIN}"


def _observations(
    folder: RunFolder, record: RunRecord, asked: Mapping[str, Any], planned: RequestTable
) -> Iterator[str]:
    """The observations against what responses and extractions come to now."""
    wrong = differing_observations(folder, record, asked["extractor"], planned)
    if wrong:
        yield (
            f"{folder.observations}: {wrong} of {len(planned)} requests are not there as their responses and "
            f"extractions have it (edited, or made by another version): {AGAIN}"
        )


def _results(folder: RunFolder, record: RunRecord) -> Results | str:
    """The results, or what is wrong with them."""
    try:
        results = read_results(folder.results)
    except UserError as error:
        return str(error)
    if (results.model, results.corpus) != (record.model.model, record.corpus):
        return f"{folder.results}: of {results.model} over {results.corpus}, which is another run: {AGAIN}"
    return results


def _sums(folder: RunFolder) -> Iterator[str]:
    """The files against the checksums that were taken when they were scored."""
    try:
        changed = changed_files(folder)
    except UserError as error:
        yield str(error)
        return
    if changed:
        yield (
            f"{', '.join(changed)}: changed since the run was scored: copy the folder again, or, where that was meant, "
            f"score it again with `vibe-harness score {folder.path}`"
        )


def _scores(folder: RunFolder, results: Results, progress: Progress, trust_remote_code: bool) -> Iterator[str]:
    """The scores against what the observations come to now."""
    if EARLIER in test_names(results):
        yield (
            f"{folder.results}: its p come from the test of version 0.1.0, which is wrong where speakers have unequal "
            f"numbers of answers: score it again with `vibe-harness score {folder.path}`"
        )
        return
    made = rescored(folder, results, progress, trust_remote_code=trust_remote_code)
    found = first_difference(results, made)
    if found:
        yield (
            f"{folder.results}: not what its observations come to (edited, or scored by another version): {found}: "
            f"score it again with `vibe-harness score {folder.path}`"
        )
