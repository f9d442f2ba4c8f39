"""The options that each request of a choice task offers: those of a manifest row, in one order, with letters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from vibe_harness.cards.orders import LETTERS, Order
from vibe_harness.cards.paths import find_file
from vibe_harness.cards.schema import ChoicePart
from vibe_harness.cards.spelling import fold
from vibe_harness.records import Clip, Option

ROW_ORDERS = ("original", "reversed")


def order_variants(choice: ChoicePart, style: str) -> list[str]:
    """Names of the variants of one prompt style, one for each order: "standard.reversed"."""
    return [f"{style}.{order.name}" for order in choice.all_orders]


def order_of(choice: ChoicePart, variant: str) -> Order:
    """The order of a variant named by `order_variants`."""
    name = variant.partition(".")[2]
    return next(order for order in choice.all_orders if order.name == name)


def chosen_option(choice: ChoicePart, variant: str, letter: str) -> str:
    """The name of the option that a letter stands for in the order of a variant."""
    order = order_of(choice, variant)
    return list(choice.options)[order.contents[order.letters.index(letter)]]


def row_contents(choice: ChoicePart, row_order: str | None) -> tuple[int, ...]:
    """Index of the option in each column of a row. A reversed row has the last option in the first column."""
    forward = tuple(range(len(choice.options)))
    return forward[::-1] if row_order == "reversed" else forward


def correct_option(choice: ChoicePart, letter: str, row_order: str | None) -> str:
    """The name of the correct option. letter: from the answer key. row_order: the order of the row's options."""
    assert choice.key is not None
    place = LETTERS.index(letter)
    contents = row_contents(choice, row_order if choice.key.of == "row" else None)
    return list(choice.options)[contents[place]]


def option_orders(choice: ChoicePart, style: str, clip: Clip) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield the variant and the options, by position, for each order in which a row is asked.

    If the row states the order of its options, only orders with the options in that order are used. The row must be
    valid: `row_fault` returns None for it.
    """
    names, columns = list(choice.options), list(choice.options.values())
    row_order = clip.groups[choice.order_column] if choice.order_column else None
    held = row_contents(choice, row_order)
    right = correct_option(choice, clip.groups[choice.key.column], row_order) if choice.key else None
    for order in choice.all_orders:
        if row_order is None or order.contents == held:
            yield (
                f"{style}.{order.name}",
                tuple(
                    Option(
                        label=letter,
                        content=names[content],
                        text=clip.groups[columns[held.index(content)].text],
                        correct=None if right is None else names[content] == right,
                    )
                    for content, letter in zip(order.contents, order.letters, strict=True)
                ),
            )


def option_file(choice: ChoicePart, clip: Clip, content: str) -> str:
    """The audio file of an option, relative to the corpus folder."""
    held = row_contents(choice, clip.groups[choice.order_column] if choice.order_column else None)
    column = list(choice.options.values())[held.index(list(choice.options).index(content))].audio
    assert column is not None
    return clip.groups[column]


def needed_columns(choice: ChoicePart) -> list[str]:
    """The manifest columns that a choice card needs."""
    needed = [choice.item, *(column.text for column in choice.options.values())]
    if choice.speech:
        needed += [str(column.audio) for column in choice.options.values()]
    needed += [choice.order_column] if choice.order_column else []
    return needed + ([choice.key.column] if choice.key else [])


def row_fault(choice: ChoicePart, clip: Clip) -> str | None:
    """Why a row of the manifest cannot be used; None if it can."""
    absent = [column for column in needed_columns(choice) if not clip.groups.get(column)]
    if absent:
        return f"the column '{absent[0]}' is empty"
    if choice.order_column and clip.groups[choice.order_column] not in ROW_ORDERS:
        order = clip.groups[choice.order_column]
        return f"unknown order '{order}' in the column '{choice.order_column}': it must be original or reversed"
    if choice.key and clip.groups[choice.key.column] not in choice.letters:
        letter = clip.groups[choice.key.column]
        return f"its correct answer is '{letter}', but the options are {choice.letters[0]} to {choice.letters[-1]}"
    texts: dict[str, str] = {}
    for name, column in choice.options.items():
        text = clip.groups[column.text]
        twin = texts.setdefault(fold(text) or text, name)
        if twin != name:
            return f"two options are the same: '{twin}' and '{name}' both have the text '{text}'"
    return None


def template_options(options: Sequence[Option]) -> list[dict[str, str]]:
    """The options as templates see them: letter and text, without the option's name."""
    return [{"label": option.label, "text": option.text} for option in options]


def sample_options(choice: ChoicePart) -> tuple[Option, ...]:
    """Placeholder options, to render a prompt without a clip."""
    return tuple(Option(LETTERS[place], name, f"[option {place + 1}]") for place, name in enumerate(choice.options))


def label_files(roots: Sequence[Path], choice: ChoicePart) -> dict[str, Path]:
    """Audio file of each spoken letter. The key "" is the label spoken before the question.

    Raises UserError if a file is missing.
    """
    if choice.speech is None:
        return {}
    names = dict(zip(LETTERS, choice.speech.letters, strict=False))
    if choice.speech.question_label:
        names[""] = choice.speech.question_label
    return {letter: find_file(roots, name) for letter, name in names.items()}


def label_digests(roots: Sequence[Path], choice: ChoicePart) -> dict[str, str]:
    """SHA-256 of each label's audio file. A label in another voice makes it another task."""
    files = label_files(roots, choice)
    return {f"audio {letter}": hashlib.sha256(path.read_bytes()).hexdigest() for letter, path in files.items()}
