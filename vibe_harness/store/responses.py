"""responses.jsonl: the answers of a run, one final answer a request."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vibe_harness.errors import UserError
from vibe_harness.records import Outcome
from vibe_harness.store.journal import read_journal
from vibe_harness.store.request_ids import Marks, Planned

READABLE = (Outcome.OK, Outcome.TRUNCATED)


def answered(path: Path, planned: Planned) -> Marks:
    """The planned requests that have an outcome other than error: an error is asked again.

    Raises UserError for a record that names another task, prompt or clip than its request: somebody edited it.
    """
    found = Marks(planned)
    for record in read_journal(path):
        place = planned.get(record["request"])
        if place is None:
            continue
        if place != (record["task"], record["variant"], record["clip"]):
            raise UserError(
                f"{path}: the response to {record['request']} does not name the task, prompt and clip that were asked "
                f"({', '.join(place)}): the file was edited; remove that line to have its request asked again"
            )
        if record["outcome"] != Outcome.ERROR:
            found.add(record["request"])
    return found


def final_responses(path: Path, planned: Planned) -> Iterator[dict[str, Any]]:
    """One record for each planned request that was asked: its answer, or its error where it has no answer."""
    settled, seen = answered(path, planned), Marks(planned)
    for record in read_journal(path):
        request = record["request"]
        if (record["outcome"] != Outcome.ERROR or request not in settled) and seen.add(request):
            yield record


def served_model(path: Path) -> str | None:
    """The model that gave the answers stored so far, as it named itself."""
    return next((record["served_model"] for record in read_journal(path) if record["served_model"]), None)
