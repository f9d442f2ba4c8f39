"""Requests, cards and layouts for real engines on the tiny checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.support import ROOT
from vibe_harness.cards.schema import Layout, ModelCard
from vibe_harness.records import Generation, Request, Waveform

RATE = 16_000


CHATML = Layout(
    before="<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
    "Audio 1: <|audio_bos|><|AUDIO|><|audio_eos|>",
    after="\n",
    end="<|im_end|>\n<|im_start|>assistant\n",
)


ON_CPU = {"max_model_len": 4096, "enforce_eager": True, "kv_cache_memory_bytes": 128 << 20, "max_num_seqs": 32}


SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["vibe", "activity"],
    "properties": {
        "vibe": {"enum": ["good", "bad"]},
        "activity": {"type": "array", "items": {"enum": ["chess", "hiking"]}, "minItems": 1, "maxItems": 2},
    },
}  # fmt: skip


def tone(pitch: float, seconds: float) -> Waveform:
    wave = 0.3 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * RATE)) / RATE)
    return Waveform((np.round(wave * 32768) / 32768).astype(np.float32), RATE)


def requests() -> list[Request]:
    asked = []
    for i in range(12):
        wave = tone(100 * 1.2**i, 0.4 + 0.15 * i)
        asked.append(Request(f"free{i}", "t", "v", f"c{i}", "hobbies?", Generation(24), audio=lambda w=wave: w))
        asked.append(
            Request(f"json{i}", "t", "v", f"c{i}", "hobbies?", Generation(64), audio=lambda w=wave: w, schema=SCHEMA)
        )
    return asked


def card(backend: str, checkpoint: Path, layout: Layout = CHATML, **more: Any) -> ModelCard:
    given = {
        "args": {"dtype": "float32"}, "connection": ON_CPU if backend == "vllm" else {"device": "cpu"},
        "max_seconds": 30, **more,
    }  # fmt: skip
    return ModelCard(model="tiny", backend=backend, id=str(checkpoint), layout=layout, **given)


def limited(name: str, folder: Path) -> None:
    """A task of the library with limits that random weights, which seldom end, reach soon."""
    written = yaml.safe_load((ROOT / "tasks" / f"{name}.yaml").read_text(encoding="utf-8"))
    written["generation"]["max_tokens"] = 48
    written["extraction"]["max_tokens"] = 64
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
