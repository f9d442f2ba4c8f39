"""Validate a YAML file against a card schema. Errors give file, line and field."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

from pydantic import ValidationError

from vibe_harness.cards.faults import CardError
from vibe_harness.cards.schema import Card
from vibe_harness.cards.yaml_file import CardSource
from vibe_harness.errors import UserError
from vibe_harness.registry import did_you_mean

AnyCard = TypeVar("AnyCard", bound=Card)


def validated(source: CardSource, model: type[AnyCard]) -> AnyCard:
    """The card in a file. Raises CardError with all errors of its fields."""
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        raise CardError(list(_explain(source, model, error))) from None


def named_card(source: CardSource, model: type[AnyCard], kind: str) -> AnyCard:
    """The card in a file. Its field `kind` must be the file's name. Raises UserError as `validated` does."""
    card = validated(source, model)
    name = getattr(card, kind)
    if name != source.path.stem:
        raise UserError(
            f"{source.location([kind])}: the card says '{kind}: {name}' but its file is named '{source.path.stem}': "
            "change one of the two"
        )
    return card


def without_unknown_fields(data: Mapping[str, Any], model: type[AnyCard]) -> AnyCard | None:
    """The card without its unknown fields; None if it is still invalid."""
    kept = copy.deepcopy(dict(data))
    try:
        return model.model_validate(kept)
    except ValidationError as error:
        for fault in error.errors():
            if fault["type"] == "extra_forbidden":
                *outer, last = fault["loc"]
                holder: Any = kept
                for key in outer:
                    holder = holder[key]
                del holder[last]
    try:
        return model.model_validate(kept)
    except ValidationError:
        return None


def _explain(source: CardSource, model: type[Card], error: ValidationError) -> Iterator[str]:
    """One line for each error: file, line, field, what is wrong."""
    for fault in error.errors():
        keys = [key for key in fault["loc"] if key != "[key]"]
        field = ".".join(str(key) for key in keys)
        place = source.location(keys)
        if fault["type"] == "extra_forbidden":
            known = model.model_fields if len(keys) == 1 else ()
            hint = did_you_mean(str(keys[-1]), known) if known else "Remove it, or correct its spelling."
            yield f"{place}: unknown field '{field}'. {hint}"
        elif fault["type"] == "missing":
            yield f"{place}: the field '{field}' is missing: add it{_meaning(model, keys)}"
        else:
            what = what_is_wrong(fault)
            yield f"{place}: {field}: {what}" if field else f"{place}: {what}"  # no field if it concerns several


def what_is_wrong(fault: Mapping[str, Any]) -> str:
    """The message for one of pydantic's errors."""
    what: str = fault["msg"].removeprefix("Value error, ")
    if fault["type"] in ("int_type", "float_type") and isinstance(fault["input"], str):
        what += "; this is a string: remove the quotes, or write 0.001 instead of 1e-3, which YAML reads as a string"
    if fault["type"] == "string_type" and isinstance(fault["input"], int | float | date):
        what += "; YAML does not read this as a string: put it in quotes"
    return what


def _meaning(model: type[Card], keys: Sequence[str | int]) -> str:
    """The description of a top-level field, in brackets; empty if it has none."""
    field = model.model_fields.get(str(keys[0])) if len(keys) == 1 else None
    return f" ({field.description})" if field and field.description else ""
