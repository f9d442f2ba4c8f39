"""The input of a model, shown before a run by `vibe-harness models check`."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

from vibe_harness.backends.local.processor import Processor
from vibe_harness.backends.local.prompt_layout import joined
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.records import Generation, Request, Waveform

SECONDS = 2.0  # length of the test clip
NOT_CHECKED = "not checked"


def preview(card: ModelCard, prompt: str) -> Iterator[tuple[str, str]]:
    """Describe the prompt and the clip in it: pairs of heading and text.

    The heading `NOT_CHECKED` says what could not be checked, and why. Raises UserError or EngineError if the model's
    own processor shows that its card is wrong.
    """
    request = Request("look", "check", "check", "a clip of noise", prompt, Generation(1), _noise(card))
    if card.backend in ("vllm", "hf"):
        yield from _by_processor(card, request)
    elif card.backend in ("openai", "gemini"):
        clip = "[clip: WAV, 16 bits, mono, as a part before the text]\n" if card.audio else ""
        system = f"system: {card.layout.system}\n" if card.layout.system else ""
        yield "message", f"{system}user: {clip}{prompt}"
        yield NOT_CHECKED, "the server makes the final prompt: the hearing check before each run asks what it hears"
    else:
        yield NOT_CHECKED, f"the back end '{card.backend}' has no prompt to show"


def _by_processor(card: ModelCard, request: Request) -> Iterator[tuple[str, str]]:
    text = joined(card, request)
    missing = [name for name in ("transformers", "torch") if importlib.util.find_spec(name) is None]
    if missing:
        yield from _without_processor(text, f"{missing[0]} is not installed: pip install 'vibe-harness[hf]'")
        return
    engine = card.args.get("engine", {})
    trusted = bool(card.args.get("trust_remote_code") or engine.get("trust_remote_code"))
    if engine.get("tokenizer_mode") == "mistral":
        yield from _without_processor(text, "mistral-common makes the prompt inside vLLM, not transformers")
        return
    try:
        processor = Processor(card, trusted, card.args.get("chat_template_kwargs", {}))
    except UserError as error:
        if "sample_rate" in str(error):
            raise
        yield from _without_processor(text, str(error))
        return
    yield "final prompt", processor.text(request)
    yield from _clip_in(card, processor, request)


def _clip_in(card: ModelCard, processor: Processor, request: Request) -> Iterator[tuple[str, str]]:
    """The position of the clip among the tokens, and its features."""
    inputs = processor.inputs(request)
    tokens: list[int] = inputs["input_ids"][0].tolist()
    if request.audio is None:
        yield "tokens", f"{len(tokens)}, all of the prompt"
        return
    filled = processor.tokenizer.convert_tokens_to_ids(processor.placeholder) if processor.placeholder else None
    places = [place for place, token in enumerate(tokens) if token == filled]
    if places:
        yield (
            "clip",
            (
                f"{SECONDS:g} s at {card.sample_rate} Hz fill {len(places)} tokens {processor.placeholder!r}, after "
                f"{places[0]} tokens of the prompt and ahead of {len(tokens) - places[-1] - 1}"
            ),
        )
    else:
        yield "clip", f"{SECONDS:g} s at {card.sample_rate} Hz; {len(tokens)} tokens with the prompt"
    for name, value in inputs.items():
        if value.is_floating_point():
            yield "features", f"{name}: {str(value.dtype).removeprefix('torch.')} of shape {list(value.shape)}"
    if processor.window_s is not None:
        yield (
            "window",
            (
                f"the feature extractor takes {processor.window_s:g} s and cuts what is longer; "
                f"the card says max_seconds: {'nothing' if card.max_seconds is None else format(card.max_seconds, 'g')}"
            ),
        )


def _without_processor(text: str | None, why: str) -> Iterator[tuple[str, str]]:
    if text is None:
        yield NOT_CHECKED, f"the final prompt, which the model's own chat template makes: {why}"
    else:
        yield "final prompt, as the card lays it out", text
        yield NOT_CHECKED, f"what the model's processor makes of the clip: {why}"


def _noise(card: ModelCard) -> Any:
    if not card.audio:
        return None
    samples = np.random.default_rng(0).normal(0, 0.1, int(SECONDS * card.sample_rate)).astype(np.float32)
    return lambda: Waveform(samples, card.sample_rate)
