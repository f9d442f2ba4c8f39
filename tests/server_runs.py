"""Model cards for the loopback server, and what a run of them stored."""

import json
from pathlib import Path
from typing import Any


def cards(folder: Path, url: str, more: str = "") -> tuple[Path, Path]:
    """Model cards of the stand-in as audio model and as extractor. more: of the audio model's."""
    paths = []
    for name, audio in (("hears", "true"), ("reads", "false")):
        path = folder / f"{name}.yaml"
        path.write_text(
            f"model: {name}\nbackend: openai\nid: loopback\naudio: {audio}\n"
            f"connection: {{base_url: '{url}', max_retries: 3}}\n" + (more if name == "hears" else ""),
            encoding="utf-8",
        )
        paths.append(path)
    return paths[0], paths[1]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
