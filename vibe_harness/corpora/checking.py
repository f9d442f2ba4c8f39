"""Checking the clips of a corpus: every distinct file once, on several cores, all faults told together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vibe_harness.corpora.audio import LFS_ADVICE, BadAudio, CheckedAudio, Fault, check_audio
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.records import Clip

Checked = tuple[Clip, CheckedAudio | BadAudio]
CORES = os.cpu_count() or 1
_BATCH = 32  # files handed to a worker at once


def check_files(paths: Sequence[Path], silence: bool = False) -> Iterator[CheckedAudio | BadAudio]:
    """check_audio of each path, in order, by a thread a core: decoding and hashing run outside the interpreter."""
    with ThreadPoolExecutor(CORES) as pool:
        batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
        for results in pool.map(lambda batch: [check_audio(path, silence) for path in batch], batches):
            yield from results


def check_clips(corpus: Corpus, clips: Sequence[Clip]) -> Iterator[Checked]:
    """Each clip with its check, in the order given. A file that several clips name is decoded once."""
    files = list(dict.fromkeys(clip.file for clip in clips))
    results: dict[str, CheckedAudio | BadAudio] = {}
    coming = zip(files, check_files([corpus.root / file for file in files], corpus.silence), strict=True)
    for clip in clips:
        while clip.file not in results:
            file, result = next(coming)
            results[file] = result
        yield clip, results[clip.file]


def describe_faults(corpus: Corpus, checked: Sequence[Checked], most: int = 50) -> str:
    """All bad clips of a check by name and reason, a line each, for a UserError; "" where there is none.

    Past `most` lines the rest is counted by kind. Where most clips are git-lfs pointers that one remedy stands alone.
    """
    bad = [(clip, result) for clip, result in checked if isinstance(result, BadAudio)]
    kinds = Counter(result.fault for _, result in bad)
    pointers = kinds[Fault.LFS_POINTER]
    total = len(checked)
    if not bad:
        return ""
    lines = []
    if pointers > total / 2:
        lines.append(
            f"corpus '{corpus.name}': {pointers} of {total} clips are git-lfs pointers, not audio: {LFS_ADVICE}, "
            f"{corpus.root}"
        )
        bad = [(clip, result) for clip, result in bad if result.fault is not Fault.LFS_POINTER]
    else:
        lines.append(f"corpus '{corpus.name}': {len(bad)} of {total} clips cannot be used:")
    lines += [f"  {clip.file}: {result.reason}" for clip, result in bad[:most]]
    rest = Counter(result.fault for _, result in bad[most:])
    if rest:
        lines.append(f"  and {sum(rest.values())} more: " + ", ".join(f"{n} {fault}" for fault, n in rest.items()))
    return "\n".join(lines)
