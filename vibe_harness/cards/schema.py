"""Schemas of task and model cards. Unknown fields are errors."""

from __future__ import annotations

import json
import shlex
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from vibe_harness.cards.orders import LETTERS, Order, find_orders
from vibe_harness.cards.served_names import check_pattern
from vibe_harness.cards.spelling import fold
from vibe_harness.records import LongClips

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
MetricName = Annotated[str, StringConstraints(pattern=r"^(evaluate:\S.*|[A-Za-z0-9][A-Za-z0-9._-]*)$", max_length=250)]
CHOICE = "choice"  # the attribute that a choice task reads
REFUSED = "refused"  # what every extractor reports in addition to the attributes
FilePath = Annotated[str, StringConstraints(min_length=1, max_length=250)]


def _open_or_listed(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:  # pydantic would report an error for each member of the union
        raise ValueError("write 'open', or a list of strings (yes, no and numbers in quotes)") from None


Values = Annotated[Literal["open"] | list[str], WrapValidator(_open_or_listed)]


Lax = Strict(False)  # for types that YAML and JSON lack (tuples, paths); the items of a tuple stay strict


def _is_a_day(value: str) -> str:
    date.fromisoformat(value)  # raises ValueError, with the reason
    return value


Day = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_is_a_day)]


class Card(BaseModel):
    """Base class of all cards: immutable, without unknown fields, without type conversion ("2" is not a number)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class Attribute(Card):
    """One attribute that is read from every response of a task."""

    values: Values = Field(description="'open', or the closed list of values")
    up_to: int = Field(1, ge=1, le=20, description="how many values one response may give")
    aliases: FilePath | None = Field(None, description="YAML file of canonical value -> other spellings")
    label: str | None = Field(None, description="the line label that the rules extractor looks for")
    description: str | None = Field(None, description="explanation of the attribute for the extractor")

    @model_validator(mode="after")
    def _closed_values_differ(self) -> Attribute:
        if isinstance(self.values, list):
            folded = [fold(value) for value in self.values]
            if len(folded) < 2 or len(set(folded)) < len(folded) or not all(folded):
                raise ValueError(
                    "a closed list needs two values or more, which differ in more than case, punctuation and number"
                )
        return self


class Sampling(Card):
    """The generation settings of a task: the same for every model."""

    max_tokens: int = Field(512, ge=1)
    temperature: float = Field(0.0, ge=0, le=2)


class ExtractionPart(Card):
    """How attributes are read from the responses of a task."""

    template: FilePath = Field(description="Jinja template of the extractor's prompt")
    attributes: dict[Identifier, Attribute] = Field(
        {}, description="what is read; left out in a choice task, which reads the letter"
    )
    max_tokens: int = Field(512, ge=1, description="limit of the extractor's answer")

    @field_validator("attributes")
    @classmethod
    def _names_are_free(cls, attributes: dict[str, Attribute]) -> dict[str, Attribute]:
        if REFUSED in attributes:
            raise ValueError(f"'{REFUSED}' is reserved: the extractor reports it for every answer: use another name")
        return attributes


class OptionColumns(Card):
    """The manifest columns of one option."""

    text: FilePath = Field(description="column with its text")
    audio: FilePath | None = Field(None, description="column with its audio file, where options are spoken")


class AnswerKey(Card):
    """The manifest column with the letter of the correct option, and how to interpret the letter."""

    column: Identifier
    of: Literal["row", "original"] = Field(
        "row", description="whether the letter refers to the options in the row's order or in the original order"
    )


class Speech(Card):
    """How the question and the options are joined into one recording."""

    pause_s: float = Field(0.5, ge=0, le=5, description="silence between two pieces")
    question_label: FilePath | None = Field(None, description="audio file, below templates/, before the question")
    letters: list[FilePath] = Field(description="audio files, below templates/, that say A, B, ...")


class ChoicePart(Card):
    """The options of a choice task, and the orders in which they are offered."""

    item: Identifier = Field("item", description="column with the id of the question, which several voices ask")
    options: dict[Name, OptionColumns] = Field(min_length=2, max_length=len(LETTERS))
    orders: Literal["all"] | list[str] = Field(
        "all", description="all permutations; or original, reversed, token_backward, order_backward, or digits: '213'"
    )
    order_column: Identifier | None = Field(
        None, description="column with the order of a row's options: original or reversed"
    )
    key: AnswerKey | None = Field(None, description="for tasks with a correct answer")
    split_by: Identifier | None = Field(None, description="column of items: each of its values gets its own scores too")
    speech: Speech | None = Field(None, description="for spoken options; by default options are text in the prompt")

    @model_validator(mode="after")
    def _holds_together(self) -> ChoicePart:
        find_orders(self.orders, len(self.options))
        if self.speech and len(self.speech.letters) != len(self.options):
            raise ValueError(f"speech.letters: name one audio file for each of the {len(self.options)} options")
        if self.speech and not all(option.audio for option in self.options.values()):
            raise ValueError("options are spoken: give each option the column of its audio file")
        return self

    @property
    def letters(self) -> list[str]:
        return list(LETTERS[: len(self.options)])

    @property
    def all_orders(self) -> tuple[Order, ...]:
        return find_orders(self.orders, len(self.options))


class TaskCard(Card):
    """A task: its prompts, the attributes that are read from the answers, and its metrics."""

    task: Name = Field(description="name of the task, and of its file")
    version: int = Field(ge=1, description="increase it with every change that can change answers")
    kind: Name = Field(
        "open_ended", description="open_ended: free text; choice: the letter of an option; or one from another package"
    )
    description: str = Field(min_length=1, description="one line, for listings")
    prompts: dict[Identifier, FilePath] = Field(
        min_length=1, description="prompt variant -> Jinja template; the first is the default"
    )
    generation: Sampling = Field(Sampling(), description="the same for every model")
    choice: ChoicePart | None = Field(None, description="for tasks of kind choice: the options")
    extraction: ExtractionPart = Field(description="what is read from the answers, and how")
    dimensions: dict[Identifier, list[Name]] = Field(min_length=1, description="dimension -> the corpora to use for it")
    metrics: list[MetricName] = Field(
        ["ntvd", "refusal_ntvd", "diversity"],
        min_length=1,
        description="names; 'evaluate:NAME' or 'evaluate:PATH' for one of Hugging Face evaluate",
    )
    settings: dict[str, Any] | None = Field(None, description="settings of a kind from another package")
    notes: str | None = Field(None, description="for readers of the card; not part of any digest")

    @model_validator(mode="before")
    @classmethod
    def _reads_the_letter(cls, data: Any) -> Any:
        """Give a choice task its one attribute, the letter, so that answers are read as in any other task."""
        try:
            if data["kind"] != "choice" or data["extraction"].get("attributes"):
                return data
            letters = list(LETTERS[: len(data["choice"]["options"])])
        except (TypeError, KeyError, AttributeError):
            return data  # malformed: the checks of the fields report it
        what = "the letter of the one option that the text settles on"
        attributes = {CHOICE: {"values": letters, "description": what}}
        return {**data, "extraction": {**data["extraction"], "attributes": attributes}}

    @model_validator(mode="after")
    def _fits_its_kind(self) -> TaskCard:
        if self.choice is not None and self.kind != "choice":
            raise ValueError("'choice' is only allowed with 'kind: choice'")
        return self


class Layout(Card):
    """The text around clip and prompt, for engines that take one string."""

    before: str = Field("", description="text before the clip, with system turn and placeholder")
    after: str = Field("", description="text between the clip and the task's prompt")
    end: str = Field("", description="text after the task's prompt, up to the model's turn")
    system: str | None = Field(None, description="system message, for engines that take messages")


class Prices(Card):
    """Prices of a model per million tokens, as they were on a day: prices change."""

    input: float = Field(ge=0, description="prompt tokens")
    output: float = Field(ge=0, description="output tokens, reasoning included")
    audio: float | None = Field(None, ge=0, description="audio tokens, if their price differs from prompt tokens")
    currency: str = Field("USD", min_length=1, max_length=10)
    read_on: Day | None = Field(None, description="day on which they were read, as '2026-12-01'; a run needs it")
    source: str | None = Field(None, description="where they were read")


class Serve(Card):
    """How the model's server is started. `--allow-serve` allows it, since it runs a command of the card's."""

    command: str = Field(
        min_length=1, description="the command, split into words as a shell does; {port} and {id} are replaced"
    )
    python: FilePath | None = Field(
        None, description="Python interpreter of the environment to run it in; that of vibe-harness by default"
    )
    healthy: str = Field("/health", pattern="^/", description="path that answers with status 200 once it is ready")
    start_timeout_s: float = Field(1800, gt=0, description="seconds that it may take to become ready")

    @field_validator("command")
    @classmethod
    def _has_words(cls, command: str) -> str:
        if not shlex.split(command):  # raises ValueError, with the reason, where a quote is left open
            raise ValueError("a command is needed")
        return command


class HearingQuestion(Card):
    """A question for the hearing check of a model that cannot transcribe: which of some words is spoken."""

    prompt: str = Field(min_length=1, description="the question, about the words that are spoken and nothing else")
    answers: list[str] = Field(min_length=2, description="the answers that it allows")


class ModelCard(Card):
    """A model: the engine that runs it, its id, and the input that it accepts."""

    model: Name = Field(description="name of the model, and of its file")
    backend: Name = Field(description="the engine that runs it")
    id: str = Field(min_length=1, description="id on the hub, or name on the server")
    revision: str | None = Field(None, description="commit or version of the weights")
    served_as: list[str] = Field(
        [], description="further names by which servers may give this model in replies; * stands for any letters"
    )
    description: str = Field("", description="one line, for listings")
    audio: bool = Field(True, description="accepts audio; false for a text model, such as an extractor")
    layout: Layout = Field(Layout(), description="text around the clip")
    sample_rate: int = Field(16_000, ge=4_000, le=192_000, description="Hz; clips are resampled to it")
    max_seconds: float | None = Field(None, ge=0.1, description="longest clip that the model accepts")
    long_clips: LongClips = Field(
        "refuse", description="what to do with longer clips; split: send the pieces in one request"
    )
    args: dict[str, Any] = Field({}, description="backend arguments that can change an answer")
    connection: dict[str, Any] = Field({}, description="backend arguments that cannot: address, retries, ...")
    serve: Serve | None = Field(None, description="starts the model's server, at the port of connection.base_url")
    audio_tokens_per_second: float | None = Field(None, gt=0, description="used for estimates only")
    prices: Prices | None = Field(None, description="for --max-cost and for estimates")
    extractor: Name | None = Field(None, description="extractor for this model's responses, instead of the default")
    hearing_check: HearingQuestion | None = Field(
        None, description="question of the hearing check, instead of asking for a transcription"
    )
    available_until: Day | None = Field(
        None, description="hosted models: last day, as '2026-12-01', until which the provider serves the model"
    )
    replaced_by: str | None = Field(None, description="hosted models: what the provider names in the model's place")
    corpus: Name | None = Field(None, description="default corpus of a run")
    excludes: dict[Identifier, list[str]] = Field(
        {}, description="column -> groups that the model does not support: language: [ko]; a run over them is an error"
    )
    simulated: bool = Field(False, description="not a real model: left out of leaderboards by default")
    parameters: float | None = Field(None, gt=0, description="size in billions, as the model's makers state it")
    open_weights: bool | None = Field(None, description="the weights can be downloaded")
    licence: str | None = Field(None, description="of the weights, or terms of the service")
    notes: str | None = Field(None, description="for readers of the card; not part of any digest")

    @field_validator("served_as", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("served_as")
    @classmethod
    def _matches_not_all(cls, value: list[str]) -> list[str]:
        for pattern in value:
            check_pattern(pattern)
        return value

    @field_validator("args", "connection")
    @classmethod
    def _is_plain(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, item in value.items():
            try:
                json.dumps(item, allow_nan=False)
            except (TypeError, ValueError):  # a date, NaN or infinity, which JSON does not have
                what = "write strings, finite numbers, lists and mappings of them; a date in quotes"
                raise ValueError(f"'{name}': {what}") from None
        return value

    def identity(self) -> dict[str, Any]:
        """The fields that can change an answer. They are part of every request id."""
        return self.model_dump(
            mode="json",
            include={
                "backend", "id", "revision", "layout", "sample_rate", "max_seconds", "long_clips", "args", "simulated",
            },
        )  # fmt: skip


def card_schema(card: type[Card]) -> dict[str, Any]:
    """JSON Schema of a card file: the card's fields, and `include`. Included cards may supply required fields."""
    schema = card.model_json_schema()
    name = {"type": "string", "description": "file of the same folder to include"}
    several = {"anyOf": [name, {"type": "array", "items": name}]}
    schema["properties"]["include"] = {**several, "description": "files of the same folder to include"}
    required = schema.pop("required", [])
    schema["anyOf"] = [{"required": required}, {"required": ["include"]}]
    return schema
