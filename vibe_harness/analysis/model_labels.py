"""What a model is called among others: its name, and, where several have that name, what tells it from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def disambiguate(models: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Key -> what the model is called: "qwen2-audio", or "qwen2-audio (args.quantization int4)".

    models: key -> name of the model's card, and the facts that make it another model than others of that name.
    """
    named: dict[str, dict[str, dict[str, str]]] = {}
    for key, (name, facts) in models.items():
        named.setdefault(name, {})[key] = dict(flattened("", facts))
    labels = {}
    for name, found in named.items():
        facts_of = sorted({fact for facts in found.values() for fact in facts})
        differing = [fact for fact in facts_of if len({facts.get(fact) for facts in found.values()}) > 1]
        for key, facts in found.items():
            told = ", ".join(f"{fact} {facts.get(fact, 'not set')}" for fact in differing)
            labels[key] = f"{name} ({told})" if told else name
    return labels


def flattened(prefix: str, value: Any) -> list[tuple[str, str]]:
    """Nested settings as (dotted name, text)."""
    if isinstance(value, Mapping):
        names = {key: f"{prefix}.{key}" if prefix and key != prefix else str(key) for key in value}
        return [pair for key, inner in value.items() for pair in flattened(names[key], inner)]
    return [(prefix, str(value))]
