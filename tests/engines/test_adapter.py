"""The LoRA adapter in a model's folder is used for every request: vLLM answers as with its weights merged in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("vllm")

from tests.engines.tiny_engines import ON_CPU
from tests.tiny_checkpoint import build_text
from vibe_harness.backends.local.vllm import VLLMEngine
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.records import Generation, Request

RANK = 8
MODULES = ("q_proj", "k_proj", "v_proj", "o_proj")


def adapted(base: Path, merged: Path) -> None:
    """Write a random adapter into the folder `speech-lora` of one model, and its weights into those of the other."""
    import torch
    from safetensors.torch import load_file, save_file

    torch.manual_seed(1)
    weights = load_file(merged / "model.safetensors")
    parts = {}
    for layer in range(2):
        for module in MODULES:
            name = f"model.layers.{layer}.self_attn.{module}"
            out_size, in_size = weights[f"{name}.weight"].shape
            down, up = torch.randn(RANK, in_size) / in_size**0.5, torch.randn(out_size, RANK) / RANK**0.5
            weights[f"{name}.weight"] = weights[f"{name}.weight"] + up @ down
            parts[f"base_model.model.{name}.lora_A.weight"] = down
            parts[f"base_model.model.{name}.lora_B.weight"] = up
    save_file(weights, merged / "model.safetensors", metadata={"format": "pt"})
    (base / "speech-lora").mkdir()
    save_file(parts, base / "speech-lora/adapter_model.safetensors")
    settings = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": RANK, "bias": "none",
                "target_modules": list(MODULES), "base_model_name_or_path": str(base)}  # fmt: skip
    (base / "speech-lora/adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")


def answers(folder: Path, **args: object) -> list[str]:
    card = ModelCard(
        model="tiny", backend="vllm", id=str(folder), audio=False, args={"dtype": "float32", **args}, connection=ON_CPU
    )
    engine = VLLMEngine(card, ())
    try:
        asked = [Request(str(i), "t", "v", "c", f"name {i} hobbies", Generation(24)) for i in range(6)]
        return [one.text for one in sorted(engine.generate(asked), key=lambda one: one.request)]
    finally:
        engine.close()


def test_vllm_answers_with_the_adapter_as_with_its_weights_merged_in(tmp_path: Path) -> None:
    base, merged = build_text(tmp_path / "base"), tmp_path / "merged"
    shutil.copytree(base, merged)
    adapted(base, merged)
    with_adapter = answers(base, adapter="speech-lora", engine={"max_lora_rank": RANK})
    assert with_adapter == answers(merged)
    assert with_adapter != answers(base)


def test_a_model_without_its_adapter_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no adapter in"):
        answers(build_text(tmp_path / "base"), adapter="speech-lora")
