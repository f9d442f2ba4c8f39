"""The interface of a task kind. Other packages add kinds through the entry-point group `vibe_harness.kinds`."""

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
    """One prompt for one clip.

    prompt: renders the text. checked: the clip; its waveform digest covers everything that is played. audio: decodes
    what is played, if it is more than the clip.
    """

    variant: str
    prompt: Callable[[], str]
    checked: CheckedClip
    options: tuple[Option, ...] = ()
    audio: Callable[[], Waveform] | None = None


class TaskKind:
    """A kind of task. The defaults are those of open-ended tasks: one free-text answer to each clip and prompt.

    Kinds have no state: one object serves every task of its kind.
    """

    variables: frozenset[str] = frozenset()
    """Template variables of this kind, in addition to those of every task."""
    free_text = True
    """Whether answers are free text: a text model reads them, each group needs two speakers, and nTVD can be tested."""

    def check_card(self, card: TaskCard) -> None:
        """Raise ValueError if the card is not valid for this kind."""

    def sources(self, roots: Sequence[Path], card: TaskCard) -> Mapping[str, str]:
        """Other files that can change an answer: name -> digest. Raises UserError if one is missing."""
        return {}

    def context(self, card: TaskCard) -> Mapping[str, Any]:
        """Placeholder values of `variables`, to render a template without a clip."""
        return {}

    def columns(self, card: TaskCard) -> Iterator[tuple[tuple[str, ...], str]]:
        """Card field (as keys) and name of every manifest column that the card uses."""
        yield from ()

    def sample_row(self, card: TaskCard, clip: Clip) -> Mapping[str, str]:
        """Made-up values of those columns, for a trial run of the card on the demo corpus."""
        return {}

    def check_rows(
        self, task: Task, corpus: Corpus, checked: Sequence[CheckedClip], progress: Progress, *, sound: bool
    ) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
        """The clips that the task can use, and the others with the reason. sound: False if clips are not played.

        Raises UserError if the task cannot use the corpus at all.
        """
        return list(checked), {}

    def draw(
        self, cards: Sequence[TaskCard], clips: Sequence[Clip], limit: int, dimensions: Sequence[str], seed: int
    ) -> list[Clip]:
        """Draw `limit` clips with the seed, in manifest order. cards: those of all tasks of this kind in the run."""
        return draw_clips(clips, limit, dimensions, seed)

    def prompts(
        self, task: Task, styles: Sequence[str], checked: CheckedClip, rate: int, *, sound: bool = True
    ) -> Iterator[PromptInstance]:
        """The prompts of a task for a clip. styles: names of the prompts to use. rate: sample rate in Hz."""
        for style in styles:
            yield PromptInstance(style, partial(task.prompt, style, checked.clip.text), checked)

    def count(self, task: Task, clip: Clip) -> int:
        """Number of requests for one prompt and clip."""
        return 1

    def bind(self, task: Task, variant: str, clip: Clip) -> Task:
        """The task of one request, with the options of that request."""
        return task

    def meaning(self, card: TaskCard, variant: str, values: tuple[str, ...]) -> tuple[str, ...]:
        """Translate the canonical values of an answer: for a choice task, from letters to option names."""
        return values

    def frame(self, path: Path, card: TaskCard, style: str, dimension: str) -> pd.DataFrame:
        """The observations of one prompt as a frame for metrics (see `Metric`). path: observations of the run."""
        return read_frame(path, card.task, style, dimension)

    def conditions(self, card: TaskCard, frame: pd.DataFrame, dimension: str) -> tuple[str, ...]:
        """The other dimensions of the task, which are held constant in the comparison."""
        return ()

    def parts(self, card: TaskCard, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
        """Parts of the observations that also get scores of their own, by name."""
        yield from ()

    def warnings(self, responses: Path, card: TaskCard, style: str) -> list[str]:
        """More reasons why scores are unreliable. responses: responses.jsonl of a run answered by likelihood."""
        return []


def kind_of(card: TaskCard) -> TaskKind:
    """The kind of a task. Raises UserError if no installed package provides it."""
    return cast(TaskKind, KINDS.get(card.kind))
