"""A server that a card starts: waited for, told of where it dies, and ended with whoever started it."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, hears_interrupts, held_port, wait_until
from vibe_harness.backends.protocol import check_options, with_overrides
from vibe_harness.backends.remote.started_server import (
    StartedServer,
    check_ports,
    check_startable,
)
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.progress import Progress

HTTP = "python -m http.server {port} --bind 127.0.0.1"
# Starts a process of its own, writes down the numbers of both, and then serves nothing.
PARENT = (
    "import os, subprocess, sys; child = subprocess.Popen(['sleep', '600']); "
    "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}'); child.wait()"
)


def card(command: str, name: str = "served", port: int = 0, **serve: Any) -> ModelCard:
    connection = {"base_url": f"http://127.0.0.1:{port}/v1"}
    settings = {"command": command, "healthy": "/", **serve}
    return ModelCard(model=name, backend="openai", id="loopback", connection=connection, serve=settings)


def parents(pids: Path) -> str:
    return f"python -c {shlex.quote(PARENT)} {pids} {{port}}"


def is_running(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def numbers(pids: Path) -> list[int]:
    wait_until(lambda: pids.is_file() and len(pids.read_text(encoding="utf-8").split()) == 2)
    return [int(pid) for pid in pids.read_text(encoding="utf-8").split()]


def logs() -> set[Path]:
    import tempfile

    return set(Path(tempfile.gettempdir()).glob("vibe-harness-server-*.log"))


def test_it_is_started_on_a_free_port_and_ended_and_leaves_no_log() -> None:
    before = logs()
    one, other = StartedServer(card(HTTP), Progress()), StartedServer(card(HTTP), Progress())
    urls = [server.card.connection["base_url"] for server in (one, other)]
    assert len(set(urls)) == 2 and all(url.endswith("/v1") for url in urls)
    one.check()
    for server in (one, other):
        server.close()
        server.close()  # twice does no harm
    for url in urls:
        check_startable(card(HTTP, port=int(url.split(":")[2].removesuffix("/v1"))))  # which nothing answers at now
    assert logs() <= before


def test_one_that_dies_is_told_of_with_the_last_lines_of_its_log() -> None:
    lines = "python -c 'print(*range(100), sep=chr(10)); print(\"no CUDA device, größer\"); raise SystemExit(7)' {port}"
    with pytest.raises(EngineError, match="ended with code 7") as told:
        StartedServer(card(lines), Progress())
    said = str(told.value).splitlines()
    assert said[-1].strip() == "no CUDA device, größer" and said[-2].strip() == "99" and len(said) == 13
    kept = next(log for log in logs() if str(log) in said[0])
    assert kept.read_text(encoding="utf-8").startswith("0\n1\n")
    kept.unlink()


def test_one_that_a_signal_kills_is_told_of() -> None:
    with pytest.raises(EngineError, match=r"was killed by signal 9.*ends with: nothing"):
        StartedServer(card("python -c 'import os; os.kill(os.getpid(), 9)' {port}"), Progress())


def test_one_that_never_gets_ready_ends_at_the_time_limit_with_all_its_processes(tmp_path: Path) -> None:
    ticks: list[int] = []

    class Shown(Progress):
        from contextlib import contextmanager

        @contextmanager
        def stage(self, name: str, total: int) -> Any:
            assert "served" in name and total == 2
            yield ticks.append

    with pytest.raises(EngineError, match=r"not ready within 1\.2 s: http://127.0.0.1:\d+/health did not answer"):
        StartedServer(card(parents(tmp_path / "pids"), healthy="/health", start_timeout_s=1.2), Shown())
    assert sum(ticks) == 1
    assert not any(is_running(pid) for pid in numbers(tmp_path / "pids"))


def test_a_status_other_than_200_is_not_ready() -> None:
    with pytest.raises(EngineError, match="not ready within"):
        StartedServer(card(HTTP, healthy="/health", start_timeout_s=0.6), Progress())  # 404


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_end_of_the_command_ends_the_server_and_its_processes(number: signal.Signals, tmp_path: Path) -> None:
    own = card(parents(tmp_path / "pids"))
    program = (
        "from vibe_harness.backends.remote.started_server import *\n"
        f"StartedServer(ModelCard.model_validate_json({own.model_dump_json()!r}), Progress())"
    )
    command = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, preexec_fn=hears_interrupts, stderr=subprocess.DEVNULL
    )
    pids = numbers(tmp_path / "pids")
    assert all(is_running(pid) for pid in pids)
    command.send_signal(number)
    command.wait()
    wait_until(lambda: not any(is_running(pid) for pid in pids), 20)


def test_one_that_ignores_the_request_to_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Path(ROOT / "vibe_harness/backends/remote/server_guard.py").read_text(encoding="utf-8")
    (tmp_path / "guard.py").write_text(guard.replace("GRACE_S = 15.0", "GRACE_S = 0.2"), encoding="utf-8")
    monkeypatch.setattr("vibe_harness.backends.remote.server_guard.__file__", str(tmp_path / "guard.py"))
    stubborn = (
        "import signal, http.server, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='127.0.0.1')"
    )
    server = StartedServer(card(f"python -c {shlex.quote(stubborn)} {{port}}"), Progress())
    begun = time.monotonic()
    server.close()
    assert time.monotonic() - begun < 10
    assert server._guard is not None and server._guard.returncode == 128 + signal.SIGKILL


def test_a_port_that_another_program_has_is_refused_and_the_other_is_not_asked() -> None:
    with held_port() as held:
        held.listen()
        port = held.getsockname()[1]
        for start in (check_startable, lambda own: StartedServer(own, Progress())):
            with pytest.raises(UserError, match=f"port {port} .* is taken by another program"):
                start(card(HTTP, port=port))


def test_a_port_at_which_another_run_is_starting_a_server_is_refused(tmp_path: Path) -> None:
    with held_port() as held:
        port = held.getsockname()[1]
    first = StartedServer(card(HTTP, port=port), Progress())
    try:
        with pytest.raises(UserError, match="taken by another program"):
            StartedServer(card("sleep 600", port=port), Progress())
        first.check()
    finally:
        first.close()


def test_two_cards_on_one_port_are_refused() -> None:
    with pytest.raises(UserError, match="'one' and 'two' both have port 8001"):
        check_ports([card(HTTP, "one", 8001), card(HTTP, "two", 8001)])
    by_hand = ModelCard(model="two", backend="openai", id="x", connection={"base_url": ["http://localhost:8001/v1"]})
    with pytest.raises(UserError, match="both have port 8001"):
        check_ports([by_hand, card(HTTP, "one", 8001)])
    elsewhere = by_hand.model_copy(update={"connection": {"base_url": "http://gpu2:8001/v1"}})
    check_ports([card(HTTP, "one", 8001), elsewhere, card(HTTP, "one", 8001), card(HTTP, "two", 8002)])
    check_ports([by_hand, by_hand.model_copy(update={"model": "three"})])  # one server may hold both
    check_ports([card(HTTP, "one"), card(HTTP, "two")])  # any free port


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (card(HTTP, python="/no/such/python"), "there is no interpreter /no/such/python"),
        (card("no-such-server --port {port}"), "there is no 'no-such-server' beside"),
        (card("python -m http.server"), "with port 0 it needs {port}"),
        (card(HTTP).model_copy(update={"connection": {"base_url": "http://gpu2:8001/v1"}}), "on this machine"),
        (card(HTTP).model_copy(update={"connection": {"base_url": "http://127.0.0.1/v1"}}), "on this machine"),
        (card(HTTP).model_copy(update={"connection": {"base_url": ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]}}),
         "on this machine"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_is_a_line(own: ModelCard, said: str) -> None:
    with pytest.raises(UserError, match=said.replace("{", r"\{")) as told:
        StartedServer(own, Progress())
    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        ({"command": "serve 'open"}, "No closing quotation"),
        ({"command": "  "}, "a command is needed"),
        ({"command": "serve", "healthy": "health"}, "healthy"),
        ({"command": "serve", "start_timeout_s": 0}, "start_timeout_s"),
        ({"command": "serve", "port": 1}, "port"),
    ],
)
def test_what_a_card_may_not_say(serve: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ModelCard(model="x", backend="openai", id="x", serve=serve)


def test_an_engine_without_a_server_has_none_to_start() -> None:
    own = ModelCard(model="x", backend="gemini", id="x", serve={"command": "serve"})
    with pytest.raises(UserError, match="the backend 'gemini' has no server that could be started"):
        check_options(own)


def test_the_command_runs_in_its_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    monkeypatch.setenv("PYTHONPATH", "/modules/of/this/environment")
    shown = "python -c 'import os, sys; print(sys.prefix, os.environ.get(\"PYTHONPATH\")); sys.exit(3)' {port}"
    with pytest.raises(EngineError, match=f"{tmp_path / 'env'} None"):
        StartedServer(card(shown, python=str(tmp_path / "env/bin/python")), Progress())
    assert os.environ["PYTHONPATH"]


def test_model_args_name_another_environment_or_command() -> None:
    changed = with_overrides(card(HTTP), {"python": "/other/bin/python", "start_timeout_s": 5})
    settings = {"command": HTTP, "healthy": "/", "python": "/other/bin/python", "start_timeout_s": 5}
    assert changed.serve is not None and changed.serve.model_dump() == settings
    assert changed.identity() == card(HTTP).identity()  # nothing of it can change an answer
    with pytest.raises(UserError, match="has no such argument"):
        with_overrides(ModelCard(model="x", backend="openai", id="x"), {"python": "/other/bin/python"})
