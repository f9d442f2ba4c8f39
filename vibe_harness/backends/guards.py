"""Limits that apply to every back end while it answers (one served model, a budget), and optional checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import jsonschema

from vibe_harness.backends.protocol import Backend
from vibe_harness.backends.remote.reply_limits import costs_untold
from vibe_harness.cards.schema import Prices
from vibe_harness.errors import EngineError
from vibe_harness.records import Generation, Outcome, Request, Response

HOPELESS_AFTER = 50  # requests that failed one after the other, with no answer between them


@dataclass
class Spent:
    """The cost of several models together."""

    cost: float = 0.0


@dataclass
class Budget:
    """Limits of the requests to a model, and of the cost of it and of others that share `spent`."""

    max_requests: int | None = None
    max_cost: float | None = None
    prices: Prices | None = None
    requests: int = 0
    spent: Spent = field(default_factory=Spent)
    unpriced: bool = False  # some answer had no token counts

    def used_up(self) -> str | None:
        """Why no more requests may be sent, and how to go on; None if they may."""
        kept = "What was answered is kept: the same command goes on, with as much again"
        if self.max_requests is not None and self.requests >= self.max_requests:
            return f"the budget of {self.max_requests} requests is used up (--max-requests). {kept}"
        if self.max_cost is not None and self.unpriced:
            return (
                "--max-cost cannot be applied: the server does not report how many tokens an answer took. Answers so "
                "far are kept: run the same command without it, or with --max-requests, to go on"
            )
        if self.max_cost is not None and self.spent.cost >= self.max_cost:
            return f"the budget of {self.max_cost:g} is used up (--max-cost): {self.spent.cost:.4g} is spent. {kept}"
        return None

    def count(self, response: Response) -> None:
        """Add the cost of a response. Without a count of audio tokens, the whole prompt has the higher price."""
        if self.prices is None:
            return
        self.unpriced = self.unpriced or costs_untold(response)
        audio_price = self.prices.input if self.prices.audio is None else self.prices.audio
        prompt, audio = response.input_tokens or 0, response.audio_tokens
        if audio is None or audio > prompt:
            cost = prompt * max(self.prices.input, audio_price)
        else:
            cost = (prompt - audio) * self.prices.input + audio * audio_price
        self.spent.cost += (cost + (response.output_tokens or 0) * self.prices.output) / 1e6


class FailureGuard:
    """Ends a run after many failed calls in a row.

    A request that already failed in an earlier start does not count when it fails again: if only such requests are
    left, their failures say nothing about the server.
    """

    def __init__(self) -> None:
        self._in_a_row = 0

    def count(self, error: str | None, failed_before: bool = False) -> None:
        """Count a call. error: None if it was answered. Raises EngineError after HOPELESS_AFTER errors in a row."""
        if error is None:
            self._in_a_row = 0
        elif not failed_before:
            self._in_a_row += 1
        if self._in_a_row >= HOPELESS_AFTER:
            raise EngineError(f"{HOPELESS_AFTER} requests in a row failed, the last with: {error}")


def enforce_limits(
    backend: Backend, requests: Iterable[Request], budget: Budget, served: str | None = None
) -> Iterator[Response]:
    """Yield the back end's answers while they come from one model and within the budget.

    served: the model that gave the stored answers. Raises EngineError before an answer of another model is yielded, and
    when the budget is used up, after the requests under way are answered; the cost may exceed `max_cost` by those.
    """
    over: str | None = None

    def drawn() -> Iterator[Request]:
        nonlocal over
        for request in requests:
            over = budget.used_up()
            if over:
                return
            budget.requests += 1
            yield request

    for response in backend.generate(drawn()):
        budget.count(response)
        if response.served_model is not None:
            served = served or response.served_model
            if response.served_model != served:
                raise EngineError(
                    f"the server's model changed from '{served}' to '{response.served_model}' in mid-run, and "
                    "answers of two models are never mixed. --fresh starts a new run beside this one"
                )
        yield response
    if over:
        raise EngineError(over)


def constrains(backend: Backend) -> bool:
    """Whether structured output works: send one request that only a constrained model answers with the schema."""
    word = "zq-17"
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string", "enum": [word]}},
        "required": ["word"],
        "additionalProperties": False,
    }
    request = Request("structured", "check", "check", "", "Say hello.", Generation(64), schema=schema)
    [response] = backend.generate([request])
    if response.outcome is Outcome.ERROR:
        raise EngineError(
            f"the check of structured output failed: {response.error}. For a server that cannot constrain an "
            "answer, set structured_output: none in the args of its card"
        )
    try:
        jsonschema.validate(json.loads(response.text), schema)
    except (json.JSONDecodeError, jsonschema.ValidationError):
        return False
    return True


def batch_differences(
    backend: Backend, requests: Iterable[Request], among_others: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Send requests one at a time; returns (request, text in a batch, text alone) for each that differs.

    among_others: request -> the earlier answer, from a batch. Raises EngineError if a call fails.
    """
    differences = []
    for request in requests:
        [alone] = backend.generate([request])
        if alone.outcome is Outcome.ERROR:
            raise EngineError(f"the check of batch invariance failed: {alone.error}")
        if alone.text != among_others[request.id]:
            differences.append((request.id, among_others[request.id], alone.text))
    return differences
