"""Layouts of the cards against what the installed engines hold: transformers' template, vLLM's placeholders.

transformers ships one model's template with the package; the others' come with their weights.
"""

from __future__ import annotations

import importlib

import jinja2
import numpy as np
import pytest

pytest.importorskip("transformers")

from vibe_harness.backends.local.prompt_layout import joined
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


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("qwen2-audio", "qwen2_audio:Qwen2AudioForConditionalGeneration"),
        ("phi-4-multimodal", "phi4mm:Phi4MMForCausalLM"),
    ],
)
def test_a_layouts_placeholder_is_the_one_that_vllm_fills(name: str, model: str) -> None:
    pytest.importorskip("vllm")
    module, kind = model.split(":")
    found = getattr(importlib.import_module(f"vllm.model_executor.models.{module}"), kind)
    assert CardIndex().model(name).layout.before.endswith(found.get_placeholder_str("audio", 1))
