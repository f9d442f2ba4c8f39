"""Do the groups differ in how they were recorded, or in what they say, rather than in their voices? A model may answer
to that."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from vibe_harness.corpora.clip_columns import ClipColumn, columns_of
from vibe_harness.corpora.sampling import groups_of
from vibe_harness.records import CheckedAudio, Clip
from vibe_harness.stats.adjust import ALPHA, adjusted
from vibe_harness.stats.group_differences import Units, mean_difference_p, share_difference

# A difference is warned of from a medium effect on (Cohen 1988: d 0.5) where p, adjusted over what is compared, is
# under 0.05; and from a very large one in any case, since few speakers never reach significance. A difference of shares
# counts by what it has over its mean under permutation: 10 of 100 clips, or half of them.
MEDIUM, VERY_LARGE = {"d": 0.5, "TVD": 0.1}, {"d": 2.5, "TVD": 0.5}
About = Literal["recording", "content", "speaker"]
FEWEST = 2  # speakers of a group that is compared: with one, the group and the person cannot be told apart
INAUDIBLE_DB = (
    -80.0
)  # a noise floor under this is of the file's making (16 bits reach -98 dB), and is no louder or softer
HEARD_HZ = (
    8_000.0  # what a model that takes 16 kHz hears; above it, bandwidth goes with the voice as much as with the file
)
MOST_SHOWN = 4  # values named for a group, those in which the groups differ most
SEED = 0


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that is measured in each clip."""

    name: str
    of: Callable[[CheckedAudio], float]
    least: float
    """The smallest difference of two means that is warned of without significance: what is smaller is no news, though
    its spread be smaller yet."""


QUANTITIES = (
    Quantity("duration, s", lambda audio: audio.duration_s, 0.1),
    Quantity("loudness, dBFS", lambda audio: audio.level_db, 1.0),
    Quantity("noise floor, dBFS", lambda audio: max(audio.noise_db, INAUDIBLE_DB), 3.0),
    Quantity("bandwidth, kHz", lambda audio: min(audio.bandwidth_hz, HEARD_HZ) / 1000, 0.5),
    Quantity("clipped, % of samples", lambda audio: 100 * audio.clipped, 0.1),
    Quantity("pauses, % of frames", lambda audio: 100 * audio.pauses, 5.0),
)
QUALITIES: Mapping[str, Callable[[CheckedAudio], str]] = {
    "sample rate": lambda audio: f"{audio.rate} Hz",
    "codec": lambda audio: f"{audio.format}/{audio.subtype}",
    "channels": lambda audio: str(audio.channels),
}


@dataclass(frozen=True, slots=True)
class Confound:
    """One property of the recordings, or of what is said in them, compared between the groups of a dimension."""

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True)  # the words below each field stand in schemas

    dimension: str
    """What the groups are groups of: gender, accent."""
    feature: str
    """The property: "loudness, dBFS", "sample rate", or the name of a column of the manifest."""
    about: About
    """What it is a property of: the recordings, what is said or done in them, or the speakers."""
    by_group: Mapping[str, str]
    """Group -> mean over its speakers, or the values in which the groups differ most, with their shares."""
    measure: Literal["d", "TVD"]
    """"d": largest difference of two groups' means in pooled standard deviations; "TVD": the largest total variation
    distance between a group and the mean of the others, 1 where they have no value in common."""
    effect: float | None
    """null where speakers of one group are all alike, so that there is no deviation to count in."""
    between: str
    """Which groups differ most."""
    p_value: float | None
    """With speakers as units: Kruskal-Wallis for numbers, a permutation test for shares and within speakers. Adjusted
    over the properties of the dimension (Benjamini and Hochberg). null where nothing could be compared."""
    sentence: str = ""
    """The difference in words, where it is large enough to be warned of; empty otherwise."""

    @property
    def warned(self) -> bool:
        """Whether the groups differ so far that a model may answer to this property."""
        return bool(self.sentence)

    def groups(self) -> str:
        """Each group with its value."""
        return "; ".join(f"{group} {value}" for group, value in self.by_group.items())

    def size(self) -> str:
        """The effect in words."""
        if self.p_value is None:
            return f"fewer than {FEWEST} speakers a group"
        return "no spread within groups" if self.effect is None else f"{self.measure} {self.effect:.2f}"

    def chance(self) -> str:
        """The p-value as it is printed."""
        return "" if self.p_value is None else f"{self.p_value:.3f}"


@dataclass(frozen=True, slots=True)
class _Compared:
    """A property that was compared. large, medium: whether its difference is, significance aside. constant: it is the
    same in all clips, so that there is nothing to test."""

    confound: Confound
    large: bool = False
    medium: bool = False
    constant: bool = False


def confounds(
    clips: Sequence[Clip], audio: Mapping[str, CheckedAudio], dimension: str, evened: Collection[str] = ()
) -> list[Confound]:
    """Each property of the recordings, and of what is said in them, compared between the groups of a dimension.

    audio: Clip.file -> what was measured; empty where nothing was, so that only the content is compared. evened:
    columns that scores are standardised over, and that are not compared. A group of fewer than FEWEST speakers is
    shown, and not compared. Where speakers stand in several groups, they are exchanged within speakers.

    Raises UserError where the corpus lacks the dimension.
    """
    groups = groups_of(clips, dimension)
    members = [clip for own in groups.values() for clip in own]
    table = _Table(dimension, groups)
    found = []
    if audio:
        for quantity in QUANTITIES:
            values = np.array([quantity.of(audio[clip.file]) for clip in members])
            found.append(table.compare_means(quantity.name, "recording", values, quantity.least))
        for name, quality in QUALITIES.items():
            found.append(table.compare_shares(name, "recording", [quality(audio[clip.file]) for clip in members]))
    for column in columns_of(members, dimension, evened):
        found.append(table.compare_column(column))
    return _with_sentences(found)


class _Table:
    """The clips of a dimension, by unit: a speaker in a group."""

    def __init__(self, dimension: str, groups: Mapping[str, Sequence[Clip]]) -> None:
        self.dimension = dimension
        self.names = sorted(groups)
        pairs = [(name, clip.speaker) for name, own in groups.items() for clip in own]  # of each clip
        units = sorted(set(pairs))
        code = {unit: number for number, unit in enumerate(units)}
        self.unit = np.array([code[pair] for pair in pairs])  # of each clip
        number = {name: at for at, name in enumerate(self.names)}
        self.unit_group = np.array([number[group] for group, _ in units])
        speakers = [speaker for _, speaker in units]
        several = len(units) > len(set(speakers))
        sizes = Counter(self.unit_group.tolist())
        kept = [number for number in range(len(self.names)) if sizes[number] >= FEWEST]
        self.compared = np.isin(self.unit_group, kept) if len(kept) > 1 else np.zeros(len(units), dtype=bool)
        block = np.unique(speakers, return_inverse=True)[1].reshape(-1) if several else 0 * self.unit_group
        self.block = block.astype(np.int64)

    def _units(self) -> Units:
        """Those that are compared, their groups numbered anew."""
        group = np.unique(self.unit_group[self.compared], return_inverse=True)[1].reshape(-1)
        return Units(group, self.block[self.compared])

    def compare_column(self, column: ClipColumn) -> _Compared:
        if column.numbers is not None:
            return self.compare_means(column.name, column.about, column.numbers)
        return self.compare_shares(column.name, column.about, column.values)

    def compare_means(self, feature: str, about: About, values: NDArray[np.float64], least: float = 0.0) -> _Compared:
        known = np.isfinite(values)
        with np.errstate(invalid="ignore"):
            unit = np.bincount(self.unit[known], values[known], len(self.compared)) / np.bincount(
                self.unit[known], minlength=len(self.compared)
            )
        shown = {}
        for number, name in enumerate(self.names):
            own = unit[(self.unit_group == number) & np.isfinite(unit)]
            shown[name] = f"{own.mean():.3g}" if len(own) else "none"
        confound = Confound(self.dimension, feature, about, shown, "d", None, "", None)
        compared = self.compared & np.isfinite(unit)
        names = [name for number, name in enumerate(self.names) if (compared & (self.unit_group == number)).any()]
        if len(names) < 2 or compared.sum() <= len(names):
            return _Compared(confound)
        units = Units(np.unique(self.unit_group[compared], return_inverse=True)[1].reshape(-1), self.block[compared])
        values = unit[compared]
        if units.within:
            values = values - (np.bincount(units.block, values) / np.maximum(np.bincount(units.block), 1))[units.block]
        by_group = {name: values[units.group == number] for number, name in enumerate(names)}
        effect, distance, between = _largest_difference(by_group)
        p_value = mean_difference_p(units, values, SEED) if units.within else _kruskal(list(by_group.values()))
        return _Compared(
            replace(confound, effect=effect, between=between, p_value=p_value),
            large=(effect is None or effect >= VERY_LARGE["d"]) and distance >= least,
            medium=effect is None or effect >= MEDIUM["d"],
            constant=float(np.ptp(unit[compared])) < 1e-12,
        )

    def compare_shares(self, feature: str, about: About, values: Sequence[str]) -> _Compared:
        levels, code = np.unique(np.array(values, dtype=object).astype(str), return_inverse=True)
        weight = 1 / np.bincount(self.unit)[self.unit]
        sizes = np.bincount(self.unit_group, minlength=len(self.names))
        cells = np.zeros((len(self.names), len(levels)))
        np.add.at(cells, (self.unit_group[self.unit], code.reshape(-1)), weight)
        shares = cells / sizes[:, None]
        shown = _shown(self.names, levels.tolist(), shares)
        confound = Confound(self.dimension, feature, about, shown, "TVD", None, "", None)
        if not self.compared.any():
            return _Compared(confound)
        clips = self.compared[self.unit]
        unit = np.unique(self.unit[clips], return_inverse=True)[1].reshape(-1)
        value = np.unique(code.reshape(-1)[clips], return_inverse=True)[1].reshape(-1)
        found = share_difference(self._units(), unit, value, SEED)
        return _Compared(
            replace(confound, effect=found.distance, p_value=found.p_value),
            large=found.distance - found.by_chance >= VERY_LARGE["TVD"],
            medium=found.distance - found.by_chance >= MEDIUM["TVD"],
            constant=len(levels) == 1,
        )


def _shown(names: Sequence[str], levels: Sequence[str], shares: NDArray[np.float64]) -> dict[str, str]:
    """Of each group the shares of the values in which the groups differ most; all alike, of the commonest."""
    spread = shares.max(axis=0) - shares.min(axis=0)
    chosen = np.lexsort((-shares.mean(axis=0), -spread.round(9)))[:MOST_SHOWN]
    shown = {}
    for name, own in zip(names, shares, strict=True):
        told = sorted(((float(own[at]), levels[at]) for at in chosen if own[at] > 0), key=lambda one: -one[0])
        rest = 1 - sum(share for share, _ in told)
        words = [f"{level[:30]} {share:.0%}" for share, level in told] + (
            [f"others {rest:.0%}"] if rest > 0.005 else []
        )
        shown[name] = ", ".join(words)
    return shown


def _with_sentences(compared: Sequence[_Compared]) -> list[Confound]:
    """The properties with adjusted p-values, and a sentence for each that the groups differ in."""
    p_values = adjusted([None if one.constant else one.confound.p_value for one in compared], [None] * len(compared))
    found = []
    for one, p_value in zip(compared, p_values, strict=True):
        confound = one.confound if one.constant else replace(one.confound, p_value=p_value)
        if one.large or (one.medium and p_value is not None and p_value < ALPHA):
            confound = replace(confound, sentence=_sentence(confound))
        found.append(confound)
    return found


def _sentence(one: Confound) -> str:
    follows = {
        "recording": "a model may answer to the recording and not to the voice",
        "content": "a model may answer to that and not to the voice",
        "speaker": "the score may be of either",
    }
    return (
        f"{one.dimension} groups differ in {one.feature.partition(',')[0]} ({one.groups()}; {one.size()}, adjusted p "
        f"{one.p_value:.2g}): {follows[one.about]}"
    )


def _largest_difference(means: Mapping[str, NDArray[np.float64]]) -> tuple[float | None, float, str]:
    """Largest difference of two groups' means over the pooled standard deviation within all groups, that difference
    itself, and which two.

    The first is None where there is a difference and no deviation.
    """
    spare = sum(len(values) - 1 for values in means.values())
    within = sum(float(((values - values.mean()) ** 2).sum()) for values in means.values())
    distances = {pair: abs(float(means[pair[0]].mean() - means[pair[1]].mean())) for pair in combinations(means, 2)}
    pair = max(distances, key=distances.__getitem__)
    distance, deviation = distances[pair], math.sqrt(within / spare)
    if distance < 1e-9:
        return 0.0, 0.0, ""
    return distance / deviation if deviation > 1e-12 else None, distance, " and ".join(pair)


def _kruskal(samples: Sequence[NDArray[np.float64]]) -> float:
    from scipy.stats import kruskal

    if len(samples) < 2 or np.ptp(np.concatenate(samples)) < 1e-12:
        return 1.0
    return float(kruskal(*samples).pvalue)
