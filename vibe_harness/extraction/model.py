"""Extraction by a model, with any backend that takes text and follows a JSON Schema."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vibe_harness.backends.guards import Budget, constrains, enforce_limits
from vibe_harness.backends.protocol import BACKENDS, Opener, open_backend
from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError
from vibe_harness.extraction.answer_schema import answer_schema
from vibe_harness.extraction.parse import parse_answer, unknown_words, unparsed
from vibe_harness.records import Extraction, Generation, Outcome, Reading, Request, Response
from vibe_harness.thoughts import split_thought

_REPAIR = """

You have answered this before, and your answer cannot be used: {error}.
It was:
{answer}

Answer again with one complete JSON object and nothing else. It follows this JSON Schema:
{schema}
"""
_UNREADABLE = {
    Outcome.TRUNCATED: "the extractor's answer ran into its token limit",
    Outcome.EMPTY: "the extractor's answer is empty",
    Outcome.REFUSED: "the extractor refused to answer",
    Outcome.BLOCKED: "a filter withheld the extractor's answer",
}


class ModelExtractor:
    """Asks a model for the attributes of each response, with greedy decoding constrained to the task's schema.

    If the model cannot be constrained, an answer that cannot be parsed is requested once more, with the error.
    """

    def __init__(
        self,
        card: ModelCard,
        tasks: Sequence[Task],
        opener: Opener = open_backend,
        budget: Budget | None = None,
    ) -> None:
        """Open the model's engine with `opener`.

        budget: the rest of the run's budget; its limit of requests does not apply here. Raises UserError or EngineError
        if the engine does not start, and EngineError if it does not follow the schema although the card says so.
        """
        self._card = card
        self._budget = replace(budget or Budget(), max_requests=None, prices=card.prices)
        self._schemas = {task.name: answer_schema(task.card.extraction.attributes) for task in tasks}
        arguments = BACKENDS.get(card.backend).Arguments.model_validate(card.args)
        self._constrained = getattr(arguments, "structured_output", "json_schema") == "json_schema"
        self._backend = opener(card, tasks)
        try:
            if self._constrained and not constrains(self._backend):
                raise EngineError(
                    f"the extractor '{card.model}' does not follow the JSON Schema of a request; its server may ignore "
                    "schemas: set structured_output: none in the args of its card, and answers that cannot be parsed "
                    "are requested once more"
                )
        except BaseException:
            self._backend.close()
            raise

    @staticmethod
    def identity(card: ModelCard) -> Mapping[str, Any]:
        """Everything that can change a reading, as plain data."""
        words = digest([*sorted(unknown_words()), _REPAIR])
        return {"model": card.identity(), "unknown_words": words}

    def describe(self) -> Mapping[str, str]:
        about = {"name": self._card.model, "id": self._card.id, "revision": self._card.revision or ""}
        return {**about, **self._backend.describe()}

    def extract(self, responses: Iterable[tuple[Task, Response]]) -> Iterator[Extraction]:
        source = iter(responses)
        asked: dict[str, _Asked] = {}  # only requests under way: the engine takes more as it has room
        again: deque[_Asked] = deque()
        more = True

        def requests() -> Iterator[Request]:
            nonlocal more
            while more or again:
                if again:
                    one = again.popleft()
                elif (given := next(source, None)) is not None:
                    one = _Asked(*given)
                else:
                    more = False
                    continue
                request = self._request(one)
                asked[request.id] = one
                yield request

        def answers() -> Iterator[Response]:
            yield from enforce_limits(self._backend, requests(), self._budget)
            if again:  # answers that could not be parsed after the last request was taken
                yield from enforce_limits(self._backend, requests(), self._budget)

        for answer in answers():
            if answer.request not in asked:
                raise EngineError(f"the extractor '{self._card.model}' answered an unknown request, {answer.request}")
            one = asked.pop(answer.request)
            read = replace(_read(one, answer), served_model=answer.served_model)
            if not self._constrained and one.first is None and _is_unread(read):
                again.append(replace(one, first=read))
            else:
                yield one.first if one.first and _is_unread(read) else read
        if asked:
            raise EngineError(f"the extractor '{self._card.model}' left {len(asked)} requests without an answer")

    def close(self) -> None:
        self._backend.close()

    def _request(self, one: _Asked) -> Request:
        task, response, first = one.task, one.response, one.first
        prompt = task.extraction_prompt(response.text)
        schema = self._schemas[task.name]
        if first is not None:
            bad = first.text.replace("<|", "< |")
            prompt += _REPAIR.format(error=first.error, answer=bad, schema=json.dumps(schema, ensure_ascii=False))
        generation = Generation(max_tokens=task.card.extraction.max_tokens, temperature=0.0)
        # With the response's id, equal texts are separate requests.
        parts = [self._card.identity(), prompt, schema, generation.max_tokens, generation.temperature, response.request]
        return Request(
            id=digest(parts),
            task=task.name,
            variant="extraction",
            clip="",
            prompt=prompt,
            generation=generation,
            schema=schema,
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    task: Task
    response: Response
    first: Extraction | None = None  # the first try, which could not be parsed; None in the first try


def _read(one: _Asked, answer: Response) -> Extraction:
    task, request = one.task, one.response.request
    if answer.outcome is Outcome.OK:
        return parse_answer(task, request, split_thought(answer.text)[0])
    if answer.outcome is Outcome.ERROR:
        readings = dict.fromkeys(task.card.extraction.attributes, Reading.ERROR)
        return Extraction(request, readings, {}, text=answer.text, error=answer.error or "the extractor's call failed")
    return unparsed(task, request, answer.text, answer.error or _UNREADABLE[answer.outcome])


def _is_unread(extraction: Extraction) -> bool:
    return Reading.UNPARSED in extraction.readings.values()
