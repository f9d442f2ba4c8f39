"""Engines in a process of their own, shown on backends that misbehave."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from vibe_harness.backends.local.subprocess_engine import ChildEngine
from vibe_harness.backends.protocol import Options
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.records import Generation, Outcome, Request, Response, Waveform


class Echo:
    """Answers with the clip's loudest sample; prompts make it misbehave."""

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        if card.id == "unknown":
            raise UserError("no such model")
        self.taken = 0

    def describe(self) -> Mapping[str, str]:
        return {"pid": str(os.getpid())}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            if request.prompt == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if request.prompt == "raise":
                print("on my way down")
                raise ZeroDivisionError("oh")
            if request.prompt == "refuse":
                raise EngineError("cannot go on")
            if request.prompt == "hang":
                time.sleep(600)
            wave = request.audio() if request.audio else None
            yield Response(request.id, Outcome.OK, "none" if wave is None else f"{wave.samples.max():.2f} {wave.rate}")

    def close(self) -> None:
        pass


class EchoEngine(ChildEngine):
    Arguments = Options
    Connection = Options
    inside = "tests.backends.local.test_subprocess_engine:Echo"
    packages = ("numpy",)
    extra = "echo"
    ahead = 4


def ask(number: int, prompt: str = "x", level: float | None = None) -> Request:
    wave = None if level is None else Waveform(np.full(800, level, np.float32), 16_000)
    audio = None if wave is None else lambda: wave
    return Request(str(number), "t", "v", "c", prompt, Generation(8), audio)


def engine(**card: Any) -> EchoEngine:
    return EchoEngine(ModelCard(model="m", backend="openai", **{"id": "x", **card}), ())


def alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def test_requests_and_clips_go_over_and_answers_come_back() -> None:
    running = engine()
    taken = 0

    def source() -> Iterator[Request]:
        nonlocal taken
        for i in range(300):
            taken += 1
            yield ask(i, level=i / 300)

    for done, response in enumerate(running.generate(source())):
        assert response.text == f"{int(response.request) / 300:.2f} 16000"
        assert taken - done <= EchoEngine.ahead
    assert [r.text for r in running.generate([ask(1), ask(2)])] == ["none", "none"]  # it can be asked again
    pid, log = running.describe()["pid"], running._log
    assert int(pid) != os.getpid()
    running.close()
    assert not alive(pid) and not log.exists()


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("die", r"killed by signal 9, probably because memory ran out"),
        ("raise", r"failed: ZeroDivisionError: oh\. Its output: .*\.log"),
        ("refuse", r"^cannot go on$"),
    ],
)
def test_an_engine_that_fails(prompt: str, message: str) -> None:
    running = engine()
    log, got = running._log, []
    with pytest.raises(EngineError, match=message):
        for response in running.generate([ask(0), ask(1), ask(2, prompt), ask(3)]):
            got.append(response.request)
    assert got == ["0", "1"]
    assert not alive(running.describe()["pid"])
    if prompt == "raise":
        assert "on my way down" in log.read_text(encoding="utf-8")
    log.unlink(missing_ok=True)


def test_stopping_early_ends_a_busy_engine_at_once() -> None:
    running = engine()
    stream = running.generate([ask(0), ask(1, "hang")])
    assert next(iter(stream)).request == "0"
    start = time.monotonic()
    running.close()
    assert time.monotonic() - start < 300 and not alive(running.describe()["pid"])  # half of what it would take


def test_a_model_that_cannot_be_opened() -> None:
    with pytest.raises(UserError, match="no such model"):
        engine(id="unknown")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EchoEngine, "packages", ("no_such_package",))
    with pytest.raises(UserError, match=r"needs the package 'no_such_package': pip install 'vibe-harness\[echo\]'"):
        engine()


def test_a_clip_at_a_wrong_rate_never_reaches_the_engine() -> None:
    running = engine()
    with pytest.raises(EngineError, match="came at 16000 Hz, but 'm' takes 8000 Hz"):
        wrong = ModelCard(model="m", backend="openai", id="x", sample_rate=8000)
        running.card = wrong
        list(running.generate([ask(0, level=0.1)]))
