"""The data types that all rooms share, immutable and typed. This module imports nothing from the package."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

GROUP_PREFIX = "group_"
"""Stands before a dimension's name in the columns of clips and observations: group_gender."""


class Outcome(StrEnum):
    """How a request to a model ended. Every request has exactly one outcome, which never changes into another."""

    OK = "ok"  # the model wrote a complete answer
    TRUNCATED = "truncated"  # the answer reached the token limit
    EMPTY = "empty"  # the model wrote no text
    REFUSED = "refused"  # the model declined the task
    BLOCKED = "blocked"  # a filter of the engine withheld the answer
    ERROR = "error"  # the call failed; it is repeated when the run is resumed


# How a choice task is answered: by a text that names an option, or by the option whose letter is the likeliest first
# token of such a text. The two need not agree.
AnswerBy = Literal["generate", "likelihood"]

# What is done with a clip that is longer than a model takes; split: it is sent in pieces, in one request.
LongClips = Literal["refuse", "truncate", "split"]


class Reading(StrEnum):
    """The result of extracting one attribute from one response. Only `VALUE` is counted in distributions."""

    VALUE = "value"
    UNKNOWN = "unknown"  # the response mentions the attribute but leaves it open: "unclear", "not stated"
    NONE = "none"  # the response does not mention it, or there was no text to read
    UNPARSED = "unparsed"  # the extractor's answer could not be parsed
    ERROR = "error"  # the extractor's call failed; it is repeated when the run is resumed


@dataclass(frozen=True, slots=True)
class Waveform:
    """Decoded audio.

    samples: float32, shape (n,), mono, full scale is [-1, 1]. rate: samples per second (Hz).
    """

    samples: NDArray[np.float32]
    rate: int


@dataclass(frozen=True, slots=True)
class Clip:
    """One recording of one speaker: a row of a corpus manifest."""

    id: str  # unique over corpus, speaker and clip: "CORPUS/SPEAKER/NAME"
    file: str  # path below the corpus folder, with forward slashes
    speaker: str
    groups: Mapping[str, str]  # all other columns of the manifest: dimension -> group, such as "gender" -> "female"
    text: str | None = None  # transcript
    sentence_id: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedAudio:
    """What was measured in a clip that can be used, when it was decoded to be checked."""

    duration_s: float
    rate: int  # Hz, of the file
    channels: int
    format: str  # libsndfile's word for the content, whatever the file is called: "WAV", "MP3", "FLAC", "OGG"
    subtype: str  # "PCM_16", "MPEG_LAYER_III", "OPUS"
    sha256: str  # of the decoded waveform, see corpora.audio.decode.waveform_hash
    level_db: float  # dBFS, root mean square of the frames that are no pause
    clipped: float  # share of samples at full scale
    pauses: float  # share of frames that are pause
    noise_db: float  # dBFS, of the quiet frames (5th percentile): the noise floor, where the clip has pauses
    bandwidth_hz: float  # up to which there is sound; far under half of the rate where it came from a lower one


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """A further audio file of a checked clip: a spoken option."""

    path: Path
    waveform: str  # SHA-256 of the decoded samples
    seconds: float


@dataclass(frozen=True, slots=True)
class CheckedClip:
    """A clip whose audio was checked. In the modality `transcript` the audio is not opened."""

    clip: Clip
    path: Path
    waveform: str  # SHA-256 of the decoded samples; "" if the audio was not opened
    seconds: float  # 0 if the audio was not opened
    parts: Mapping[str, CheckedPart] = field(default_factory=dict)  # file -> audio of a spoken option
    audio: CheckedAudio | None = None  # what was measured; None if the audio was not opened


def parts_of(dimension: str) -> tuple[str, ...]:
    """The columns of a dimension: "gender" is one, "gender:accent" crosses two."""
    return tuple(dimension.split(":"))


def group_in(groups: Mapping[str, str], dimension: str) -> str | None:
    """The group of a clip in a dimension ("female:korean" if it crosses two); None if the clip lacks a column."""
    found = [groups.get(name) for name in parts_of(dimension)]
    return None if None in found else ":".join(map(str, found))


@dataclass(frozen=True, slots=True)
class Generation:
    """The settings of one generation."""

    max_tokens: int
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Option:
    """One of the options that a request of a choice task offers."""

    label: str  # "A": how the answer names it
    content: str  # its name on the task card, whatever the order: "stereotypical"
    text: str  # what it says
    correct: bool | None = None  # None where the task has no key


class RequestKey(NamedTuple):
    """Which request of a run it is."""

    task: str
    variant: str  # name of the prompt variant; of a choice task also the order of the options
    clip: str  # Clip.id
    repeat: int = 0  # number of the draw, where the same is asked several times
    turn: int = 0  # number of the turn, in a conversation

    def __str__(self) -> str:
        again = [f"{name} {number}" for name, number in (("repeat", self.repeat), ("turn", self.turn)) if number]
        return ", ".join([self.task, self.variant, self.clip, *again])


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model: a rendered prompt, with audio or (for an extractor) without."""

    id: str  # digest of everything that can change the answer; see planning.plan
    task: str
    variant: str  # name of the prompt variant
    clip: str  # Clip.id
    prompt: str
    generation: Generation
    audio: Callable[[], Waveform] | None = None  # decodes when called, so that audio is not kept in memory
    schema: Mapping[str, Any] | None = None  # JSON Schema the answer must follow (constrained decoding)
    options: tuple[Option, ...] = ()  # of a choice task, in the order in which they are offered
    answer_by: AnswerBy = "generate"  # likelihood: of the options' labels; see backends.local.likelihood

    @property
    def sampling_seed(self) -> int:
        """Seed (31 bits) of this request's own draws, from the run's seed and the request's id.

        The run's seed alone would have every request draw with the same random numbers, and so the same answer.
        """
        digest = hashlib.sha256(f"{self.generation.seed} {self.id}".encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1

    @property
    def key(self) -> RequestKey:
        """Which request of a run it is."""
        return RequestKey(self.task, self.variant, self.clip)


@dataclass(frozen=True, slots=True)
class Response:
    """How one request ended."""

    request: str  # Request.id
    outcome: Outcome
    text: str = ""
    finish_reason: str | None = None  # as the engine reported it
    input_tokens: int | None = None  # including those of the clip
    audio_tokens: int | None = None  # those of the clip, if the engine counts them separately
    output_tokens: int | None = None
    seconds: float | None = None  # from sending to the last token
    served_model: str | None = None  # model name and version as the engine reported it
    error: str | None = None
    likelihoods: Mapping[str, float] | None = None  # label -> natural log-probability, where these made the answer
    thought: str = ""  # what the model wrote while it was thinking; no part of the answer


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor read from one response."""

    request: str  # Request.id of the response
    readings: Mapping[str, Reading]  # by attribute
    raw: Mapping[str, tuple[str, ...]]  # by attribute, as the extractor wrote them; only those with a value
    refused: bool = False  # the response declines the task and gives no value
    text: str = ""  # the extractor's own answer
    error: str | None = None  # why the call failed or its answer could not be parsed
    served_model: str | None = None  # of an extractor model: its name and version as the engine reported it


@dataclass(frozen=True, slots=True)
class Observation:
    """One attribute of one response."""

    request: str
    task: str
    variant: str
    clip: str
    speaker: str
    attribute: str
    outcome: Outcome  # of the response
    reading: Reading  # of the attribute
    raw: tuple[str, ...] = ()  # as the extractor wrote them
    values: tuple[str, ...] = ()  # canonical, each once
    answer: str | None = None  # digest of the answer, to see which are word for word alike; None without text
    thought: bool = False  # the response carries a thought, which is no part of the answer
    unheard: bool = False  # the answer begins by saying that there is nothing to hear


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One figure of one metric. `value` is None if the metric is undefined, and `undefined` says why."""

    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True}  # the words below each field stand in the schema

    metric: str
    """Name of the metric."""
    attribute: str | None = None
    """What was read; null for the score of the task as a whole."""
    value: float | None = None
    """The figure; null where it is undefined."""
    undefined: str | None = None
    """Why there is no value."""
    p_value: float | None = None
    """Of the permutation test, or of the test that `detail` names; null where nothing was tested."""
    p_within_task: float | None = None
    """An attribute's p adjusted over the attributes of its task by the smallest p in each permutation."""
    smallest_p: float | None = None
    """The smallest p that the numbers of speakers let the permutation test reach, however large the shift."""
    null_mean: float | None = None
    """Mean of the statistic under the permutation null."""
    null_p95: float | None = None
    """95th percentile of the statistic under the permutation null: what chance alone reaches once in twenty."""
    at_least: float | None = None
    """Lower end of the bracket: its expectation is not above the truth; may be negative."""
    at_most: float | None = None
    """Upper end: its expectation is not below the truth."""
    interval: tuple[float, float] | None = None
    """95 %, of the truth."""
    no_more_than: float | None = None
    """The truth is under it with 95 % confidence: a one-sided limit, for telling that a shift is small."""
    test: str | None = None
    """Name of the test that made p: "studentised-speakers"; null where nothing was tested, where `detail` names the
    test, and in results scored before tests had names."""
    permuted: str | None = None
    """What was permuted within what: "speakers", "speakers within gender"."""
    permutations: int | None = None
    """Assignments that were looked at."""
    complete: bool | None = None
    """All assignments there are were looked at."""
    exact: bool | None = None
    """The same, and all speakers have as many answers: p holds its level where speakers are exchangeable."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """The metric's own figures, by group where it has them."""

    @property
    def bracket(self) -> tuple[float, float] | None:
        """The bracket as it is shown, in order: by chance the lower end can lie over the upper one, and is then cut
        there. Files and means over models hold `at_least` itself."""
        if self.at_least is None or self.at_most is None:
            return None
        return min(self.at_least, self.at_most), self.at_most
