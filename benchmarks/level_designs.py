"""Designs with unlike clips, habits, groups and lists, in which the default test is to hold its level.

A true null in every one: the groups' expected shares are the same, answers weighing alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vibe_harness.stats.simulation import answers, zipf

SPREAD = 1.2
"""Standard deviation of the logarithm of the clips, in designs where clips differ from speaker to speaker."""


@dataclass(frozen=True)
class LevelDesign:
    """One value for each group. clips: of a speaker; negative: their median, log-normal over speakers. items: values a
    clip, all alike where `alike`. refused: share of clips without an answer. half: one speaker of the first group has
    half of the group's clips. attributes: share a speaker's habits in part."""

    sizes: tuple[int, ...]
    clips: tuple[int, ...]
    habits: tuple[float, ...]
    items: tuple[int, ...] = ()
    alike: bool = False
    refused: tuple[float, ...] = ()
    half: bool = False
    values: int = 20
    shares: tuple[float, ...] = ()
    attributes: int = 1

    @property
    def name(self) -> str:
        parts = [
            f"{' v '.join(map(str, self.sizes))} speakers",
            f"{' v '.join(f'~{-clip}' if clip < 0 else str(clip) for clip in self.clips)} clips",
            f"habit {' v '.join(f'{habit:g}' for habit in dict.fromkeys(self.habits))}",
            f"lists of {' v '.join(map(str, self.items))}{' alike' if self.alike else ''}" if self.items else "",
            f"refused {' v '.join(map(str, self.refused))}" if self.refused else "",
            "half by one speaker" if self.half else "",
            f"{self.values} values" if self.values != 20 else "",
            f"shares {self.shares}" if self.shares else "",
            f"{self.attributes} attributes" if self.attributes > 1 else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def groups(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def runs(self, rng: np.random.Generator, number: int) -> Iterator[list[np.ndarray]]:
        """Simulated runs: a table (S, V) for each attribute, not filtered."""
        for _ in range(number):
            clips = self._clips(rng)
            yield [self._table(rng, clips) for _ in range(self.attributes)]

    def _clips(self, rng: np.random.Generator) -> np.ndarray:
        typical = np.repeat(self.clips, self.sizes)
        drawn = np.ceil(np.exp(rng.normal(np.log(np.abs(typical)), SPREAD))).astype(np.int64)
        clips = np.where(typical < 0, drawn, typical)
        if self.half:
            clips[0] = clips[1 : self.sizes[0]].sum()
        return clips

    def _table(self, rng: np.random.Generator, clips: np.ndarray) -> np.ndarray:
        groups = self.groups
        base = np.array(self.shares) if self.shares else zipf(self.values)
        number = rng.binomial(clips, 1 - np.array(self.refused)[groups]) if self.refused else clips
        items = np.array(self.items)[groups] if self.items else np.ones(groups.size, dtype=np.int64)
        table = np.zeros((groups.size, base.size), dtype=np.int64)
        for group, habit in enumerate(self.habits):
            rows = np.flatnonzero(groups == group)
            wanted = number[rows] * (1 if self.alike else items[rows])
            table[rows] = answers(rng, base[None], np.zeros(rows.size, dtype=np.int64), wanted, habit)
        return table * items[:, None] if self.alike else table


def _pairs(sizes: tuple[int, int], clips: tuple[int, int], *habits: float) -> list[LevelDesign]:
    return [LevelDesign(sizes, clips, (habit, habit)) for habit in habits]


TABLE = [
    *_pairs((20, 20), (100, 5), 0),
    *_pairs((20, 20), (100, 20), 0, 0.01),
    *_pairs((20, 20), (60, 6), 0),
    *_pairs((20, 20), (40, 20), 0),
    *_pairs((43, 48), (82, 41), 0),
    LevelDesign((5, 40), (50, 50), (0.3, 0.05)),
    LevelDesign((15, 15, 15), (50, 50, 5), (0, 0, 0)),
    *_pairs((40, 8), (100, 10), 0.05),
    *_pairs((40, 8), (5, 100), 0, 0.1),
    LevelDesign((20, 20), (60, 6), (0, 0), refused=(0.3, 0.0)),
    LevelDesign((20, 20), (40, 40), (0.05, 0.05), items=(3, 1)),
    LevelDesign((20, 20), (40, 40), (0.0, 0.0), items=(3, 1), alike=True),
]
"""Those in which the statistic without its noise rejected from none to 0.99 of true nulls."""

FURTHER = [
    *_pairs((20, 20), (100, 5), 0.01, 0.1, 0.3),
    *_pairs((20, 20), (60, 6), 0.1, 0.3),
    *_pairs((43, 48), (82, 41), 0.1),
    *_pairs((10, 10), (60, 6), 0, 0.1),
    *_pairs((12, 30), (200, 10), 0.05),
    *_pairs((30, 12), (10, 200), 0.05),
    *_pairs((40, 20), (1, 300), 0, 0.1),
    *_pairs((200, 4), (1, 300), 0.1),
    *_pairs((20, 20), (-12, -12), 0, 0.1),
    *_pairs((10, 10), (-12, -12), 0.1),
    *_pairs((20, 20), (-12, -60), 0.05),
    *_pairs((3, 20), (50, 50), 0.1),
    *_pairs((3, 20), (100, 5), 0.1),
    *_pairs((3, 20), (5, 100), 0.1),
    *_pairs((4, 4), (100, 5), 0.1),
    *_pairs((4, 4), (60, 30), 0.1),
    *_pairs((2, 20), (500, 5), 0.1),
    LevelDesign((40, 5), (50, 50), (0.3, 0.05)),
    LevelDesign((20, 20), (50, 50), (0.3, 0.02)),
    LevelDesign((20, 20), (100, 5), (0.3, 0.05)),
    LevelDesign((20, 20), (100, 5), (0.05, 0.3)),
    LevelDesign((10, 10), (60, 6), (0.05, 0.3)),
    LevelDesign((20, 20), (20, 20), (0.1, 0.1), half=True),
    LevelDesign((15, 15, 15), (50, 50, 5), (0.1, 0.1, 0.1)),
    LevelDesign((15, 15, 15), (50, 50, 50), (0.3, 0.05, 0.05)),
    LevelDesign((15, 15, 15), (50, 50, 50), (0.5, 0.0, 0.0)),
    LevelDesign((10, 30, 30), (50, 20, 20), (0.3, 0.05, 0.05)),
    LevelDesign((10,) * 6, (50,) * 6, (0.5, *(0.02,) * 5)),
    LevelDesign((3, 5, 8, 12, 20, 30), (100, 50, 20, 10, 5, 5), (0.1,) * 6),
    LevelDesign((3, 5, 8, 12, 20, 30), (-12,) * 6, (0.1,) * 6),
    LevelDesign((4,) * 6, (400, 400, 400, 100, 100, 100), (0.1,) * 6),
    LevelDesign((150, 150), (1, 1), (0, 0), refused=(0.8, 0.3)),
    LevelDesign((150, 80, 60, 50, 40, 26), (1,) * 6, (0,) * 6, refused=(0.5, 0.5, 0.5, 0.1, 0.1, 0.1)),
    LevelDesign((20, 20), (60, 6), (0.1, 0.1), values=100),
    LevelDesign((20, 20), (60, 6), (0.1, 0.1), values=3),
    LevelDesign((20, 20), (100, 5), (0.1, 0.1), shares=(0.03, 0.97)),
    LevelDesign((48, 43), (82, 20), (0.1, 0.1), shares=(0.1, 0.9)),
    LevelDesign((20, 20), (60, 6), (0.05, 0.05), attributes=6),
    LevelDesign((20, 20), (40, 40), (0.05, 0.05), refused=(0.6, 0.0), attributes=4),
    LevelDesign((20, 20), (40, 40), (0.1, 0.1), items=(3, 1), alike=True),
]
