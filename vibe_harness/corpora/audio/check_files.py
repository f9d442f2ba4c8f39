"""Checking files of audio on several cores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vibe_harness.corpora.audio.decode import BadAudio, check_audio
from vibe_harness.records import CheckedAudio

CORES = os.cpu_count() or 1
_BATCH = 32  # files handed to a worker at once


def check_files(paths: Sequence[Path], silence: bool = False) -> Iterator[CheckedAudio | BadAudio]:
    """check_audio of each path, in order, by a thread a core: decoding and hashing run outside the interpreter."""
    with ThreadPoolExecutor(CORES) as pool:
        batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
        for results in pool.map(lambda batch: [check_audio(path, silence) for path in batch], batches):
            yield from results
