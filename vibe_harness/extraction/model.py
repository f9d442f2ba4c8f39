"""An extractor that is a model: any backend that takes text and follows a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from vibe_harness.backends.protocol import Opener, open_backend
from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError
from vibe_harness.extraction.parse import parse_answer, unknown_words, unparsed
from vibe_harness.extraction.schema import answer_schema
from vibe_harness.records import Extraction, Generation, Outcome, Reading, Request, Response

_UNREADABLE = {
    Outcome.TRUNCATED: "the extractor's answer ran into its token limit",
    Outcome.EMPTY: "the extractor's answer is empty",
    Outcome.REFUSED: "the extractor refused to answer",
    Outcome.BLOCKED: "a filter withheld the extractor's answer",
}


class ModelExtractor:
    """Asks a model to fill in each response's attributes, greedily and constrained to the task's schema."""

    def __init__(self, card: ModelCard, tasks: Sequence[Task], opener: Opener = open_backend) -> None:
        """Open the model's engine, as `opener` does. Raises UserError or EngineError where it does not start."""
        self._card = card
        self._schemas = {task.name: answer_schema(task.card.extraction.attributes) for task in tasks}
        self._backend = opener(card, tasks)

    @staticmethod
    def identity(card: ModelCard) -> Mapping[str, Any]:
        """What can change a reading, as plain data."""
        return {"model": card.identity(), "unknown_words": digest(sorted(unknown_words()))}

    def describe(self) -> Mapping[str, str]:
        about = {"name": self._card.model, "id": self._card.id, "revision": self._card.revision or ""}
        return {**about, **self._backend.describe()}

    def extract(self, responses: Iterable[tuple[Task, Response]]) -> Iterator[Extraction]:
        asked: dict[str, tuple[Task, str]] = {}  # only what is under way: the engine takes requests as it has room

        def requests() -> Iterator[Request]:
            for task, response in responses:
                request = self._request(task, response)
                asked[request.id] = (task, response.request)
                yield request

        for answer in self._backend.generate(requests()):
            if answer.request not in asked:
                raise EngineError(f"the extractor '{self._card.model}' answered {answer.request}, which is not asked")
            task, request = asked.pop(answer.request)
            yield _read(task, request, answer)
        if asked:
            raise EngineError(f"the extractor '{self._card.model}' left {len(asked)} requests without an answer")

    def close(self) -> None:
        self._backend.close()

    def _request(self, task: Task, response: Response) -> Request:
        prompt = task.extraction_prompt(response.text)
        schema = self._schemas[task.name]
        generation = Generation(max_tokens=task.card.extraction.max_tokens, temperature=0.0)
        # The response's own id keeps two equal texts apart: each is one request with one answer.
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


def _read(task: Task, request: str, answer: Response) -> Extraction:
    if answer.outcome is Outcome.OK:
        return parse_answer(task, request, answer.text)
    if answer.outcome is Outcome.ERROR:
        readings = dict.fromkeys(task.card.extraction.attributes, Reading.ERROR)
        return Extraction(request, readings, {}, text=answer.text, error=answer.error or "the extractor's call failed")
    return unparsed(task, request, answer.text, _UNREADABLE[answer.outcome])
