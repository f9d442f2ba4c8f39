"""responses.jsonl: how the requests of a run ended, a line each time that one was asked."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from vibe_harness.errors import UserError
from vibe_harness.records import Outcome, RequestKey, Response
from vibe_harness.store.journal import journal_lines, read_journal, whole_lines
from vibe_harness.store.request_ids import RequestSet, RequestTable

READABLE = (Outcome.OK, Outcome.TRUNCATED)
"""Outcomes with a text that an extractor can read."""

_LATER_FIELDS = {"likelihoods": None, "repeat": 0, "turn": 0}  # written only where they say something


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """One line of responses.jsonl, or of transcriptions.jsonl."""

    request: str
    task: str
    variant: str
    clip: str
    outcome: Outcome
    text: str
    finish_reason: str | None = None
    input_tokens: int | None = None
    audio_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    served_model: str | None = None
    error: str | None = None
    time: float | None = None  # when it was stored, in seconds since 1970
    likelihoods: Mapping[str, Annotated[float, Field(lt=1e-3)]] | None = None  # label -> log-probability
    repeat: int = 0
    turn: int = 0

    @classmethod
    def of(cls, key: RequestKey, response: Response, time: float) -> StoredResponse:
        """The line for a response that has just arrived."""
        said = {name: getattr(response, name) for name in Response.__dataclass_fields__}
        return cls(**key._asdict(), **said, time=time)

    @property
    def key(self) -> RequestKey:
        return RequestKey(self.task, self.variant, self.clip, self.repeat, self.turn)

    @property
    def readable(self) -> bool:
        """Whether it holds a text that an extractor can read."""
        return self.outcome in READABLE

    def response(self) -> Response:
        """The response as the back end gave it."""
        return Response(**{name: getattr(self, name) for name in Response.__dataclass_fields__})

    def fields(self) -> dict[str, Any]:
        """The line as JSON can hold it."""
        found = asdict(self)
        return {name: value for name, value in found.items() if value != _LATER_FIELDS.get(name, ...)}


_LINE = TypeAdapter(StoredResponse)


def decode_response(line: bytes) -> StoredResponse:
    """The response that a line holds. Raises ValueError where it holds none: people edit these files."""
    return _LINE.validate_json(line, strict=True)


def read_responses(path: Path) -> Iterator[StoredResponse]:
    """Every response of a file, in order, those that were asked again included. Raises UserError as `read_journal`."""
    return read_journal(path, decode_response)


def count_answers(path: Path) -> int:
    """How many responses of a file are no errors; lines that hold no response are passed over."""
    lines = journal_lines(path, decode_response)
    return sum(1 for line in lines if line.record is not None and line.record.outcome is not Outcome.ERROR)


class FinalResponses:
    """The final response of each planned request: its first answer, or its first error where it has no answer.

    Reads the file once to find them, and holds the place of each on the disk alone: 9 bytes a planned request. What is
    stored later is added by `note`. Iterating reads the file once more, in its order.
    """

    def __init__(self, path: Path, planned: RequestTable) -> None:
        """Raises UserError for a response that names another task, prompt or clip than its request: it was edited."""
        self.path = path
        self.answered = RequestSet(planned)
        """The planned requests that have an outcome other than error: an error is asked again."""
        self.served_model: str | None = None
        """The model that gave the answers, as it named itself."""
        self.readable = 0
        """How many of the final responses hold a text that an extractor can read."""
        self._planned = planned
        self._offsets = array("q", [-1]) * len(planned)
        for offset, stored in whole_lines(path, decode_response):
            self.note(stored, offset)

    def note(self, stored: StoredResponse, offset: int) -> None:
        """Take in the response whose line starts at `offset` bytes."""
        self.served_model = self.served_model or stored.served_model
        key, index = self._planned.get(stored.request), self._planned.index(stored.request)
        if key is None or index is None:
            return
        if key != stored.key:
            raise UserError(
                f"{self.path}: the response to {stored.request} does not name the task, prompt and clip that were "
                f"asked ({key}): the file was edited; remove that line to have its request asked again"
            )
        if stored.outcome is Outcome.ERROR:
            if self._offsets[index] < 0:
                self._offsets[index] = offset
        elif self.answered.add(stored.request):
            self._offsets[index] = offset
            self.readable += stored.readable

    def failed(self, request: str) -> bool:
        """Whether a planned request was asked, and ended in an error each time."""
        index = self._planned.index(request)
        return index is not None and self._offsets[index] >= 0 and request not in self.answered

    def __iter__(self) -> Iterator[StoredResponse]:
        offsets = sorted(offset for offset in self._offsets if offset >= 0)
        if not offsets:
            return
        with self.path.open("rb") as file:
            for offset in offsets:
                if file.tell() != offset:
                    file.seek(offset)
                yield decode_response(file.readline())
