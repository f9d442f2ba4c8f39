"""Do the groups differ in their recordings rather than in their voices? A model may answer to the channel."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vibe_harness.corpora.audio.decode import CheckedAudio
from vibe_harness.corpora.sampling import groups_of
from vibe_harness.records import Clip

# A difference is warned of from a medium effect (Cohen 1988) when chance alone gives one like it less than once in
# twenty, and from a very large one in any case: few speakers never reach significance.
MEDIUM, VERY_LARGE = {"d": 0.5, "V": 0.3}, {"d": 2.5, "V": 0.8}
ALPHA = 0.05
FEWEST = 2  # speakers of a group that is compared: with one, the group and the person cannot be told apart

QUANTITIES: Mapping[str, Callable[[CheckedAudio], float]] = {
    "duration, s": lambda audio: audio.duration_s,
    "loudness, dBFS": lambda audio: audio.level_db,
    "clipped, % of samples": lambda audio: 100 * audio.clipped,
    "pauses, % of frames": lambda audio: 100 * audio.pauses,
}
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
    about: Literal["recording", "content"]
    """What it is a property of."""
    by_group: Mapping[str, str]
    """Group -> mean over its speakers, or the values of its speakers with their shares."""
    measure: Literal["d", "V"]
    """"d": largest difference of two groups' means in pooled standard deviations; "V": Cramér's V."""
    effect: float | None
    """null where speakers of one group are all alike, so that there is no deviation to count in."""
    between: str
    """Which groups differ most."""
    p_value: float | None
    """Kruskal-Wallis over speakers, or chi-squared; null where nothing could be compared."""
    sentence: str
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
        return _size(self.measure, self.effect, self.p_value)

    def chance(self) -> str:
        """The p-value as it is printed."""
        return "" if self.p_value is None else f"{self.p_value:.3f}"


def confounds(clips: Sequence[Clip], audio: Mapping[str, CheckedAudio], dimension: str) -> list[Confound]:
    """Each property of the recordings compared between the groups of a dimension. audio: Clip.file -> its check.

    A group of fewer than FEWEST speakers is shown, and not compared.

    Raises UserError where the corpus lacks the dimension.
    """
    speakers: dict[str, list[list[CheckedAudio]]] = {}
    for group, members in sorted(groups_of(clips, dimension).items()):
        own: dict[str, list[CheckedAudio]] = defaultdict(list)
        for clip in members:
            own[clip.speaker].append(audio[clip.file])
        speakers[group] = list(own.values())
    found = []
    for feature, quantity in QUANTITIES.items():
        means = {g: np.array([np.mean([quantity(a) for a in one]) for one in ones]) for g, ones in speakers.items()}
        found.append(_of_quantity(dimension, feature, means))
    for feature, quality in QUALITIES.items():
        usual = {g: [_usual(quality(a) for a in one) for one in ones] for g, ones in speakers.items()}
        found.append(_of_quality(dimension, feature, usual))
    return found


def _of_quantity(dimension: str, feature: str, means: Mapping[str, NDArray[np.float64]]) -> Confound:
    effect, between, p_value = None, "", None
    compared = {group: values for group, values in means.items() if len(values) >= FEWEST}
    if len(compared) > 1:
        effect, between = _largest_difference(compared)
        p_value = _kruskal(list(compared.values()))
    shown = {group: f"{values.mean():.3g}" for group, values in means.items()}
    return Confound(dimension, feature, shown, "d", effect, between, p_value, _warned("d", effect, p_value))


def _of_quality(dimension: str, feature: str, usual: Mapping[str, Sequence[str]]) -> Confound:
    shown = {}
    for group, values in usual.items():
        counts = Counter(values).most_common()
        shown[group] = ", ".join(f"{value} {count / len(values):.0%}" for value, count in counts[:3])
    effect, p_value = None, None
    compared = {group: values for group, values in usual.items() if len(values) >= FEWEST}
    if len(compared) > 1:
        effect, p_value = _cramers_v(compared)
    return Confound(dimension, feature, shown, "V", effect, "", p_value, _warned("V", effect, p_value))


def _warned(measure: str, effect: float | None, p_value: float | None) -> bool:
    if effect is None:
        return p_value is not None and p_value < ALPHA
    return effect >= VERY_LARGE[measure] or (effect >= MEDIUM[measure] and p_value is not None and p_value < ALPHA)


def _usual(values: object) -> str:
    counts: Counter[str] = Counter(values)  # type: ignore[call-overload]
    return max(sorted(counts), key=counts.__getitem__)


def _largest_difference(means: Mapping[str, NDArray[np.float64]]) -> tuple[float | None, str]:
    """Largest |difference| of two groups' means over the pooled standard deviation within all groups, and which two.

    None where there is a difference and no deviation.
    """
    spare = sum(len(values) - 1 for values in means.values())
    within = sum(float(((values - values.mean()) ** 2).sum()) for values in means.values())
    distances = {pair: abs(float(means[pair[0]].mean() - means[pair[1]].mean())) for pair in combinations(means, 2)}
    pair = max(distances, key=distances.__getitem__)
    distance, deviation = distances[pair], math.sqrt(within / spare)
    if distance < 1e-9:
        return 0.0, ""
    return distance / deviation if deviation > 1e-12 else None, " and ".join(pair)


def _kruskal(samples: Sequence[NDArray[np.float64]]) -> float:
    from scipy.stats import kruskal

    if len(samples) < 2 or np.ptp(np.concatenate(samples)) < 1e-12:
        return 1.0
    return float(kruskal(*samples).pvalue)


def _cramers_v(usual: Mapping[str, Sequence[str]]) -> tuple[float, float]:
    """Cramér's V with the bias correction of Bergsma (2013), and the p-value of the chi-squared test."""
    from scipy.stats import chi2_contingency

    values = sorted({value for ones in usual.values() for value in ones})
    table = np.array([[list(ones).count(value) for value in values] for ones in usual.values()])
    rows, columns = table.shape
    if rows < 2 or columns < 2:
        return 0.0, 1.0
    total = int(table.sum())
    tested = chi2_contingency(table, correction=False)
    phi2 = max(0.0, tested.statistic / total - (rows - 1) * (columns - 1) / (total - 1))
    smaller = min(rows - (rows - 1) ** 2 / (total - 1), columns - (columns - 1) ** 2 / (total - 1)) - 1
    return min(1.0, math.sqrt(phi2 / smaller)) if smaller > 0 else 0.0, float(tested.pvalue)
