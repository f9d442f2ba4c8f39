"""A study whose cards start their servers, each in an environment of its own."""

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import QuickCommand
from tests.environments import environment
from tests.server_runs import lines
from tests.support import held_port

# The server of an environment: it serves the one model that is installed there.
SERVER = """\
#!{python}
import asyncio, os, sys, pathlib
import model_of_this_environment
from tests.loopback import Script, _serve
pathlib.Path(sys.argv[2], model_of_this_environment.NAME).write_text(str(os.getpid()))
script = Script(port=int(sys.argv[1]), models=[model_of_this_environment.NAME], latency_s=float(sys.argv[3]))
asyncio.run(_serve(script, print))
"""
STUDY = """\
study: apart
models: [one.yaml, two.yaml]
tasks: [advisory]
corpora: [tones/manifest.csv]
dimensions: [gender]
extractor: rules
tau: 1
permutations: 19
"""


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two virtual environments; what each serves is installed in no other."""
    found = {}
    for name in ("one", "two"):
        folder = tmp_path_factory.mktemp("environment") / name
        environment(folder, {"model_of_this_environment": f"NAME = {name!r}\n"})
        program = folder / "bin/serve-model"
        program.write_text(SERVER.format(python=folder / "bin/python"), encoding="utf-8")
        program.chmod(0o755)
        found[name] = folder
    return found


@pytest.fixture(autouse=True)
def _logs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of servers that ended by themselves are kept: with the test's other files, here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def card(folder: Path, name: str, environment: Path, port: int = 0, latency: float = 0) -> None:
    folder.joinpath(f"{name}.yaml").write_text(
        f"model: {name}\nbackend: openai\nid: {name}\n"
        f"connection: {{base_url: 'http://127.0.0.1:{port}/v1', max_retries: 0, concurrency: 1}}\n"
        f"serve: {{command: 'serve-model {{port}} {folder} {latency}', python: {environment}/bin/python, "
        "healthy: /v1/models}\n",
        encoding="utf-8",
    )


def ended(folder: Path, name: str) -> bool:
    try:
        os.kill(int(folder.joinpath(name).read_text(encoding="utf-8")), 0)
    except ProcessLookupError:
        return True
    return False


def test_two_models_that_cannot_share_an_environment_stand_in_one_study(
    environments: dict[str, Path], tones: Path, quick: QuickCommand
) -> None:
    for name, folder in environments.items():
        card(quick.folder, name, folder)
    quick.folder.joinpath("apart.yaml").write_text(STUDY, encoding="utf-8")
    asked_in_vain = quick("study", "apart.yaml", "--output-path", "none", check=1)
    assert asked_in_vain.stdout.count("no server answers at") == 2 and "--allow-serve" in asked_in_vain.stdout
    assert not quick.folder.joinpath("one").exists()

    done = quick("study", "apart.yaml", "--allow-serve", "--output-path", "out")
    assert "2 done, 0 running, 0 failed, 0 left" in done.stdout, done.stdout + done.stderr
    for name, folder in environments.items():
        run = quick.folder / "out" / name / "tones/advisory"
        assert {row["served_model"] for row in lines(run / "responses.jsonl")} == {name}
        [engine] = [row for row in lines(run / "engines.jsonl") if row["role"] == "model"]
        assert engine["server_python"] == f"{folder}/bin/python" and "serve-model" in engine["server_command"]
        assert ended(quick.folder, name)
        quick("run-check", run, check=0)
    quick("study", "apart.yaml", "--output-path", "out")  # what is done needs no server


def test_two_cards_on_one_port_are_told_before_anything_starts(
    environments: dict[str, Path], tones: Path, quick: QuickCommand
) -> None:
    with held_port() as held:
        port = held.getsockname()[1]
    for name, folder in environments.items():
        card(quick.folder, name, folder, port)
    quick.folder.joinpath("apart.yaml").write_text(STUDY, encoding="utf-8")
    said = quick.refuses("study", "apart.yaml", "--allow-serve")
    assert f"'one' and 'two' both have port {port}" in said and len(said.splitlines()) == 1
    assert not quick.folder.joinpath("runs").exists() and not quick.folder.joinpath("one").exists()


def test_another_command_of_the_card_is_another_model(
    environments: dict[str, Path], tones: Path, quick: QuickCommand
) -> None:
    """As a card whose --model-path was changed from the old checkpoint to the new one."""
    command = (
        "--model", "one.yaml", "--extractor", "rules", "--tasks", "advisory", "--corpus", tones, "--tau", 1,
        "--permutations", 19, "--output-path", "run", "--allow-serve", "--no-hearing-check",
    )  # fmt: skip
    card(quick.folder, "one", environments["one"])
    quick(*command, "--max-requests", 12)
    card(quick.folder, "one", environments["one"], latency=0.001)
    said = quick.refuses(*command)
    assert "may load other weights" in said and "--fresh" in said and "--same-model" in said
    assert len(lines(quick.folder / "run/responses.jsonl")) == 12
    quick(*command, "--same-model")
    assert len(lines(quick.folder / "run/responses.jsonl")) == 24


@pytest.mark.slow
def test_an_extractor_starts_its_server_too_and_a_ray_cluster_none(
    environments: dict[str, Path], tones: Path, quick: QuickCommand
) -> None:
    card(quick.folder, "one", environments["one"])
    card(quick.folder, "two", environments["two"])
    with quick.folder.joinpath("two.yaml").open("a", encoding="utf-8") as file:
        file.write("audio: false\n")
    command = (
        "--model", "one.yaml", "--extractor", "two.yaml", "--tasks", "advisory", "--corpus", tones, "--tau", 1,
        "--permutations", 19, "--output-path", "run",
    )  # fmt: skip
    assert "only with --executor local" in quick.refuses(*command, "--allow-serve", "--executor", "ray")
    quick.json(*command, "--allow-serve")
    assert ended(quick.folder, "one") and ended(quick.folder, "two")
    readings = lines(quick.folder / "run/extractions.jsonl")
    assert len(readings) == 24 and not any("error" in row["readings"].values() for row in readings)


@pytest.mark.slow
def test_one_that_dies_in_the_middle_is_told_of_and_the_same_command_goes_on(
    environments: dict[str, Path], tones: Path, quick: QuickCommand
) -> None:
    card(quick.folder, "one", environments["one"], latency=0.02)
    command = (
        "--model", "one.yaml", "--extractor", "rules", "--tasks", "advisory", "--corpus", tones, "--tau", 1,
        "--permutations", 19, "--output-path", "run", "--allow-serve",
    )  # fmt: skip
    from vibe_harness.store.journal import Journal

    appended, real = [], Journal.append

    def killing(journal: Journal, row: Any) -> Any:
        if "outcome" in row:
            appended.append(row["outcome"])
            if len(appended) == 5:
                os.kill(int((quick.folder / "one").read_text(encoding="utf-8")), signal.SIGKILL)
        return real(journal, row)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Journal, "append", killing)
        broken = quick(*command, check=3)
    assert "the server of 'one' was killed by signal 9. Its log, " in broken.stderr
    assert 5 <= len(appended) < 24
    quick.json(*command)
    last = {row["request"]: row["outcome"] for row in lines(quick.folder / "run/responses.jsonl")}
    assert list(last.values()) == ["ok"] * 24
