"""What tests of servers ask, and of whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.cards.schema import Layout, ModelCard
from vibe_harness.records import Generation, Request, Response, Waveform

RATE = 16_000


def tone(pitch: float, seconds: float = 0.1) -> Waveform:
    """A sine, quantised to 16 bits so that nothing gets lost on the way."""
    wave = 0.3 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * RATE)) / RATE)
    return Waveform((np.round(wave * 32768) / 32768).astype(np.float32), RATE)


def ask(number: int, wave: Waveform | None = None, **more: Any) -> Request:
    audio = (lambda: wave) if wave is not None else None
    return Request(f"r{number}", "story", "plain", "c", f"question {number}", Generation(64, seed=3), audio, **more)


def model_card(url: str, args: dict[str, Any] | None = None, **connection: Any) -> ModelCard:
    return ModelCard(
        model="m", backend="openai", id="loopback", layout=Layout(system="Be brief."), args=args or {},
        connection={"base_url": url, "timeout_s": 60.0, **connection},
    )  # fmt: skip


def answers(url: str, requests: Iterator[Request] | list[Request], **connection: Any) -> list[Response]:
    engine = OpenAIEngine(model_card(url, **connection), [])
    try:
        return list(engine.generate(requests))
    finally:
        engine.close()
