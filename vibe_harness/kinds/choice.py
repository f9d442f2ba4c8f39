"""Choice tasks: the model picks an option by its letter; options are offered in one or several orders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from vibe_harness.cards.loading import Task
from vibe_harness.cards.offered_options import (
    chosen_option,
    correct_option,
    label_digests,
    option_orders,
    order_of,
    order_variants,
    sample_options,
    template_options,
)
from vibe_harness.cards.orders import Order
from vibe_harness.cards.schema import CHOICE as ATTRIBUTE
from vibe_harness.cards.schema import ChoicePart, TaskCard
from vibe_harness.corpora.audio.decode import BadAudio
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.errors import UserError
from vibe_harness.kinds.base import PromptInstance, TaskKind
from vibe_harness.kinds.choice_prompts import choice_prompts, draw_items
from vibe_harness.kinds.choice_rows import check_rows
from vibe_harness.progress import Progress
from vibe_harness.records import GROUP_PREFIX, CheckedClip, Clip, Outcome
from vibe_harness.store.responses import read_responses
from vibe_harness.store.run_tables import read_frame

if TYPE_CHECKING:
    import pandas as pd

UNLIKELY_LETTERS_LIMIT = 0.10
"""Limit of the share of answers by likelihood that more probably begin with something other than a letter."""


class ChoiceKind(TaskKind):
    """The answer is one of several options, given by its letter."""

    variables = frozenset({"options", "spoken"})
    free_text = False

    def check_card(self, card: TaskCard) -> None:
        if card.choice is None:
            raise ValueError("'kind: choice' needs the part 'choice', which names the options")
        if list(card.extraction.attributes) != [ATTRIBUTE]:
            raise ValueError("extraction.attributes: a choice task reads only the letter: remove them")

    def sources(self, roots: Sequence[Path], card: TaskCard) -> Mapping[str, str]:
        return label_digests(roots, part_of(card))

    def context(self, card: TaskCard) -> Mapping[str, Any]:
        return {"options": template_options(sample_options(part_of(card))), "spoken": False}

    def columns(self, card: TaskCard) -> Iterator[tuple[tuple[str, ...], str]]:
        choice = part_of(card)
        yield ("choice", "item"), choice.item
        for name, option in choice.options.items():
            yield ("choice", "options", name, "text"), option.text
            if option.audio:
                yield ("choice", "options", name, "audio"), option.audio
        if choice.key:
            yield ("choice", "key", "column"), choice.key.column
        for field, column in (("order_column", choice.order_column), ("split_by", choice.split_by)):
            if column:
                yield ("choice", field), column

    def sample_row(self, card: TaskCard, clip: Clip) -> Mapping[str, str]:
        """As in `TaskKind`. The clip itself serves as the audio of every spoken option."""
        choice = part_of(card)
        row = {choice.item: clip.id}
        for name, option in choice.options.items():
            row[option.text] = f"text of the option {name}"
            if option.audio:
                row[option.audio] = clip.file
        if choice.order_column:
            row[choice.order_column] = "original"
        if choice.split_by:
            row[choice.split_by] = "a category"
        if choice.key:
            row[choice.key.column] = choice.letters[0]
        return row

    def check_rows(
        self, task: Task, corpus: Corpus, checked: Sequence[CheckedClip], progress: Progress, *, sound: bool
    ) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
        return check_rows(task, part_of(task.card), corpus, checked, progress, sound=sound)

    def draw(
        self, cards: Sequence[TaskCard], clips: Sequence[Clip], limit: int, dimensions: Sequence[str], seed: int
    ) -> list[Clip]:
        return draw_items(clips, limit, min(part_of(card).item for card in cards), dimensions, seed)

    def prompts(
        self, task: Task, styles: Sequence[str], checked: CheckedClip, rate: int, *, sound: bool = True
    ) -> Iterator[PromptInstance]:
        return choice_prompts(task, part_of(task.card), styles, checked, rate, sound=sound)

    def count(self, task: Task, clip: Clip) -> int:
        return sum(1 for _ in option_orders(part_of(task.card), "", clip))

    def bind(self, task: Task, variant: str, clip: Clip) -> Task:
        style = variant.partition(".")[0]
        options = dict(option_orders(part_of(task.card), style, clip))[variant]
        return replace(task, offered=options, context={"options": template_options(options), "spoken": False})

    def meaning(self, card: TaskCard, variant: str, values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(chosen_option(part_of(card), variant, letter) for letter in values)

    def frame(self, path: Path, card: TaskCard, style: str, dimension: str) -> pd.DataFrame:
        """One row for each response to one prompt style, over all orders, with the columns that `Metric` describes."""
        import pandas as pd

        choice = part_of(card)
        parts = [
            _with_choices(read_frame(path, card.task, variant, dimension), order_of(choice, variant))
            for variant in order_variants(choice, style)
        ]
        frame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
        if frame.empty:
            raise UserError(f"task '{card.task}': no response has a group in the dimension '{dimension}'")
        frame["item"] = frame[GROUP_PREFIX + choice.item].astype(str)
        if choice.key:
            letters = frame[GROUP_PREFIX + choice.key.column].astype(str)
            rows = frame[GROUP_PREFIX + choice.order_column].astype(str) if choice.order_column else letters
            meant = {(k, r): correct_option(choice, k, r) for k, r in {*zip(letters, rows, strict=True)}}
            frame["right"] = [meant[pair] for pair in zip(letters, rows, strict=True)]
        if choice.order_column:  # a row with its own order is also asked with other letters
            frame[GROUP_PREFIX + choice.order_column] = frame["order"]
            if dimension == choice.order_column:
                frame["group"] = frame["order"]
        frame.attrs["options"] = list(choice.options)
        return frame

    def conditions(self, card: TaskCard, frame: pd.DataFrame, dimension: str) -> tuple[str, ...]:
        return tuple(name for name in card.dimensions if name != dimension and GROUP_PREFIX + name in frame)

    def parts(self, card: TaskCard, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
        split = part_of(card).split_by
        if split and GROUP_PREFIX + split in frame:
            for name in sorted(frame[GROUP_PREFIX + split].dropna().astype(str).unique()):
                part = frame[frame[GROUP_PREFIX + split] == name]
                part.attrs = dict(frame.attrs)
                yield name, part

    def warnings(self, responses: Path, card: TaskCard, style: str) -> list[str]:
        share = unlikely_letters(responses, card.task, style)
        if share <= UNLIKELY_LETTERS_LIMIT:
            return []
        return [
            f"choice: {share:.0%} of the answers would more probably begin with something other than a letter (limit "
            f"{UNLIKELY_LETTERS_LIMIT:.0%}): the most likely letter may not be the answer that the model would write"
        ]


def part_of(card: TaskCard) -> ChoicePart:
    """The part `choice` of a choice task's card."""
    assert card.choice is not None, f"the card of '{card.task}' has no part 'choice'"
    return card.choice


def unlikely_letters(path: Path, task: str, style: str) -> float:
    """Share of the answers by likelihood whose letters have a total probability below 0.5; 0 if there are no answers.

    path: responses.jsonl of the run.
    """
    unlikely = [
        sum(map(math.exp, stored.likelihoods.values())) < 0.5
        for stored in read_responses(path)
        if stored.outcome is Outcome.OK
        and stored.likelihoods
        and (stored.task, stored.variant.partition(".")[0]) == (task, style)
    ]
    return fmean(unlikely) if unlikely else 0.0


def _with_choices(part: pd.DataFrame, order: Order) -> pd.DataFrame:
    """Add the columns order, letter, choice and place (of the letter, from 1; 0 for none) to rows of one order."""
    import pandas as pd

    place = {letter: number for number, letter in enumerate(order.letters, 1)}
    letters, names = (  # of objects: a column of nothing but None would have another type
        pd.Series([_only(cell) for cell in part[column]], part.index, dtype=object) for column in ("raw", "values")
    )
    places = [place.get(letter, 0) for letter in letters]
    return part.assign(order=order.name, letter=letters, choice=names, place=places)


def _only(values: Sequence[str]) -> str | None:
    """The only value of an answer, or None."""
    return str(values[0]) if len(values) else None


CHOICE = ChoiceKind()
