"""Splitting clips that are longer than a model takes, at the quietest places."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from vibe_harness.records import Waveform

_FRAME_S = 0.025


def split(wave: Waveform, longest_s: float) -> list[Waveform]:
    """Split a clip into as few pieces as possible, none longer than `longest_s` seconds. No samples are lost.

    The pieces have about equal length. Each cut is at the quietest 25 ms within a tenth of a piece of the even
    position, as far as the limit allows, so that words stay whole. Raises ValueError for a limit under 0.1 s.
    """
    if longest_s < 0.1:
        raise ValueError(f"pieces of {longest_s} s are too short to be heard")
    longest = int(longest_s * wave.rate)
    count = math.ceil(len(wave.samples) / longest)
    if count <= 1:
        return [wave]
    cuts = [0]
    for piece in range(1, count):
        even = round(len(wave.samples) * piece / count)
        slack = len(wave.samples) // count // 10
        rest = len(wave.samples) - (count - piece) * longest  # an earlier cut would make the rest too long
        first, last = max(even - slack, rest, cuts[-1] + 1), min(even + slack, cuts[-1] + longest)
        cuts.append(_quietest(wave, first, last))
    cuts.append(len(wave.samples))
    return [Waveform(wave.samples[start:end], wave.rate) for start, end in pairwise(cuts)]


def _quietest(wave: Waveform, first: int, last: int) -> int:
    """The sample from `first` to `last` (inclusive) around which a frame has the least power."""
    frame = max(1, int(_FRAME_S * wave.rate))
    if last - first < frame:
        return last
    power = np.cumsum(np.square(wave.samples[first:last], dtype=np.float64))
    return first + int(np.argmin(power[frame:] - power[:-frame])) + frame // 2 if last - first > frame else last
