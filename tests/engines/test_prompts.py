"""Layouts of the cards against the chat templates that transformers ships with the package."""

from __future__ import annotations

import jinja2
import numpy as np
import pytest

pytest.importorskip("transformers")

from vibe_harness.backends.layout import joined
from vibe_harness.cards.loading import CardIndex
from vibe_harness.records import Generation, Request, Waveform


def test_qwen2_audios_layout_is_its_processors_template() -> None:
    from transformers import Qwen2AudioProcessor

    template = jinja2.Template(Qwen2AudioProcessor.default_chat_template.fget(None))
    card = CardIndex().model("qwen2-audio")
    wave = Waveform(np.zeros(1600, np.float32), 16_000)
    request = Request("r", "t", "v", "c", "Name three hobbies.", Generation(8), lambda: wave)
    content = [{"type": "audio", "audio_url": "x"}, {"type": "text", "text": request.prompt}]
    rendered = template.render(messages=[{"role": "user", "content": content}], add_generation_prompt=True)
    assert joined(card, request) == rendered
