"""Labels of models: the name, and the settings in which models of the same name differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def disambiguate(models: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Key -> label of the model: "qwen2-audio", or "qwen2-audio (args.quantization int4)".

    models: key -> name of the model card, and its settings. If several models have one name, the label adds the
    settings in which they differ.
    """
    by_name: dict[str, dict[str, dict[str, str]]] = {}
    for key, (name, settings) in models.items():
        by_name.setdefault(name, {})[key] = dict(flattened("", settings))
    labels = {}
    for name, group in by_name.items():
        for key in group:
            difference = ", ".join(f"{setting} {group[key].get(setting, 'not set')}" for setting in _differing(group))
            labels[key] = f"{name} ({difference})" if difference else name
    return labels


def _differing(models: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The settings in which models differ, sorted."""
    names = sorted({setting for settings in models.values() for setting in settings})
    return [name for name in names if len({settings.get(name) for settings in models.values()}) > 1]


def flattened(prefix: str, value: Any) -> list[tuple[str, str]]:
    """Nested settings as (dotted name, text)."""
    if isinstance(value, Mapping):
        names = {key: f"{prefix}.{key}" if prefix and key != prefix else str(key) for key in value}
        return [pair for key, inner in value.items() for pair in flattened(names[key], inner)]
    return [(prefix, str(value))]
