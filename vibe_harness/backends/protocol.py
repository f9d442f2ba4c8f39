"""The interface of back ends, and opening one from a model card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard, Serve
from vibe_harness.cards.validating import what_is_wrong
from vibe_harness.errors import UserError
from vibe_harness.records import Request, Response
from vibe_harness.registry import Registry, did_you_mean


class Backend(Protocol):
    """A running engine. Whoever opens it closes it."""

    def describe(self) -> Mapping[str, str]:
        """The engine's name, version and settings, as needed to repeat a run. No secrets."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Answer requests, each exactly once, in any order.

        Requests are taken as the engine has room, never all at once, so that memory stays flat. A failed request gives
        a Response with outcome `error`; EngineError is raised if going on is of no use.
        """

    def close(self) -> None:
        """Release the engine and its memory."""


class Options(BaseModel):
    """Base class of a back end's options, as strict as a card."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


Checked = TypeVar("Checked", bound=BaseModel)


class Engine(Protocol):
    """What a back end registers: its options and how to open it.

    Optional: `check_ready(card)` raises as opening would if a package, key or server is missing, and starts nothing;
    `addresses(card)` gives those of its servers; `pinned(card)` the card with the digest of its weights;
    `several_clips = True` if a request may hold several clips; `likelihoods = True` if it can answer by likelihood;
    `can_be_started = True` if `serve` of a card may start its server.
    """

    Arguments: type[Options]  # options that can change an answer; part of every response's key
    Connection: type[Options]  # options that cannot: addresses, retries, concurrency

    def __call__(self, card: ModelCard, tasks: Sequence[Task]) -> Backend:
        """Open the engine. tasks: those of the run, to size it. Raises UserError or EngineError."""


BACKENDS: Registry[Engine] = Registry(
    "backend",
    "vibe_harness.backends",
    {
        "simulated": "vibe_harness.backends.simulated:SimulatedEngine",
        "openai": "vibe_harness.backends.remote.openai_server:OpenAIEngine",
        "vllm": "vibe_harness.backends.local.vllm:VLLMEngine",
        "hf": "vibe_harness.backends.local.hf:HFEngine",
        "gemini": "vibe_harness.backends.remote.gemini:GeminiEngine",
    },
)


Opener = Callable[[ModelCard, Sequence[Task]], Backend]


def open_backend(card: ModelCard, tasks: Sequence[Task]) -> Backend:
    """Start the card's engine. The caller closes it. Raises UserError or EngineError."""
    return BACKENDS.get(card.backend)(card, tasks)


def accepting(opener: Opener, served: Sequence[str]) -> Opener:
    """The opener, whose engines also take these names for that of their model in replies."""
    if not served:
        return opener
    return lambda card, tasks: opener(card.model_copy(update={"served_as": [*card.served_as, *served]}), tasks)


def pinned(card: ModelCard) -> ModelCard:
    """The card with the revision that its engine finds for it, where the card names none: the digest of the files in a
    folder. Raises UserError where its engine finds no weights in a folder that it names."""
    pin = getattr(BACKENDS.get(card.backend), "pinned", None)
    return card if pin is None else cast(ModelCard, pin(card))


def addresses_of(card: ModelCard) -> tuple[str, ...]:
    """The addresses of the servers that a card names; none where its engine runs on the machine itself."""
    found = getattr(BACKENDS.get(card.backend), "addresses", None)
    return () if found is None else tuple(found(card))


def check_ready(card: ModelCard) -> None:
    """Raise UserError or EngineError if something is missing that the card's engine needs to start: a package, a key, a
    reachable server. Starts nothing."""
    engine = BACKENDS.get(card.backend)
    check = getattr(engine, "check_ready", None)
    if check is not None:
        check(card)


def checked_options(kind: type[Checked], given: Mapping[str, Any], ahead: str, refusal: str) -> Checked:
    """Validate options as `kind`.

    ahead: prefix of the field's name in messages. refusal: message for a name that `kind` does not have. Raises
    UserError.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        # Report a misspelt name first, since the field that it stands for is then missing too.
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        name = ".".join(str(key) for key in fault["loc"])
        what = what_is_wrong(fault)
        if fault["type"] == "extra_forbidden":
            what = f"{refusal}. {did_you_mean(name, kind.model_fields)}"
        raise UserError(f"{ahead}{name}: {what}") from None


def check_options(card: ModelCard) -> None:
    """Raise UserError if the card sets something that its back end does not support."""
    engine = BACKENDS.get(card.backend)
    refusal = f"the backend '{card.backend}' takes no such argument"
    checked_options(engine.Arguments, card.args, f"model '{card.model}': args.", refusal)
    checked_options(engine.Connection, card.connection, f"model '{card.model}': connection.", refusal)
    if card.prices is not None and card.prices.read_on is None:
        raise UserError(
            f"model '{card.model}': prices: they change: add the day on which they were read, read_on: '2026-12-01'"
        )
    if card.serve is not None and not getattr(engine, "can_be_started", False):
        raise UserError(
            f"model '{card.model}': serve: the backend '{card.backend}' has no server that could be started: use openai"
        )
    if card.long_clips == "split" and not getattr(engine, "several_clips", False):
        raise UserError(
            f"model '{card.model}': long_clips: the backend '{card.backend}' takes one clip in a request, so a "
            "longer one cannot be sent in pieces: write refuse or truncate"
        )


def check_likelihoods(card: ModelCard) -> None:
    """Raise UserError if the card's back end cannot answer by likelihood."""
    if not getattr(BACKENDS.get(card.backend), "likelihoods", False):
        raise UserError(
            f"--answer-by likelihood: the backend '{card.backend}' of the model '{card.model}' does not give the "
            "log-probabilities of options; hf and vllm do"
        )


def with_overrides(card: ModelCard, overrides: Mapping[str, Any]) -> ModelCard:
    """The card with `--model-args` applied.

    A name is looked up among the back end's connection options, its arguments, the card's own fields, and those of its
    `serve`, in this order. Raises UserError for other names.
    """
    engine = BACKENDS.get(card.backend)
    of_server = set(Serve.model_fields) if card.serve else set()
    own = set(ModelCard.model_fields) - {"model", "backend", "args", "connection", "simulated"}
    data = card.model_dump()
    for name, value in overrides.items():
        if name in engine.Connection.model_fields:
            data["connection"][name] = value
        elif name in engine.Arguments.model_fields:
            data["args"][name] = value
        elif name in own:
            data[name] = value
        elif name in of_server and data["serve"]:
            data["serve"][name] = value
        else:
            known = own | of_server | set(engine.Connection.model_fields) | set(engine.Arguments.model_fields)
            raise UserError(
                f"--model-args {name}: the model '{card.model}' has no such argument. {did_you_mean(name, known)}"
            )
    changed = checked_options(ModelCard, data, "--model-args ", "a model has no such field")
    check_options(changed)
    return changed
