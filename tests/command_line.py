"""What the command-line tests share: running the command as a person does, and small corpora of synthetic tones."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile


class Command:
    """Runs `vibe-harness` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: object, check: int | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "vibe_harness", *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if check is not None:
            assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *arguments: object) -> dict:
        done = self(*arguments, "--json")
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def refuses(self, *arguments: object) -> str:
        """Run what must be refused: exit 2, a message of a few lines, no traceback. Returns the message."""
        done = self(*arguments)
        assert done.returncode == 2, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        return done.stderr


class QuickCommand(Command):
    """The same without a process of its own: for what does not hang on one. An exception fails the test."""

    def __call__(self, *arguments: object, check: int | None = None) -> subprocess.CompletedProcess[str]:
        from vibe_harness.cli.main import main

        words = [str(argument) for argument in arguments]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(words)
            except SystemExit as end:
                code = int(end.code or 0)
        done = subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
        if check is not None:
            assert code == check, f"exit {code}\n{done.stdout}\n{done.stderr}"
        return done


@pytest.fixture
def quick(tmp_path: Path) -> QuickCommand:
    return QuickCommand(tmp_path)


@pytest.fixture
def vibe(tmp_path: Path) -> Command:
    return Command(tmp_path)


def tone(path: Path, pitch: float, seconds: float = 0.6, rate: int = 16_000) -> None:
    """A buzz with harmonics, which has a pitch to hear."""
    time = np.arange(int(seconds * rate)) / rate
    wave = sum(np.sin(2 * np.pi * pitch * k * time) / k for k in range(1, 12))
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, 0.2 * wave, rate)


@pytest.fixture
def tones(tmp_path: Path) -> Path:
    """A corpus of 8 speakers, 4 low and 4 high, with 3 clips each; returns its manifest."""
    rows = ["file,speaker,gender"]
    for speaker in range(8):
        high = speaker % 2
        for take in range(3):
            name = f"s{speaker}/{take}.wav"
            tone(tmp_path / "tones" / name, (200 if high else 110) + 3 * speaker + take)
            rows.append(f"{name},s{speaker},{'female' if high else 'male'}")
    manifest = tmp_path / "tones" / "manifest.csv"
    manifest.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return manifest
