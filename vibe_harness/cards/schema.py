"""What the cards may say: tasks and models. Unknown keys are refused."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
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
from vibe_harness.cards.spelling import fold

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
MetricName = Annotated[str, StringConstraints(pattern=r"^(evaluate:\S.*|[A-Za-z0-9][A-Za-z0-9._-]*)$", max_length=250)]
CHOICE = "choice"  # the attribute that a choice task reads
REFUSED = "refused"  # what an extractor says of an answer besides its attributes
FilePath = Annotated[str, StringConstraints(min_length=1, max_length=250)]


def _open_or_listed(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:  # which would tell of both halves of the union, one of them beside the point
        raise ValueError("write 'open', or a list of words (yes, no and numbers in quotes)") from None


Values = Annotated[Literal["open"] | list[str], WrapValidator(_open_or_listed)]


Lax = Strict(False)  # for what YAML and JSON do not have, tuples and paths; the items of a tuple stay strict


class Card(BaseModel):
    """The base of every card: frozen, and strict about its keys and kinds: true is no number, and "2" is a word."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class Attribute(Card):
    """One thing that is read in every response of a task."""

    values: Values = Field(description="'open', or the closed list of values")
    up_to: int = Field(1, ge=1, le=20, description="how many values one response may give")
    aliases: FilePath | None = Field(None, description="YAML file of canonical value -> other spellings")
    label: str | None = Field(None, description="the line label that the rules extractor looks for")
    description: str | None = Field(None, description="what the extractor is told about the attribute")

    @model_validator(mode="after")
    def _closed_values_differ(self) -> Attribute:
        if isinstance(self.values, list):
            folded = [fold(value) for value in self.values]
            if len(folded) < 2 or len(set(folded)) < len(folded) or not all(folded):
                raise ValueError(
                    "a closed list needs at least two values that differ in more than case, punctuation and number"
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
            raise ValueError(f"'{REFUSED}' is what the extractor says of every answer besides: choose another name")
        return attributes


class OptionColumns(Card):
    """Where the manifest has one option of an item."""

    text: FilePath = Field(description="column with its words")
    audio: FilePath | None = Field(None, description="column with its audio file, where options are spoken")


class AnswerKey(Card):
    """Where the manifest has the letter of the right option, and which option that letter means."""

    column: Identifier
    of: Literal["row", "original"] = Field(
        "row", description="the letter counts the options as the row has them, or as the row in original order has them"
    )


class Speech(Card):
    """How question and options are joined into one recording."""

    pause_s: float = Field(0.5, ge=0, le=5, description="silence between two pieces")
    question_label: FilePath | None = Field(None, description="audio file, below templates/, ahead of the question")
    letters: list[FilePath] = Field(description="audio files, below templates/, that say A, B, ...")


class ChoicePart(Card):
    """What a choice task offers, and in which orders."""

    item: Identifier = Field("item", description="column that names the question, asked by several voices")
    options: dict[Name, OptionColumns] = Field(min_length=2, max_length=len(LETTERS))
    orders: Literal["all"] | list[str] = Field(
        "all", description="all permutations; or original, reversed, token_backward, order_backward, or digits: '213'"
    )
    order_column: Identifier | None = Field(
        None, description="column that says in which order a row has its options: original or reversed"
    )
    key: AnswerKey | None = Field(None, description="for tasks with a right answer")
    split_by: Identifier | None = Field(None, description="column of items: each of its values is scored apart as well")
    speech: Speech | None = Field(None, description="options are spoken; left out, they stand in the prompt")

    @model_validator(mode="after")
    def _holds_together(self) -> ChoicePart:
        find_orders(self.orders, len(self.options))
        if self.speech and len(self.speech.letters) != len(self.options):
            raise ValueError(f"speech.letters: name one audio file for each of the {len(self.options)} options")
        if self.speech and not all(option.audio for option in self.options.values()):
            raise ValueError("options are spoken, so each names the column of its audio file")
        return self

    @property
    def letters(self) -> list[str]:
        return list(LETTERS[: len(self.options)])

    @property
    def all_orders(self) -> tuple[Order, ...]:
        return find_orders(self.orders, len(self.options))


class TaskCard(Card):
    """A task: what is asked, what is read from the answers, and how it is scored."""

    task: Name = Field(description="its name, and its file's")
    version: int = Field(ge=1, description="one more whenever a change would change answers")
    kind: Name = Field(
        "open_ended", description="open_ended: free text; choice: the letter of an option; or that of another package"
    )
    description: str = Field(min_length=1, description="one line, for listings")
    prompts: dict[Identifier, FilePath] = Field(
        min_length=1, description="prompt variant -> Jinja template; the first is the default"
    )
    generation: Sampling = Field(Sampling(), description="the same for every model")
    choice: ChoicePart | None = Field(None, description="for tasks of kind choice: the options")
    extraction: ExtractionPart = Field(description="what is read in the answers, and how")
    dimensions: dict[Identifier, list[Name]] = Field(
        min_length=1, description="dimension -> the corpora that are meant for it"
    )
    metrics: list[MetricName] = Field(
        ["ntvd", "refusal_ntvd", "diversity"],
        min_length=1,
        description="names; 'evaluate:NAME' or 'evaluate:PATH' for one of Hugging Face evaluate",
    )
    settings: dict[str, Any] | None = Field(None, description="of a kind from another package, which checks them")
    notes: str | None = Field(None, description="for people; no part of any digest")

    @model_validator(mode="before")
    @classmethod
    def _reads_the_letter(cls, data: Any) -> Any:
        """A choice task has one attribute, the letter, so that its answers are read like any other's."""
        try:
            if data["kind"] != "choice" or data["extraction"].get("attributes"):
                return data
            letters = list(LETTERS[: len(data["choice"]["options"])])
        except (TypeError, KeyError, AttributeError):
            return data  # malformed: the fields say so
        what = "the letter of the one option that the text settles on"
        attributes = {CHOICE: {"values": letters, "description": what}}
        return {**data, "extraction": {**data["extraction"], "attributes": attributes}}

    @model_validator(mode="after")
    def _fits_its_kind(self) -> TaskCard:
        if self.choice is not None and self.kind != "choice":
            raise ValueError("'choice' goes with 'kind: choice', and with no other kind")
        return self


class Layout(Card):
    """Where the clip stands in the prompt, for engines that take one string."""

    before: str = Field("", description="text ahead of the clip, system turn and placeholder included")
    after: str = Field("", description="text between the clip and the task's own words")
    end: str = Field("", description="text after the task's words: where the model's turn begins")
    system: str | None = Field(None, description="system message, for engines that take messages")


class Prices(Card):
    """What a model's tokens cost, per million. They change: only the user's own card is to be trusted."""

    input: float = Field(ge=0, description="of the prompt")
    output: float = Field(ge=0, description="of the answer, thinking included")
    audio: float | None = Field(None, ge=0, description="of the clip, where it is not the prompt's price")
    currency: str = Field("USD", min_length=1, max_length=10)


class HearingQuestion(Card):
    """What the hearing check asks of a model that cannot write down what it hears: which of some words was said."""

    prompt: str = Field(min_length=1, description="the question, about the words that are spoken and nothing else")
    answers: list[str] = Field(min_length=2, description="the answers that it allows")


class ModelCard(Card):
    """A model: which engine runs it, how it is addressed, and what it can take."""

    model: Name = Field(description="its name, and its file's")
    backend: Name = Field(description="the engine that runs it")
    id: str = Field(min_length=1, description="id on the hub, or the name the server knows")
    revision: str | None = Field(None, description="commit or version of the weights")
    description: str = Field("", description="one line, for listings")
    audio: bool = Field(True, description="takes a clip; false for a text model, such as an extractor")
    layout: Layout = Field(Layout(), description="text around the clip")
    sample_rate: int = Field(16_000, ge=4_000, le=192_000, description="Hz; clips are resampled to it")
    max_seconds: float | None = Field(None, ge=0.1, description="longest clip the model takes")
    long_clips: Literal["refuse", "truncate", "split"] = Field(
        "refuse", description="what happens to a longer one; split: it comes in pieces, in one request"
    )
    args: dict[str, Any] = Field({}, description="the backend's arguments that can change an answer")
    connection: dict[str, Any] = Field({}, description="the backend's arguments that cannot: address, retries, ...")
    audio_tokens_per_second: float | None = Field(None, gt=0, description="of a clip; for estimates alone")
    prices: Prices | None = Field(None, description="for --max-cost and for estimates")
    extractor: Name | None = Field(None, description="extractor for this model's responses, where not the default")
    hearing_check: HearingQuestion | None = Field(
        None, description="asked before a run in place of the words that are spoken"
    )
    corpus: Name | None = Field(None, description="corpus that a run takes where none is named")
    excludes: dict[Identifier, list[str]] = Field(
        {}, description="column -> groups that the model is not made for: language: [ko]; a run over them is refused"
    )
    simulated: bool = Field(False, description="not a real model: kept out of leaderboards unless asked for")
    licence: str | None = Field(None, description="of the weights, or the terms of the service")
    notes: str | None = Field(None, description="for people; no part of any digest")

    @field_validator("args", "connection")
    @classmethod
    def _is_plain(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, item in value.items():
            try:
                json.dumps(item, allow_nan=False)
            except (TypeError, ValueError):  # a date, NaN, infinity: it can neither be sent nor be written down
                what = "write words, finite numbers, lists and mappings of them; a date in quotes"
                raise ValueError(f"'{name}': {what}") from None
        return value

    def identity(self) -> dict[str, Any]:
        """What can change an answer: part of every response's key."""
        return self.model_dump(
            mode="json",
            include={
                "backend", "id", "revision", "layout", "sample_rate", "max_seconds", "long_clips", "args", "simulated",
            },
        )  # fmt: skip


def card_schema(card: type[Card]) -> dict[str, Any]:
    """JSON Schema of a card file: the card's fields, and `include`. A card that includes another may lack fields."""
    schema = card.model_json_schema()
    name = {"type": "string", "description": "file of the same folder to build on"}
    several = {"anyOf": [name, {"type": "array", "items": name}]}
    schema["properties"]["include"] = {**several, "description": "files of the same folder to build on"}
    required = schema.pop("required", [])
    schema["anyOf"] = [{"required": required}, {"required": ["include"]}]
    return schema
