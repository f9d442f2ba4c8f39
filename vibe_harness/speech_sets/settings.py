"""Settings of a synthesizer or a recogniser, checked before anything is spoken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from vibe_harness.backends.protocol import Options
from vibe_harness.errors import UserError
from vibe_harness.registry import did_you_mean

Settings = TypeVar("Settings", bound=Options)


def checked_settings(place: str, name: str, kind: type[Settings], given: Mapping[str, Any]) -> Settings:
    """The settings. Raises UserError, naming `place` and field, for what `name` does not take."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        # A misspelt name first: what it stands for is then missing, too.
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        field = ".".join(str(key) for key in fault["loc"])
        what = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            what = f"'{name}' takes no such setting. {did_you_mean(field, kind.model_fields)}"
        raise UserError(f"{place}: settings.{field}: {what}") from None
