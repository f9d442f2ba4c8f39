"""Several runs of one question: RUN, and beside it RUN-2, RUN-3, ..., which `--fresh` starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vibe_harness.errors import UserError
from vibe_harness.store.atomic_files import read_json
from vibe_harness.store.run_folder import RunFolder

NUMBER = r"-([1-9]\d{0,8})"  # how the name of a further run ends


def newest_run(base: Path, identity: Mapping[str, Any]) -> Path:
    """The folder that a command without `--fresh` goes on with.

    It is the last run of that identity which `--fresh` started beside `base`, else `base` itself. A folder RUN-2 that
    was made otherwise is none of them. Raises UserError where the run.json of one beside it cannot be read.
    """
    fresh = {number: path for number, path in _beside(base) if _is_fresh_run(path, identity)}
    return fresh[max(fresh)] if fresh else base


def fresh_run(base: Path, identity: Mapping[str, Any]) -> Path:
    """The folder in which `--fresh` starts: `base` or the newest run, where nothing was asked yet, else a new one.

    Raises UserError where the newest run was started so and is not finished: its answers would be paid for twice.
    """
    newest = newest_run(base, identity)
    folder = RunFolder(newest)
    if is_unanswered(folder):
        return newest
    if _is_fresh_run(newest, identity) and not folder.results.is_file():
        raise UserError(
            f"{newest}: this run was started with --fresh and is not finished: leave --fresh out to go on with it; to "
            "start another all the same, delete the folder or name a new one with --output-path"
        )
    taken = [number for number, _ in _beside(base)]
    return base.with_name(f"{base.name}-{max(taken, default=1) + 1}")


def is_unanswered(folder: RunFolder) -> bool:
    """Whether nothing was paid for in a run folder yet: an engine may have been started, but none has answered."""
    journals = (folder.transcriptions, folder.responses, folder.extractions)
    return not any(path.exists() and path.stat().st_size for path in journals)


def fresh_number(path: Path) -> int:
    """3 for RUN-3, the newer the higher; 1 for a folder whose name ends otherwise."""
    found = re.search(NUMBER + "$", path.name)
    return int(found[1]) if found else 1


def has_fresh_runs(base: Path) -> bool:
    """Whether there are runs beside `base`, of whatever identity."""
    return any((path / "run.json").is_file() for _, path in _beside(base))


def _beside(base: Path) -> Iterator[tuple[int, Path]]:
    """Number and path of what has the name of a further run."""
    form = re.compile(re.escape(base.name) + NUMBER)
    if base.parent.is_dir():
        for path in base.parent.iterdir():
            match = form.fullmatch(path.name)
            if match and int(match[1]) > 1:
                yield int(match[1]), path


def _is_fresh_run(path: Path, identity: Mapping[str, Any]) -> bool:
    run_json = path / "run.json"
    if not run_json.is_file():
        return False
    data = read_json(run_json)
    return isinstance(data, dict) and data.get("fresh") is True and data.get("asked") == identity
