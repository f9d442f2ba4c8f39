"""How much the harness costs beside its engines: ratios of runs made side by side in one go.

    python -m benchmarks.engines [--quick] server command      # need vibe-harness[dev]
    python -m benchmarks.engines [--quick] throughput order    # need vLLM: see .ci/engines

Exit status 1 where an aim is missed. --quick: fewer requests, and one round of each.
server: requests a second at 100 ms latency and 32 at once, beside a bare aiohttp client and the ideal of 320.
command: the same of a whole run while it asks, one task a clip, with clips and with their words.
throughput: output tokens a second through the harness beside vLLM's own LLM.generate, tiny checkpoint, 256 requests.
order: five tasks over the same clips, grouped by clip and by task, with caches smaller than the set of clips.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import status, tell
from tests.loopback import Loopback
from vibe_harness.backends.request_audio import wav_bytes
from vibe_harness.cards.schema import Layout, ModelCard
from vibe_harness.records import Generation, Outcome, Request, Waveform

RATE = 16_000
IDEAL = 320.0  # requests a second: 32 at once, 100 ms each
FLAT = 10  # MiB: 230 of the requests, if they were kept
CHATML = Layout(
    before="<|im_start|>user\n<|audio_bos|><|AUDIO|><|audio_eos|>", end="<|im_end|>\n<|im_start|>assistant\n"
)


def noise(number: int, seconds: float) -> Waveform:
    samples = np.random.default_rng(number).normal(0, 0.1, int(seconds * RATE))
    return Waveform(samples.astype(np.float32), RATE)


def memory_mib() -> float:
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def server(quick: bool) -> None:
    from vibe_harness.backends.remote.openai_server import OpenAIEngine

    wave, count, rounds = noise(0, 1.0), 640 if quick else 1600, 1 if quick else 3
    with Loopback(latency_s=0.1) as loopback:
        card = ModelCard(model="m", backend="openai", id="loopback", connection={"base_url": loopback.url})
        engine = OpenAIEngine(card, ())

        def ours(tag: int) -> float:
            start = time.perf_counter()
            asked = (Request(f"{i}", "t", "v", "c", f"{tag} {i}", Generation(8), lambda: wave) for i in range(count))
            assert all(response.outcome is Outcome.OK for response in engine.generate(asked))
            return count / (time.perf_counter() - start)

        def bare(tag: int) -> float:
            start = time.perf_counter()
            asyncio.run(_aiohttp(loopback.url, wave, count, tag))
            return count / (time.perf_counter() - start)

        ours(-1)
        rates: dict[str, list[float]] = {"harness": [], "aiohttp": []}
        processor = 0.0
        for tag in range(rounds):
            begun = time.process_time()
            rates["harness"].append(ours(tag))
            processor += time.process_time() - begun
            rates["aiohttp"].append(bare(tag + rounds))
        for name, found in rates.items():
            middle = statistics.median(found)
            share, aim = middle / IDEAL, "at least 0.95" if name == "harness" else ""
            tell(f"server, {name}", share, "of the ideal", aim, not aim or share >= 0.95, f"{middle:.1f} requests/s")
        each = 1000 * processor / rounds / count
        tell("server, harness", each, "ms of processor a request", "at most 1.5", each <= 1.5)
        ratio = statistics.median(a / b for a, b in zip(rates["harness"], rates["aiohttp"], strict=True))
        tell("server, harness", ratio, "of aiohttp")
        before = memory_mib()
        for tag in range(2 if quick else 5):
            ours(100 + tag)
        gc.collect()
        grown, further = memory_mib() - before, (2 if quick else 5) * count
        beside = f"{before:.0f} MiB before them"
        tell(f"server, memory of {further:,} further requests", grown, "MiB", f"at most {FLAT}", grown <= FLAT, beside)
        engine.close()


def tones(folder: Path, count: int) -> Path:
    """A manifest of so many clips of a second each, by 40 speakers."""
    import soundfile

    rows = ["id,file,speaker,gender,text"]
    for number in range(count):
        soundfile.write(folder / f"{number}.wav", noise(number, 1.0).samples, RATE)
        speaker = number % 40
        rows.append(
            f"take-{number},{number}.wav,s{speaker},{'female' if speaker % 2 else 'male'},Good morning {number}."
        )
    path = folder / "corpus.csv"
    path.write_text("\n".join([*rows, ""]), encoding="utf-8")
    return path


def command(quick: bool) -> None:
    from vibe_harness.pipeline.run import run
    from vibe_harness.planning.config import RunConfig
    from vibe_harness.planning.prepare import prepare
    from vibe_harness.progress import Progress

    seconds: dict[str, float] = {}

    class Stopwatch(Progress):
        @contextmanager
        def stage(self, name: str, total: int) -> Iterator[Any]:
            start = time.perf_counter()
            yield lambda steps: None
            seconds[name] = time.perf_counter() - start

    count, rounds, wave = 640 if quick else 2000, 1 if quick else 2, noise(0, 1.0)
    with tempfile.TemporaryDirectory() as name, Loopback(latency_s=0.1) as loopback:
        folder = Path(name)
        corpus = tones(folder, count)
        (folder / "models").mkdir()
        connection = f"connection: {{base_url: '{loopback.url}'}}"
        card = f"model: served\nbackend: openai\nid: loopback\nextractor: rules\n{connection}\n"
        (folder / "models" / "served.yaml").write_text(card, encoding="utf-8")
        for modality in ("audio", "transcript"):
            ratios = []
            for tag in range(rounds):
                config = RunConfig(
                    model="served", tasks=("story",), corpus=str(corpus), permutations=20, hearing_check=False, tau=1,
                    include_path=[folder], output_path=folder / f"{modality}{tag}", modality=modality,
                )  # fmt: skip
                [prepared] = prepare(config, Stopwatch())
                requests = len(prepared.plan)
                run(prepared, Stopwatch())
                ours = requests / seconds["asking served"]
                start = time.perf_counter()
                asyncio.run(_aiohttp(loopback.url, wave if modality == "audio" else None, requests, tag))
                bare = requests / (time.perf_counter() - start)
                ratios.append(ours / bare)
            share, beside = statistics.median(ratios), f"{ours:.0f} and {bare:.0f} requests/s"
            tell(f"command, {modality}", share, "of aiohttp", "at least 0.95", share >= 0.95, beside)


async def _aiohttp(url: str, wave: Waveform | None, count: int, tag: int) -> None:
    import aiohttp

    slots = asyncio.Semaphore(32)
    async with aiohttp.ClientSession() as session:

        async def one(number: int) -> None:
            async with slots:
                content: Any = f"{tag} {number}"
                if wave is not None:
                    data = base64.b64encode(wav_bytes(wave)).decode("ascii")
                    content = [
                        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
                        {"type": "text", "text": content},
                    ]
                body = {"model": "loopback", "messages": [{"role": "user", "content": content}], "max_tokens": 8}
                async with session.post(f"{url}/chat/completions", json=body) as reply:
                    assert (await reply.json())["choices"]

        await asyncio.gather(*(one(number) for number in range(count)))


def vllm_card(checkpoint: str, **connection: Any) -> ModelCard:
    settings = {"max_model_len": 2048, "enforce_eager": True, "kv_cache_memory_bytes": 128 << 20, "max_num_seqs": 32}
    return ModelCard(
        model="tiny", backend="vllm", id=checkpoint, layout=CHATML, max_seconds=30, args={"dtype": "float32"},
        connection={**settings, **connection},
    )  # fmt: skip


def batch(tag: int, count: int) -> Iterator[Request]:
    """Requests that no cache knows: each with a clip of its own."""
    for i in range(count):
        wave = noise(1000 * tag + i, 0.5)
        yield Request(f"{tag}-{i}", "t", "v", f"{i}", f"question {i}", Generation(64), lambda wave=wave: wave)


def throughput(checkpoint: str, quick: bool) -> None:
    """One engine at a time, in processes of their own: the harness's child, and a bare LLM in this one."""
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR"}
    import vllm

    from vibe_harness.backends.local.prompt_layout import joined
    from vibe_harness.backends.local.vllm import VLLMEngine, VLLMInside

    card, count, rounds = vllm_card(checkpoint), 64 if quick else 256, 1 if quick else 3
    inside = VLLMInside(card, ())
    child = VLLMEngine(card, ())
    llm: Any = inside._llm  # the very engine: what is compared is the way to it

    def bare(tag: int) -> float:
        asked = [(r, r.audio()) for r in batch(tag, count) if r.audio]
        start = time.perf_counter()
        outputs = llm.generate(
            [{"prompt": joined(card, r), "multi_modal_data": {"audio": (w.samples, RATE)}} for r, w in asked],
            vllm.SamplingParams(temperature=0, max_tokens=64, seed=0),
            use_tqdm=False,
        )
        return sum(len(o.outputs[0].token_ids) for o in outputs) / (time.perf_counter() - start)

    def ours(engine: Any, tag: int) -> float:
        asked = list(batch(tag, count))
        start = time.perf_counter()
        return sum(r.output_tokens or 0 for r in engine.generate(asked)) / (time.perf_counter() - start)

    for warm in (bare, lambda tag: ours(inside, tag), lambda tag: ours(child, tag)):
        warm(900)
    found: dict[str, list[float]] = {"LLM.generate": [], "harness, in process": [], "harness, child": []}
    for round_ in range(rounds):
        found["LLM.generate"].append(bare(3 * round_))
        found["harness, in process"].append(ours(inside, 3 * round_ + 1))
        found["harness, child"].append(ours(child, 3 * round_ + 2))
    child.close()
    for name, rates in found.items():
        ratio = statistics.median(a / b for a, b in zip(rates, found["LLM.generate"], strict=True))
        beside = f"{statistics.median(rates):.1f} tokens/s"
        tell(f"throughput, {name}", ratio, "of LLM.generate", "at least 0.95", ratio >= 0.95, beside)


def order(checkpoint: str, quick: bool) -> None:
    from vibe_harness.backends.local.vllm import VLLMInside

    clips = [noise(i, 20.0) for i in range(16)]  # 500 tokens each
    tasks = [f"Task {name}: what do you make of this speaker?" for name in "abcde"]

    class Counting(VLLMInside):
        prompt_tokens = cached_tokens = 0

        def _response(self, request: Request, output: Any, *rest: Any) -> Any:
            self.prompt_tokens += len(output.prompt_token_ids)
            self.cached_tokens += output.num_cached_tokens or 0
            return super()._response(request, output, *rest)

    # 512 bytes a token: 2 MiB of cache hold 4,096 tokens, half of the clips'; the features' cache holds 6 clips. A
    # prefix is shared in whole blocks: of 32 tokens, where a CPU's default is 128.
    card = vllm_card(checkpoint, kv_cache_memory_bytes=2 << 20, mm_processor_cache_gb=0.01, max_num_seqs=4)
    engine = Counting(card.model_copy(update={"args": {**card.args, "engine": {"block_size": 32}}}), ())

    def asked(by_clip: bool, tag: int) -> Iterator[Request]:
        pairs = [(c, t) for c in range(len(clips)) for t in range(len(tasks))]
        for c, t in pairs if by_clip else sorted(pairs, key=lambda pair: pair[1]):
            yield Request(f"{c}-{t}", "t", "v", f"{c}", tasks[t], Generation(8), lambda c=c: clips[c])

    found: dict[bool, list[tuple[float, int]]] = {True: [], False: []}
    for tag in range(1 if quick else 3):
        for by_clip in (True, False):
            engine._llm.reset_prefix_cache()
            engine._llm.reset_mm_cache()
            engine.prompt_tokens = engine.cached_tokens = 0
            start = time.perf_counter()
            assert sum(1 for _ in engine.generate(asked(by_clip, tag))) == len(clips) * len(tasks)
            found[by_clip].append((time.perf_counter() - start, engine.prompt_tokens - engine.cached_tokens))
    for by_clip, runs in found.items():
        seconds, tokens = statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)
        tell(f"order, by {'clip' if by_clip else 'task'}", seconds, "s", beside=f"{tokens:.0f} tokens of prefill")
    by_task, by_clip_ = found[False], found[True]
    times = statistics.median(a[0] / b[0] for a, b in zip(by_task, by_clip_, strict=True))
    tokens = statistics.median(a[1] / b[1] for a, b in zip(by_task, by_clip_, strict=True))
    tell("order, time", times, "times less by clip", "at least 2", times >= 2)
    tell("order, prefill", tokens, "times fewer tokens by clip", "at least 2", tokens >= 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="server, command, throughput, order; the first two by default")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    on_vllm = {"throughput": throughput, "order": order}
    served = {"server": server, "command": command}
    wanted = options.parts or [*served]
    unknown = set(wanted) - {*served, *on_vllm}
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ""
        if set(wanted) & set(on_vllm):
            from tests.tiny_checkpoint import build

            checkpoint = str(build(Path(folder)))
        for name in wanted:
            if name in served:
                served[name](options.quick)
            else:
                on_vllm[name](checkpoint, options.quick)
    return status()


if __name__ == "__main__":
    sys.exit(main())
