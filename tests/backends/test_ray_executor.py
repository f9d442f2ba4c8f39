"""Ray on this machine, for real: two workers, one of them killed, engines that do not start."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from vibe_harness.backends.executors import opener_of
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
    done = vibe(tmp_path, *RUN, "--output-path", "ray", "--executor", "ray", "--executor-args", "workers=2,batch=16")
    assert done.returncode in (0, 1), done.stderr
    assert stored(tmp_path / "ray") == stored(tmp_path / "plain")
    engines = (tmp_path / "ray" / "engines.jsonl").read_text(encoding="utf-8")
    assert '"executor":"ray ' in engines and '"workers":"2"' in engines


@pytest.mark.slow
@needs_ray
def test_a_killed_worker_costs_its_batch_a_retry_and_nothing_else(tmp_path: Path) -> None:
    assert vibe(tmp_path, *RUN, "--output-path", "plain").returncode in (0, 1)
    command = [sys.executable, "-m", "vibe_harness", *RUN, "--output-path", "ray", "--executor", "ray",
               "--executor-args", "workers=2,batch=4"]  # fmt: skip
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal, killed = tmp_path / "ray" / "responses.jsonl", 0
    while process.poll() is None and not killed:
        if journal.exists() and journal.read_bytes().count(b"\n") >= 8:
            killed = kill_one("MapWorker")
        time.sleep(0.01)
    _, told = process.communicate()
    assert killed and process.returncode in (0, 1), told
    assert stored(tmp_path / "ray") == stored(tmp_path / "plain")


@pytest.mark.slow
@needs_ray
def test_a_studys_cells_are_asked_on_the_cluster(tmp_path: Path) -> None:
    models = "[{model: simulated, name: weak, model_args: {strength: 0}}, simulated]"
    study = f"study: s\nmodels: {models}\ntasks: [advisory]\ncorpora: [demo]\ndimensions: [gender]\npermutations: 20\n"
    (tmp_path / "s.yaml").write_text(study, encoding="utf-8")
    assert vibe(tmp_path, "study", "s.yaml", "--output-path", "plain").returncode == 0
    words = ("--output-path", "ray", "--executor", "ray", "--executor-args", "workers=2,batch=16")
    done = vibe(tmp_path, "study", "s.yaml", *words)
    assert done.returncode == 0, done.stderr + done.stdout
    for cell in ("weak/demo/advisory", "simulated/demo/advisory"):
        assert stored(tmp_path / "ray" / cell) == stored(tmp_path / "plain" / cell)
        assert '"executor":"ray ' in (tmp_path / "ray" / cell / "engines.jsonl").read_text(encoding="utf-8")
    merged = vibe(tmp_path, "study", "s.yaml", "--output-path", "plain", "--merge", "ray")
    assert "2 were here already" in merged.stdout


def kill_one(name: str) -> int:
    """Kill a Ray worker of ours that is at work, by the title that Ray gives its process. Returns its id, or 0."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                title = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::") and name.encode() in title:
                os.kill(int(folder.name), signal.SIGKILL)
                return int(folder.name)
    return 0


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
