"""vLLM's servers of two checkpoints, each started by its card in an environment of its own, in one study."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("vllm")

import soundfile

from tests.engines.tiny_engines import RATE, limited, lines, tone
from tests.environments import environment
from tests.tiny_checkpoint import build
from vibe_harness.cards.schema import ModelCard, Serve

OPTIONS = (
    "--dtype", "float32", "--enforce-eager", "--max-model-len", "4096", "--kv-cache-memory-bytes", str(128 << 20),
    "--limit-mm-per-prompt", '{"audio": 1}',
    "--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}',
)  # fmt: skip


def test_two_checkpoints_in_two_environments_stand_in_one_study(tmp_path: Path) -> None:
    limited("advisory", tmp_path)
    rows = ["file,speaker,gender"]
    for clip in range(8):
        soundfile.write(tmp_path / f"{clip}.wav", tone(100 + 40 * clip, 0.5).samples, RATE)
        rows.append(f"{clip}.wav,s{clip},{'female' if clip % 2 else 'male'}")
    (tmp_path / "manifest.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for seed, name in enumerate(("one", "two")):
        python = environment(tmp_path / f"environment-{name}")
        checkpoint = build(tmp_path / f"checkpoint-{name}", seed)
        words = ("python", "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint), "--host",
                 "127.0.0.1", "--port", "{port}", "--served-model-name", "{id}", *OPTIONS)  # fmt: skip
        card = ModelCard(
            model=name, backend="openai", id=f"tiny-{name}", connection={"base_url": "http://127.0.0.1:0/v1"},
            serve=Serve(command=shlex.join(words), python=str(python)),
        )  # fmt: skip
        (tmp_path / f"{name}.yaml").write_text(card.model_dump_json(), encoding="utf-8")
    (tmp_path / "apart.yaml").write_text(
        "study: apart\nmodels: [one.yaml, two.yaml]\ntasks: [advisory.yaml]\ncorpora: [manifest.csv]\n"
        "dimensions: [gender]\nextractor: rules\ntau: 1\npermutations: 19\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "vibe_harness", "study", "apart.yaml", "--allow-serve", "--output-path", "out"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 done, 0 running, 0 failed, 0 left" in done.stdout, done.stdout + done.stderr
    texts = {}
    for name in ("one", "two"):
        run = next((tmp_path / "out" / name).glob("*/advisory"))
        answers = lines(run / "responses.jsonl")
        assert len(answers) == 8 and {row["served_model"] for row in answers} == {f"tiny-{name}"}
        texts[name] = {row["request"]: row["text"] for row in answers}
        [engine] = [row for row in lines(run / "engines.jsonl") if row["role"] == "model"]
        assert engine["server_python"] == str(tmp_path / f"environment-{name}/bin/python")
        assert engine["engine"].startswith("vllm ")
    assert set(texts["one"].values()) != set(texts["two"].values())
