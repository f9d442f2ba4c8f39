"""From a YAML file to a card of some kind, with every fault told by file, line and field."""

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
    """The card that a file holds. Raises CardError with every fault of its fields."""
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        raise CardError(list(_explain(source, model, error))) from None


def named_card(source: CardSource, model: type[AnyCard], kind: str) -> AnyCard:
    """The card that a file holds, which bears the file's name in its field `kind`. Raises UserError as `validated`."""
    card = validated(source, model)
    name = getattr(card, kind)
    if name != source.path.stem:
        raise UserError(
            f"{source.location([kind])}: the card says '{kind}: {name}' but its file is named '{source.path.stem}': "
            "change one of the two"
        )
    return card


def without_unknown_fields(data: Mapping[str, Any], model: type[AnyCard]) -> AnyCard | None:
    """The card less the fields that it may not have; None where that does not mend it."""
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
    """One line a fault: file, line, field, what is wrong."""
    for fault in error.errors():
        keys = [key for key in fault["loc"] if key != "[key]"]
        field = ".".join(str(key) for key in keys)
        place = source.location(keys)
        if fault["type"] == "extra_forbidden":
            known = model.model_fields if len(keys) == 1 else ()
            hint = did_you_mean(str(keys[-1]), known) if known else "Remove it, or mend its spelling."
            yield f"{place}: unknown field '{field}'. {hint}"
        elif fault["type"] == "missing":
            yield f"{place}: the field '{field}' is missing: add it{_meaning(model, keys)}"
        else:
            what = what_is_wrong(fault)
            yield f"{place}: {field}: {what}" if field else f"{place}: {what}"  # no field where several disagree


def what_is_wrong(fault: Mapping[str, Any]) -> str:
    """One of pydantic's faults in words."""
    what: str = fault["msg"].removeprefix("Value error, ")
    if fault["type"] in ("int_type", "float_type") and isinstance(fault["input"], str):
        what += "; this is a word, being in quotes, or written as 1e-3, which is no number in YAML (0.001 is)"
    if fault["type"] == "string_type" and isinstance(fault["input"], int | float | date):
        what += "; YAML reads this as no word: put it in quotes"
    return what


def _meaning(model: type[Card], keys: Sequence[str | int]) -> str:
    """What a field of the card itself holds, in brackets, where its schema says so."""
    field = model.model_fields.get(str(keys[0])) if len(keys) == 1 else None
    return f" ({field.description})" if field and field.description else ""
