"""responses.jsonl: the responses of a run. A request that is repeated has several lines."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from vibe_harness.errors import UserError
from vibe_harness.records import Outcome, RequestKey, Response
from vibe_harness.store.journal import journal_lines, read_journal, whole_lines, without_half_pairs
from vibe_harness.store.request_ids import RequestSet, RequestTable
from vibe_harness.thoughts import split_thought

READABLE = (Outcome.OK, Outcome.TRUNCATED)
"""Outcomes whose text an extractor can read."""

NAMED_WITHIN = 100
"""Answers that are looked through for the name of their model: an engine that gives it does so in nearly each."""

_LATER_FIELDS = {"likelihoods": None, "repeat": 0, "turn": 0, "thought": ""}  # written only where they say something


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
    thought: str = ""  # where the engine gave it apart from the text

    @classmethod
    def of(cls, key: RequestKey, response: Response, time: float) -> StoredResponse:
        """The line of a new response."""
        fields = {name: getattr(response, name) for name in Response.__dataclass_fields__}
        return cls(**key._asdict(), **fields, time=time)

    @property
    def key(self) -> RequestKey:
        return RequestKey(self.task, self.variant, self.clip, self.repeat, self.turn)

    @property
    def readable(self) -> bool:
        """Whether it holds an answer that an extractor can read."""
        answer, thought = split_thought(self.text)
        return self.outcome in READABLE and bool(answer.strip() or not thought)

    def response(self) -> Response:
        """The response with the answer as its text, and what the model thought apart from it; the line keeps both.

        A thought without an answer is an empty response, or a truncated one where it ran into the limit.
        """
        fields = {name: getattr(self, name) for name in Response.__dataclass_fields__}
        answer, thought = split_thought(self.text)
        if thought:
            fields |= {"text": answer.strip(), "thought": self.thought + thought}
        if thought and self.outcome is Outcome.OK and not answer.strip():
            fields["outcome"] = Outcome.EMPTY
        return Response(**fields)

    def fields(self) -> dict[str, Any]:
        """The line as plain data for JSON."""
        return {name: value for name, value in asdict(self).items() if value != _LATER_FIELDS.get(name, ...)}


_LINE = TypeAdapter(StoredResponse)


def decode_response(line: bytes) -> StoredResponse:
    """The response in a line. Raises ValueError for an invalid line, such as an edited one."""
    return _LINE.validate_json(without_half_pairs(line), strict=True)


def read_responses(path: Path) -> Iterator[StoredResponse]:
    """Every response of a file, in order, including repeated requests. Raises UserError as `read_journal` does."""
    return read_journal(path, decode_response)


def served_model(path: Path) -> str | None:
    """The name of the model that answered, as its engine gave it; None where the first answers do not have one."""
    answers = (one for one in read_responses(path) if one.outcome is not Outcome.ERROR)
    return next((one.served_model for one in islice(answers, NAMED_WITHIN) if one.served_model), None)


def count_answers(path: Path) -> int:
    """Number of responses in a file that are not errors. Invalid lines are skipped."""
    lines = journal_lines(path, decode_response)
    return sum(1 for line in lines if line.record is not None and line.record.outcome is not Outcome.ERROR)


class FinalResponses:
    """The final response of each planned request: its first answer, or its first error if it has no answer.

    Reads the file once, and keeps only the offset of each final response: 9 bytes for each planned request. Add later
    responses with `note`. Each iteration reads the file again, in its order.
    """

    def __init__(self, path: Path, planned: RequestTable) -> None:
        """Raises UserError if a response names another task, prompt or clip than its request (an edited file)."""
        self.path = path
        self.answered = RequestSet(planned)
        """The planned requests with an outcome other than error. Errors are repeated."""
        self.served_model: str | None = None
        """Name of the model that answered, as reported by the engine."""
        self.since: float | None = None
        self.until: float | None = None
        """When the first and the last of the answers were stored, in seconds since 1970."""
        self.readable = 0
        """Number of final responses with a text that an extractor can read."""
        self._planned = planned
        self._offsets = array("q", [-1]) * len(planned)
        for offset, stored in whole_lines(path, decode_response):
            self.note(stored, offset)

    def note(self, stored: StoredResponse, offset: int) -> None:
        """Add a response whose line starts at byte `offset`."""
        self.served_model = self.served_model or stored.served_model
        key, index = self._planned.get(stored.request), self._planned.index(stored.request)
        if key is None or index is None:
            return
        if key != stored.key:
            raise UserError(
                f"{self.path}: the response to {stored.request} does not name the task, prompt and clip of the request "
                f"({key}): the file was edited; remove that line, and the request is sent again"
            )
        if stored.outcome is Outcome.ERROR:
            if self._offsets[index] < 0:
                self._offsets[index] = offset
        elif self.answered.add(stored.request):
            self._offsets[index] = offset
            if stored.time is not None:
                self.since = stored.time if self.since is None else min(self.since, stored.time)
                self.until = stored.time if self.until is None else max(self.until, stored.time)
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
