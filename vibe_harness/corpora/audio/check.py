"""Checking the clips of a corpus: every distinct file once, on several cores, all faults told together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from vibe_harness.corpora.audio.check_cache import check_remembered
from vibe_harness.corpora.audio.check_files import check_files
from vibe_harness.corpora.audio.decode import LFS_ADVICE, BadAudio, Fault
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.records import CheckedAudio, Clip

Checked = tuple[Clip, CheckedAudio | BadAudio]


def check_clips(corpus: Corpus, clips: Sequence[Clip], tick: Callable[[int], object] = int) -> list[Checked]:
    """Each clip with its check, in the order given. A file that several clips name is decoded once.

    Clips of one sound that stand under several speakers are all bad: at most one of them says who speaks, and where
    whole speakers are exchanged one person would count as two. tick: told of each clip that is done. A file that has
    not changed since an earlier check of the corpus is not decoded again.
    """
    files = list(dict.fromkeys(clip.file for clip in clips))
    results: dict[str, CheckedAudio | BadAudio] = {}
    coming: Iterator[tuple[str, CheckedAudio | BadAudio]]
    if corpus.silence:  # its clips are judged otherwise
        coming = zip(files, check_files([corpus.root / file for file in files], silence=True), strict=True)
    else:
        coming = check_remembered(corpus.root, files)
    checked: list[Checked] = []
    for clip in clips:
        while clip.file not in results:
            file, result = next(coming)
            results[file] = result
        checked.append((clip, results[clip.file]))
        tick(1)
    next(coming, None)  # it keeps what it found when it is asked for more
    return checked if corpus.silence else _one_speaker_each(checked)


def _one_speaker_each(checked: Sequence[Checked]) -> list[Checked]:
    said: dict[str, dict[str, str]] = defaultdict(dict)  # waveform -> speaker -> the first file
    for clip, result in checked:
        if isinstance(result, CheckedAudio):
            said[result.sha256].setdefault(clip.speaker, clip.file)
    found: list[Checked] = []
    for clip, result in checked:
        if isinstance(result, CheckedAudio) and len(said[result.sha256]) > 1:
            speaker, file = next(pair for pair in said[result.sha256].items() if pair[0] != clip.speaker)
            reason = f"the same sound as {file}, said to be of speaker '{speaker}', where this is '{clip.speaker}'"
            result = BadAudio(Fault.TWO_SPEAKERS, reason)
        found.append((clip, result))
    return found


def without_repeats(checked: Sequence[Checked]) -> list[Checked]:
    """The checks, where every further file of one sound under one speaker is bad: its answers would count twice.

    For tasks that ask each clip once; in choice tasks one recording may serve several items. A file that a manifest
    itself names in several rows stays: `corpus check` counts these.
    """
    first: dict[tuple[str, str], Clip] = {}
    found: list[Checked] = []
    for clip, result in checked:
        if isinstance(result, CheckedAudio):
            known = first.setdefault((result.sha256, clip.speaker), clip)
            if known.file != clip.file:
                reason = (
                    f"the same sound as {known.file}, of the same speaker: it would count twice: remove one of the two"
                )
                result = BadAudio(Fault.REPEATED, reason)
        found.append((clip, result))
    return found


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
