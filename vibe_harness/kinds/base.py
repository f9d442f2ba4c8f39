"""What a kind of task is. Another package adds one through the entry-point group `vibe_harness.kinds`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import TaskCard
from vibe_harness.cards.task_kinds import KINDS
from vibe_harness.corpora.audio.decode import BadAudio
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.sampling import draw_clips
from vibe_harness.progress import Progress
from vibe_harness.records import CheckedClip, Clip, Option, Waveform
from vibe_harness.store.run_tables import read_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class PromptInstance:
    """One question about one clip.

    prompt: renders its words. checked: the clip; the digest of its waveform stands for all that is played. audio: what
    is played, where that is more than the clip.
    """

    variant: str
    prompt: Callable[[], str]
    checked: CheckedClip
    options: tuple[Option, ...] = ()
    audio: Callable[[], Waveform] | None = None


class TaskKind:
    """A kind of task. What is not overridden is as in open-ended tasks: one free answer to each clip and prompt.

    No method holds state: one object serves every task of the kind.
    """

    variables: frozenset[str] = frozenset()
    """Names that its templates are given besides those of every task."""
    free_text = True
    """Answers are free text: a text model reads them, groups need two speakers each, and nTVD can be tested."""

    def check_card(self, card: TaskCard) -> None:
        """Raise ValueError for a card that this kind cannot ask."""

    def sources(self, roots: Sequence[Path], card: TaskCard) -> Mapping[str, str]:
        """Further files that can change an answer: name -> digest. Raises UserError where one is missing."""
        return {}

    def context(self, card: TaskCard) -> Mapping[str, Any]:
        """Values of `variables` to render a template with where no clip is at hand."""
        return {}

    def columns(self, card: TaskCard) -> Iterator[tuple[tuple[str, ...], str]]:
        """Place in the card and name of every column that it takes from the manifest."""
        yield from ()

    def sample_row(self, card: TaskCard, clip: Clip) -> Mapping[str, str]:
        """What a row of the task's own corpus holds in those columns, made up for a trial of the card."""
        return {}

    def check_rows(
        self, task: Task, corpus: Corpus, checked: Sequence[CheckedClip], progress: Progress, *, sound: bool
    ) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
        """The clips that can be asked about, and the others with the reason. sound: False where clips are not played.

        Raises UserError where the corpus as a whole cannot be asked about.
        """
        return list(checked), {}

    def draw(
        self, cards: Sequence[TaskCard], clips: Sequence[Clip], limit: int, dimensions: Sequence[str], seed: int
    ) -> list[Clip]:
        """`limit` clips, drawn by the seed, in the manifest's order. cards: of all tasks of this kind in the run."""
        return draw_clips(clips, limit, dimensions, seed)

    def prompts(
        self, task: Task, styles: Sequence[str], checked: CheckedClip, rate: int, *, sound: bool = True
    ) -> Iterator[PromptInstance]:
        """The questions of a task about a clip. styles: its prompts to use. rate: of the waveforms, in Hz."""
        for style in styles:
            yield PromptInstance(style, partial(task.prompt, style, checked.clip.text), checked)

    def count(self, task: Task, clip: Clip) -> int:
        """How many questions a prompt asks about a clip."""
        return 1

    def bind(self, task: Task, variant: str, clip: Clip) -> Task:
        """The task as it stands for one request."""
        return task

    def meaning(self, card: TaskCard, variant: str, values: tuple[str, ...]) -> tuple[str, ...]:
        """What the canonical values of an answer meant in that variant of the prompt."""
        return values

    def frame(self, path: Path, card: TaskCard, style: str, dimension: str) -> pd.DataFrame:
        """Observations of one prompt, as the metrics take them (see `Metric`). path: observations of the run."""
        return read_frame(path, card.task, style, dimension)

    def conditions(self, card: TaskCard, frame: pd.DataFrame, dimension: str) -> tuple[str, ...]:
        """Variables of the task besides the one under test."""
        return ()

    def parts(self, card: TaskCard, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
        """Parts of the observations that are scored by themselves as well, by name."""
        yield from ()

    def warnings(self, responses: Path, card: TaskCard, style: str) -> list[str]:
        """Further reasons why scores are not reliable. responses: of the run, asked by likelihood."""
        return []


def kind_of(card: TaskCard) -> TaskKind:
    """The kind of a task. Raises UserError where no package at hand has it."""
    return cast(TaskKind, KINDS.get(card.kind))
