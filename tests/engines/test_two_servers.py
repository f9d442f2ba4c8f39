"""Two real servers of one tiny checkpoint: they share the work, and one that is killed costs no answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("vllm")

import soundfile

from tests.engines.serving import Serving, serving
from tests.engines.tiny_engines import RATE, limited, lines, requests, tone
from tests.support import wait_until
from tests.tiny_checkpoint import build
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.cards.schema import ModelCard

CLIPS = 32


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Serving]]:
    checkpoint = build(tmp_path_factory.mktemp("tiny"))
    cores = sorted(os.sched_getaffinity(0))
    with serving(checkpoint, cores[0]) as one, serving(checkpoint, cores[-1]) as other:
        one.wait()
        other.wait()
        yield one, other


def card(servers: Sequence[Serving], name: str = "tiny") -> ModelCard:
    urls = [server.url for server in servers]
    return ModelCard(model=name, backend="openai", id="tiny", connection={"base_url": urls, "concurrency": 8})


def ask(servers: Sequence[Serving], times: int) -> tuple[dict[str, str], float]:
    """Text of each answer, and answers a second. times: over, each with words of its own, so that nothing is cached."""
    asked = [
        replace(one, id=f"{one.id}-{turn}", prompt=f"{one.prompt} {turn}")
        for turn in range(times)
        for one in requests()
    ]
    engine = OpenAIEngine(card(servers), ())
    try:
        begun = time.monotonic()
        got = list(engine.generate(asked))
        took = time.monotonic() - begun
    finally:
        engine.close()
    assert sorted(response.request for response in got) == sorted(one.id for one in asked)
    return {response.request: response.text for response in got}, len(got) / took


def test_two_servers_share_the_work_and_answer_as_one(pair: tuple[Serving, Serving]) -> None:
    for server in pair:
        ask([server], 1)  # warms it up
    alone, pace_alone = ask(pair[:1], 5)
    before = [server.answered() for server in pair]
    shared, pace_shared = ask(pair, 5)
    did = [server.answered() - count for server, count in zip(pair, before, strict=True)]
    print(f"one server: {pace_alone:.1f} answers a second; two: {pace_shared:.1f}, of which they gave {did}")
    assert shared == alone
    assert sum(did) == len(shared) and min(did) > 0  # how they share it hangs on what else their cores do


def test_one_killed_in_the_middle_of_a_run_costs_no_answer(pair: tuple[Serving, Serving], tmp_path: Path) -> None:
    limited("advisory", tmp_path)
    rows = ["file,speaker,gender"]
    for clip in range(CLIPS):
        soundfile.write(tmp_path / f"{clip}.wav", tone(100 + 12 * clip, 0.5).samples, RATE)
        rows.append(f"{clip}.wav,s{clip % 4},{'female' if clip % 2 else 'male'}")
    (tmp_path / "manifest.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for name, servers in (("one", pair[:1]), ("two", pair)):
        (tmp_path / f"{name}.yaml").write_text(card(servers, name).model_dump_json(), encoding="utf-8")

    def run(name: str) -> subprocess.Popen[str]:
        words = (
            "--model", f"{name}.yaml", "--extractor", "rules", "--tasks", "advisory.yaml", "--prompt-variant", "all",
            "--corpus", "manifest.csv", "--dimension", "gender", "--tau", "1", "--permutations", "20",
            "--output-path", name,
        )  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "vibe_harness", *words], cwd=tmp_path, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    whole = run("one")
    _, said = whole.communicate()
    assert whole.returncode in (0, 1), said
    before = pair[1].answered()
    broken, journal = run("two"), tmp_path / "two/responses.jsonl"
    wait_until(lambda: broken.poll() is not None or (journal.exists() and pair[1].answered() > before))
    pair[1].kill()
    _, said = broken.communicate()
    assert broken.returncode in (0, 1), said

    texts = [{r["request"]: (r["outcome"], r["text"]) for r in lines(tmp_path / n / "responses.jsonl")} for n in
             ("one", "two")]  # fmt: skip
    assert texts[0] == texts[1] and len(texts[0]) >= 2 * CLIPS
    checked = subprocess.run(
        [sys.executable, "-m", "vibe_harness", "run-check", "two", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    scores = [json.loads((tmp_path / name / "results.json").read_text(encoding="utf-8"))["tasks"] for name in
              ("one", "two")]  # fmt: skip
    assert scores[0] == scores[1]
