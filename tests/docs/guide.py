"""Does what a page of the documentation says: writes the files that it shows, gives the commands that it gives.

A fence right below a line that names a file in backticks and ends with a colon is that file. A fence of `bash` is given
to bash, one of `python` to Python, in order; any other is for reading.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import ROOT

DOCS = ROOT / "docs"
_FENCE = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Step:
    """A file to write, or words for bash or Python."""

    language: str
    text: str
    file: str | None


def steps(page: str) -> Iterator[Step]:
    """The steps of a page, in order."""
    for match in _FENCE.finditer((DOCS / page).read_text(encoding="utf-8")):
        if match["file"] or match["language"] in ("bash", "python"):
            yield Step(match["language"], match["text"], match["file"])


def follow(page: str, folder: Path, replaced: Mapping[str, str] | None = None) -> str:
    """Follow a page in a folder; returns what its commands printed.

    replaced: what stands otherwise on this machine, an address. Fails where a command ends with other than 0, or 1 for
    scores that are not reliable on so few clips.
    """
    site = folder / "site"
    env = {
        **os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(site), "VIBE_HARNESS_DATA": str(folder / "data"),
        # `pip install ./package` goes into a folder of the test's own, with nothing fetched
        "PIP_TARGET": str(site), "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }  # fmt: skip
    printed = ""
    for step in steps(page):
        text = step.text
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        if step.file:
            (folder / step.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.file).write_text(text, encoding="utf-8")
            continue
        for command in [text] if step.language == "python" else text.splitlines():
            shell = [sys.executable, "-c"] if step.language == "python" else ["bash", "-euo", "pipefail", "-c"]
            done = subprocess.run(
                [*shell, command], cwd=folder, env=env, capture_output=True, text=True, encoding="utf-8", check=False
            )
            scored = done.returncode == 1 and ("NOT RELIABLE" in done.stdout or "No score" in done.stdout)
            assert done.returncode == 0 or scored, f"{page}: {command}\n{done.stdout}\n{done.stderr}"
            printed += f"$ {command}\n{done.stdout}"
    return printed
