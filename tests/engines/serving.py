"""vLLM's own server on a tiny checkpoint, in processes of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import PATIENCE_S, held_port, wait_until


@dataclass
class Serving:
    """A server under way."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def wait(self) -> None:
        """Until it answers."""
        wait_until(self._answers, 4 * PATIENCE_S)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server did not start"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health").close()
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def answered(self) -> int:
        """How many requests it has answered, by its own count."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as said:
            counts = re.findall(r"^vllm:request_success_total\{.*\} (\S+)$", said.read().decode(), re.MULTILINE)
        return int(sum(map(float, counts)))

    def kill(self) -> None:
        """End it and its engine at once, as a machine that fails."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def serving(checkpoint: Path, core: int | None = None) -> Iterator[Serving]:
    """Start a server. It may not answer yet: see `Serving.wait`. core: the one that it may use; all where None."""
    held = held_port()
    port = held.getsockname()[1]
    bound = [] if core is None else ["taskset", "-c", str(core)]
    process = subprocess.Popen(
        [
            *bound, sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint), "--host",
            "127.0.0.1", "--port", str(port), "--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager",
            "--max-model-len", "4096", "--kv-cache-memory-bytes", str(128 << 20),
            "--limit-mm-per-prompt", '{"audio": 1}',
            "--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}',
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    served = Serving(process, port)
    try:
        yield served
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            served.kill()
        held.close()
