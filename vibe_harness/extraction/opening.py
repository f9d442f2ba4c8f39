"""Opening an extractor by name: a registered one, or a text model by its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vibe_harness.backends.guards import Budget
from vibe_harness.backends.protocol import Opener, check_options, open_backend, pinned
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.extraction.model import ModelExtractor
from vibe_harness.extraction.protocol import EXTRACTORS, Extractor
from vibe_harness.registry import did_you_mean


def open_extractor(
    name: str,
    index: CardIndex,
    tasks: Sequence[Task],
    opener: Opener = open_backend,
    budget: Budget | None = None,
) -> Extractor:
    """Open an extractor for responses to these tasks. The caller closes it.

    name: of a registered extractor or a model card, or a model card's file. budget: what a model with prices on its
    card may still spend. Raises as `find_extractor` does, and EngineError if the model's engine does not start.
    """
    card = find_extractor(name, index)
    return EXTRACTORS.get(name)(tasks) if card is None else ModelExtractor(card, tasks, opener, budget)


def extractor_identity(name: str, index: CardIndex) -> Mapping[str, Any]:
    """Everything that can change the extractor's readings, as plain data. Opens nothing; raises as `find_extractor`."""
    card = find_extractor(name, index)
    return EXTRACTORS.get(name).identity() if card is None else ModelExtractor.identity(card)


def find_extractor(name: str, index: CardIndex) -> ModelCard | None:
    """The card of an extractor model, or None for a registered extractor. Opens nothing.

    Raises UserError for an unknown name, for a model that takes audio, and for a wrong card.
    """
    if name in EXTRACTORS.names():
        return None
    models = index.model_names()
    if not name.endswith((".yaml", ".yml")) and name not in models:
        raise UserError(f"unknown extractor '{name}'. {did_you_mean(name, [*EXTRACTORS.names(), *models])}")
    card = index.model(name)
    if card.audio:
        raise UserError(
            f"the model '{card.model}' takes recordings (audio: true): an extractor reads text. "
            "Name a text model, or write a card with audio: false"
        )
    check_options(card)
    return pinned(card)
