"""Whether the name in a server's replies is that of the model that was asked for."""

import pytest
from pydantic import ValidationError

from vibe_harness.cards.schema import ModelCard
from vibe_harness.cards.served_names import is_served_as

THE_SAME = [
    ("loopback", "loopback"),
    ("Qwen/Qwen2-Audio-7B-Instruct", "qwen2-audio-7b-instruct"),
    ("qwen2-audio", "Qwen/Qwen2-Audio"),
    ("gemini-2.5-flash", "models/gemini-2.5-flash"),
    ("models/gemini-2.5-flash", "gemini-2.5-flash"),
    ("gemini-2.0-flash", "publishers/google/models/gemini-2.0-flash-001"),
    ("gpt-4o-audio-preview", "gpt-4o-audio-preview-2024-12-17"),
    ("claude-sonnet-4", "claude-sonnet-4-20250514"),
    ("gpt-4", "gpt-4-0613"),
    ("gemini-2.5-flash-preview", "gemini-2.5-flash-preview-09-2025"),
    ("gemini-2.5-flash-preview", "gemini-2.5-flash-preview-05-20"),
    ("voxtral-mini-latest", "voxtral-mini-2507"),
    ("voxtral-mini-latest", "voxtral-mini-latest"),
    ("voxtral-mini", "voxtral-mini-latest"),
    ("llama3", "llama3:latest"),
    ("org/m", "org/m@0123456789abcdef0123456789abcdef01234567"),
    ("m", " M/ "),
    ("m.v1", "m.v1-v2.1"),
]
ANOTHER = [
    ("loopback", "other-model"),
    ("loopback", "loopback-next"),
    ("gpt-4", "gpt-4o"),
    ("gpt-4", "gpt-4.1"),
    ("gpt-4o", "gpt-4o-mini"),
    ("gpt-4o-mini", "gpt-4o"),
    ("qwen2-audio", "qwen2-audio-7b"),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
    ("gpt-4o-2024-08-06", "gpt-4o"),  # less than was asked for: which version it is nobody knows
    ("gemini-flash-latest", "gemini-2.5-flash"),
    ("gemini-2.5-flash", "gemini-2.5-flash-preview-09-2025"),
    ("mistralai/Voxtral-Mini", "somebody/Voxtral-Mini"),
    ("a/b/c", "x/c"),
    ("m", "m-13-45"),
    ("m", "m-7"),
]


@pytest.mark.parametrize(("asked", "served"), THE_SAME)
def test_a_name_of_the_same_model(asked: str, served: str) -> None:
    assert is_served_as(asked, served)


@pytest.mark.parametrize(("asked", "served"), ANOTHER)
def test_a_name_of_another_model(asked: str, served: str) -> None:
    assert not is_served_as(asked, served)


@pytest.mark.parametrize(
    ("pattern", "served", "same"),
    [
        ("gpt-3.5-turbo", "GPT-3.5-turbo", True),
        ("gemini-2.5-flash-*", "models/gemini-2.5-flash-preview", True),
        ("gemini-2.5-flash-*", "gemini-2.5-pro", False),
        ("o1", "o1", True),
        ("o1", "o12", False),
    ],
)
def test_further_names_of_a_card(pattern: str, served: str, same: bool) -> None:
    card = ModelCard(model="m", backend="openai", id="asked", served_as=pattern)  # type: ignore[arg-type]
    assert is_served_as(card.id, served, card.served_as) is same


@pytest.mark.parametrize("pattern", ["*", "**", "?*", "*-*", "*/*", "[!x]*", "a*", "*_*", "", "  "])
def test_a_name_that_matches_anything_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError, match="write the name that the server gives"):
        ModelCard(model="m", backend="openai", id="asked", served_as=[pattern])
