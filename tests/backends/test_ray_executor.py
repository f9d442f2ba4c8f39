"""Ray on this machine, for real: two workers, one of them killed, engines that do not start."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Loopback, texts_of
from tests.support import wait_until
from vibe_harness.backends.executors import opener_of
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import UserError

needs_ray = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("ray") is None, reason="needs the package ray (the extra 'ray')"
)
RUN = ("--model", "simulated", "--tasks", "story,advisory", "--permutations", "200", "--model-args", "refusal_rate=0.1")


def vibe(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vibe_harness", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)


def stored(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Responses by request, times aside, and scores."""
    responses = [json.loads(line) for line in (folder / "responses.jsonl").read_text(encoding="utf-8").splitlines()]
    for response in responses:
        del response["time"], response["seconds"]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return sorted(responses, key=lambda response: response["request"]), results["tasks"]


@pytest.mark.parametrize(
    ("executor", "arguments", "said"),
    [
        ("rai", {}, "unknown executor 'rai'. Did you mean 'ray'"),
        ("local", {"workers": 2}, "the executor 'local' takes none"),
        ("ray", {"worker": 2}, "takes no such argument. Did you mean 'workers'"),
        ("ray", {"workers": 0}, "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_said_before_ray_is_looked_for(executor: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        opener_of(executor, arguments)


@pytest.mark.slow
@needs_ray
def test_two_workers_answer_as_one_engine_does(tmp_path: Path) -> None:
    assert vibe(tmp_path, *RUN, "--output-path", "plain").returncode in (0, 1)
    shared = ("--executor", "ray", "--executor-args", "workers=2,batch=16,cpus=0.5")
    done = vibe(tmp_path, *RUN, "--output-path", "ray", *shared)
    assert done.returncode in (0, 1), done.stderr
    assert stored(tmp_path / "ray") == stored(tmp_path / "plain")
    engines = (tmp_path / "ray" / "engines.jsonl").read_text(encoding="utf-8")
    assert '"executor":"ray ' in engines and '"workers":"2"' in engines


@pytest.mark.slow
@needs_ray
def test_a_killed_worker_costs_its_batch_a_retry_and_nothing_else(tmp_path: Path) -> None:
    with Loopback(hold_after=60, says=texts_of(find_corpus("demo"))) as server:
        (tmp_path / "served.yaml").write_text(
            f"model: served\nbackend: openai\nid: loopback\nconnection: {{base_url: '{server.url}'}}\n",
            encoding="utf-8",
        )
        words = ("--model", "served.yaml", "--extractor", "rules", "--tasks", "story,advisory", "--corpus", "demo",
                 "--permutations", "200")  # fmt: skip
        command = [sys.executable, "-m", "vibe_harness", *words, "--output-path", "ray", "--executor", "ray",
                   "--executor-args", "workers=2,batch=4,cpus=0.5"]  # fmt: skip
        with (tmp_path / "told").open("w+", encoding="utf-8") as told:
            process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=told)
            wait_until(lambda: process.poll() is not None or server.seen()["held"] > 0)
            kill_one("MapWorker", process.pid)
            server.go_on()
            process.wait()
        assert process.returncode in (0, 1), (tmp_path / "told").read_text(encoding="utf-8")
        assert vibe(tmp_path, *words, "--output-path", "plain").returncode in (0, 1)
    assert stored(tmp_path / "ray") == stored(tmp_path / "plain")


@pytest.mark.slow
@needs_ray
def test_a_studys_cells_are_asked_on_the_cluster(tmp_path: Path) -> None:
    models = "[{model: simulated, name: weak, model_args: {strength: 0}}, simulated]"
    study = f"study: s\nmodels: {models}\ntasks: [advisory]\ncorpora: [demo]\ndimensions: [gender]\npermutations: 20\n"
    (tmp_path / "s.yaml").write_text(study, encoding="utf-8")
    assert vibe(tmp_path, "study", "s.yaml", "--output-path", "plain").returncode == 0
    words = ("--output-path", "ray", "--executor", "ray", "--executor-args", "workers=2,batch=16,cpus=0.5")
    done = vibe(tmp_path, "study", "s.yaml", *words)
    assert done.returncode == 0, done.stderr + done.stdout
    for cell in ("weak/demo/advisory", "simulated/demo/advisory"):
        assert stored(tmp_path / "ray" / cell) == stored(tmp_path / "plain" / cell)
        assert '"executor":"ray ' in (tmp_path / "ray" / cell / "engines.jsonl").read_text(encoding="utf-8")
    merged = vibe(tmp_path, "study", "s.yaml", "--output-path", "plain", "--merge", "ray")
    assert "2 were here already" in merged.stdout


def kill_one(name: str, of: int) -> None:
    """Kill a Ray worker of that process that is at work, by the title that Ray gives its process."""
    titles, parents = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                titles[int(folder.name)] = (folder / "cmdline").read_bytes()
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])

    def ancestors(pid: int) -> Iterator[int]:
        while pid := parents.get(pid, 0):
            yield pid

    workers = [pid for pid, title in titles.items() if title.startswith(b"ray::") and name.encode() in title]
    ours = [pid for pid in workers if of in ancestors(pid)]
    assert ours, f"no worker among {sorted(titles.values())}"
    os.kill(ours[0], signal.SIGKILL)


@pytest.mark.slow
@needs_ray
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("workers=1000", "1000 workers of 1 CPUs need 1000"),
        ("workers=1,gpus=8", "1 workers of 8 GPUs need 8"),
    ],
)
def test_a_cluster_too_small_is_refused(tmp_path: Path, arguments: str, said: str) -> None:
    done = vibe(tmp_path, *RUN, "--output-path", "ray", "--executor", "ray", "--executor-args", arguments)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@needs_ray
def test_an_engine_that_does_not_start_on_a_worker_is_one_line(tmp_path: Path) -> None:
    card = tmp_path / "away.yaml"
    card.write_text(
        "model: away\nbackend: openai\nid: m\nconnection: {base_url: 'http://127.0.0.1:9/v1'}\n", encoding="utf-8"
    )
    done = vibe(
        tmp_path, "--model", "away.yaml", "--tasks", "story", "--corpus", "demo", "--extractor", "rules",
        "--executor", "ray", "--output-path", "ray",
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "no server answers at http://127.0.0.1:9/v1" in done.stderr and "Traceback" not in done.stderr
