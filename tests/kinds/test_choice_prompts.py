"""What a choice task asks: every order of every row, letters that are read back as what they meant, joined speech."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from tests.choice_corpora import heard, question_rows, row, stereoset_clips
from tests.support import needs_recordings
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.offered_options import chosen_option, option_orders
from vibe_harness.cards.orders import find_order, find_orders
from vibe_harness.kinds.base import kind_of
from vibe_harness.kinds.choice_prompts import draw_items
from vibe_harness.planning.estimate import estimate_extractor
from vibe_harness.planning.plan import Plan
from vibe_harness.records import CheckedClip, Clip

INDEX = CardIndex()


def task(name: str, **choice: object) -> Task:
    [found] = INDEX.tasks([name])
    assert found.card.choice is not None
    changed = found.card.choice.model_copy(update=choice)
    return replace(found, card=found.card.model_copy(update={"choice": changed}))


def texts(found: Task, clip: Clip) -> dict[str, str]:
    """Order -> "letter: option's own letter in the original row", place by place."""
    assert found.card.choice is not None
    return {
        variant.partition(".")[2]: " ".join(f"{o.label}:{o.text[6].lower()}" for o in options)
        for variant, options in option_orders(found.card.choice, "standard", clip)
    }


def test_the_named_orders_are_those_of_the_paper() -> None:
    every = task("biasinear", orders=["original", "reversed", "token_backward", "order_backward"])
    assert texts(every, row("original")) == {"original": "A:a B:b C:c D:d", "token_backward": "D:a C:b B:c A:d"}
    assert texts(every, row("reversed")) == {"reversed": "A:d B:c C:b D:a", "order_backward": "D:d C:c B:b A:a"}


def test_a_letter_means_what_stood_under_it() -> None:
    choice = task("biasinear", orders=["original", "reversed", "token_backward", "order_backward"]).card.choice
    assert choice is not None
    meant = {
        order.name: [chosen_option(choice, f"standard.{order.name}", a) for a in "ABCD"] for order in choice.all_orders
    }
    assert meant == {
        "original": ["a", "b", "c", "d"], "reversed": ["d", "c", "b", "a"],
        "token_backward": ["d", "c", "b", "a"], "order_backward": ["a", "b", "c", "d"],
    }  # fmt: skip


def test_all_permutations_and_digits() -> None:
    orders = find_orders("all", 3)
    assert [order.name for order in orders] == ["123", "132", "213", "231", "312", "321"]
    assert len({order.contents for order in orders}) == 6 and {order.letters for order in orders} == {("A", "B", "C")}
    assert find_order("213", 3).contents == (1, 0, 2)
    for wrong in ("122", "21", "2134", "reverse"):
        with pytest.raises(ValueError, match=f"unknown order '{wrong}'"):
            find_order(wrong, 3)
    with pytest.raises(ValueError, match="each order once"):
        find_orders(["original", "original"], 3)
    with pytest.raises(ValueError, match="too many permutations"):
        find_orders("all", 6)


def test_the_right_option_is_the_same_in_every_order() -> None:
    for of, answers in (("row", ("B", "C")), ("original", ("B", "B"))):
        found = task("biasinear")
        assert found.card.choice is not None and found.card.choice.key is not None
        key = found.card.choice.key.model_copy(update={"of": of})
        found = task("biasinear", key=key)
        assert found.card.choice is not None
        right = []
        for order, answer in zip(("original", "reversed"), answers, strict=True):
            [(_, options)] = option_orders(found.card.choice, "standard", row(order, answer=answer))
            right += [option.content for option in options if option.correct]
        assert right == ["b", "b"]


@needs_recordings
def test_the_whole_of_spoken_stereoset_is_planned(tmp_path: Path) -> None:
    clips = stereoset_clips(tmp_path)
    found = task("spoken_stereoset")
    for dimension, rows in (("gender", 2_847), ("age", 793)):
        heard = [CheckedClip(c, tmp_path / c.file, c.id, 1.0) for c in clips if c.groups["dimension"] == dimension]
        plan = Plan(INDEX.model("server"), [found], {found.name: ("standard",)}, heard, 0)
        assert len(heard) == rows and len(plan) == len(plan.table()) == 6 * rows
    read = estimate_extractor(plan, INDEX.model("qwen3-8b"))
    assert read is not None and read.requests == 6 * rows
    first = list(itertools.islice(plan.requests(), 6))
    assert len({one.clip for one in first}) == 1
    assert len({tuple(option.content for option in one.options) for one in first}) == 6
    assert all(option.text in one.prompt for one in first for option in one.options)


def test_spoken_options_stand_in_the_sound_and_written_ones_in_the_prompt() -> None:
    found, clip = task("biasinear"), row()
    [spoken] = kind_of(found.card).prompts(found, ["standard"], heard(clip), 16_000)
    assert spoken.audio is not None and "thing A" not in spoken.prompt() and "hear" in spoken.prompt()
    [written] = kind_of(found.card).prompts(found, ["standard"], heard(clip), 16_000, sound=False)
    assert written.audio is None and all(f"{a}. thing {a} of 0" in written.prompt() for a in "ABCD")


def test_what_can_be_heard_differently_is_another_question() -> None:
    found, one = task("biasinear", orders=["original", "token_backward"]), heard(row())
    ids = [question.checked.waveform for question in kind_of(found.card).prompts(found, ["standard"], one, 16_000)]
    other = replace(one, parts={file: replace(part, waveform="x") for file, part in one.parts.items()})
    slower = task("biasinear", speech=found.card.choice and found.card.choice.speech.model_copy(update={"pause_s": 1}))
    ids += [question.checked.waveform for question in kind_of(found.card).prompts(found, ["standard"], other, 16_000)][
        :1
    ]
    ids += [question.checked.waveform for question in kind_of(slower.card).prompts(slower, ["standard"], one, 16_000)]
    assert len(ids) == len(set(ids)) == 4


def test_a_task_that_stands_for_one_request_knows_its_options() -> None:
    found = task("biasinear", orders=["original", "token_backward"])
    there = kind_of(found.card).bind(found, "standard.token_backward", row())
    assert [option.label for option in there.offered] == ["D", "C", "B", "A"]
    assert "D. thing A of 0" in there.extraction_prompt("It is D.")


def test_items_are_drawn_whole() -> None:
    clips = [Clip(f"c/{r['id']}", r["file"], r["speaker"], r) for r in question_rows(questions=10)]
    few, more = (draw_items(clips, limit, "sentence_id", ["gender"], seed=1) for limit in (5, 13))
    assert (len(few), len(more)) == (8, 16)  # four rows an item
    assert {c.id for c in few} < {c.id for c in more} and [c.id for c in more] == [c.id for c in clips if c in more]
    assert draw_items(clips, 5, "sentence_id", ["gender"], seed=2) != few


def test_items_of_several_dimensions_are_drawn_in_turn() -> None:
    """Of Spoken StereoSet's items a fifth are asked by age, the others by gender, and none by both."""
    asked = {item: "age" if item % 5 == 0 else "gender" for item in range(50)}
    clips = [
        Clip(f"c/{item}-{voice}", f"{item}-{voice}.wav", voice, {"item": str(item), column: voice})
        for item, column in asked.items()
        for voice in ("a", "b")
    ]
    for seed in range(20):
        few, more = (draw_items(clips, limit, "item", ["gender", "age"], seed) for limit in (8, 16))
        assert [sum(column in clip.groups for clip in few) for column in ("gender", "age")] == [4, 4]
        assert {clip.id for clip in few} < {clip.id for clip in more}


def test_words_in_place_of_sound_bring_the_options_into_the_prompt(tmp_path: Path) -> None:
    """Text-only mode writes question and options; the cascade hears the question and reads the options."""
    found, clips = task("biasinear"), [heard(row(), tmp_path)]
    for modality in ("transcript", "cascade"):
        [asked] = Plan(INDEX.model("server"), [found], {found.name: ("standard",)}, clips, 0, modality).requests()
        assert all(f"{a}. thing {a} of 0" in asked.prompt for a in "ABCD")
        assert ("question 0" in asked.prompt, asked.audio is None) == ((modality == "transcript"),) * 2
    [spoken] = Plan(INDEX.model("server"), [found], {found.name: ("standard",)}, clips, 0).requests()
    assert "thing A" not in spoken.prompt and spoken.audio is not None and spoken.id != asked.id
