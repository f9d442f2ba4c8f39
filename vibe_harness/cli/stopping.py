"""What a person who stops a command is told: what is kept, as it stands in the folders, and no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from vibe_harness.errors import HarnessError

UNASKED = "stopped before anything was asked"


class Stopped(HarnessError):
    """The person stopped the command (Ctrl-C)."""

    exit_code = 130


@contextmanager
def when_stopped(words: Callable[[], str]) -> Iterator[None]:
    """Tell a person who stops the block what `words` then says. Raises Stopped."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        raise Stopped(words()) from None


def kept_words(folders: Sequence[Path], where: object) -> str:
    """What run folders keep of a command that was stopped: "stopped. 12 answers are kept in OUT: ..."."""
    from vibe_harness.store.extractions import count_extractions
    from vibe_harness.store.responses import count_answers
    from vibe_harness.store.run_folder import RunFolder

    counts = {"transcriptions": 0, "answers": 0, "readings": 0}
    for folder in map(RunFolder, folders):
        counts["transcriptions"] += count_answers(folder.transcriptions)
        counts["answers"] += count_answers(folder.responses)
        counts["readings"] += count_extractions(folder.extractions)
    kept = [f"{count:,} {name}" for name, count in counts.items() if count]
    if not kept:
        return "stopped before anything was answered: nothing is kept, and the same command begins anew"
    return f"stopped. {' and '.join(kept)} are kept in {where}: the same command goes on from there"
