"""The rules extractor takes what stands after a label, and makes nothing up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.schema import Attribute
from vibe_harness.extraction.canonical import Canonicaliser
from vibe_harness.extraction.rules import _read, read_labelled
from vibe_harness.records import Outcome, Reading, Response

TASKS = {task.name: task for task in CardIndex().tasks(["*"])}
STORY, ADVISORY = TASKS["story"], TASKS["advisory"]


def read(task: Task, text: str):
    return read_labelled(task, Response("r", Outcome.OK, text))


@pytest.mark.parametrize(
    "line",
    [
        "Occupation: nurse",
        "occupation: nurse",
        "OCCUPATION : nurse.",
        "**Occupation**: nurse",
        "**Occupation:** nurse",
        "__Occupation__: nurse",
        "*Occupation*: nurse",
        "- occupation - nurse",
        "* **Occupation** – nurse",
        "3. Occupation — nurse",
        "### Occupation: nurse",
        "  • Occupation: “nurse”",
        "Once upon a time.\n\nOccupation:\tnurse\n\nThe end.",
        "Occupation:\n- nurse",
    ],
)
def test_a_label_is_read_in_many_forms(line):
    extraction = read(STORY, line)
    assert extraction.raw == {"occupation": ("nurse",)}
    assert extraction.readings["occupation"] is Reading.VALUE
    assert extraction.readings["personality"] is Reading.NONE
    assert not extraction.refused


@pytest.mark.parametrize("label", ["Field of study", "field of study", "field_of_study", "Field  Of Study"])
def test_a_label_is_the_cards_or_the_attributes_own_name(label):
    assert read(STORY, f"{label}: law").raw == {"field_of_study": ("law",)}


def test_the_attributes_name_counts_beside_the_cards_label():
    assert read(ADVISORY, "Activity: chess").raw == read(ADVISORY, "Activities: chess").raw == {"activity": ("chess",)}


@pytest.mark.parametrize(
    "line",
    [
        "Activities: hiking, yoga, chess",
        "Activities: hiking, yoga and chess",
        "Activities: hiking, yoga, and chess.",
        "Activities: hiking; yoga; chess",
        "Activities: hiking & yoga / chess",
        "Activities: 1. hiking, 2. yoga, 3. chess",
        "Activities:\n1. hiking\n2. yoga\n3) chess\n\nEnjoy!",
        "**Activities:**\n\n- **hiking**\n- yoga,\n- chess\nAnd then some rest.\n- a nap",
    ],
)
def test_a_list_is_split(line):
    assert read(ADVISORY, line).raw == {"activity": ("hiking", "yoga", "chess")}


def test_a_value_of_the_card_that_looks_like_a_list_stays_whole():
    attribute = Attribute(values=["rock and roll", "salt, pepper", "blues"], up_to=2)
    canonicaliser = Canonicaliser(attribute, {})
    assert _read("blues and Rock and Roll", attribute, canonicaliser)[0] is Reading.UNPARSED  # not guessed
    assert _read("blues, and Rock and Roll", attribute, canonicaliser) == (Reading.VALUE, ("blues", "Rock and Roll"))
    assert _read("salt, pepper", attribute, canonicaliser) == (Reading.VALUE, ("salt, pepper",))


def test_library_science_keeps_its_and():
    assert read(STORY, "Field of study: library and information science").raw["field_of_study"] == (
        "library and information science",
    )


@pytest.mark.parametrize("word", ["unclear", "Not stated.", "N/A", "unknown", "cannot be determined"])
@pytest.mark.parametrize("label", ["Occupation", "Family status", "Personality"])
def test_words_for_unknown_are_unknown(label, word):
    extraction = read(STORY, f"{label}: {word}")
    assert extraction.readings[label.lower().replace(" ", "_")] is Reading.UNKNOWN
    assert extraction.raw == {}


def test_uncertain_is_a_value_where_the_card_lists_it():
    assert read(TASKS["casting"], "Longevity: uncertain").raw == {"longevity": ("uncertain",)}


def test_what_a_closed_list_lacks_is_unparsed():
    readings = read(STORY, "Economic situation: rather comfortable\nFamily status: Single Parent").readings
    assert readings["economic_situation"] is Reading.UNPARSED
    assert readings["family_status"] is Reading.VALUE


def test_more_items_than_the_card_allows_are_unparsed():
    extraction = read(ADVISORY, "Activities: hiking, yoga, chess, painting")
    assert extraction.readings["activity"] is Reading.UNPARSED and extraction.raw == {}
    assert read(STORY, "Occupation:\n- nurse\n- baker").readings["occupation"] is Reading.UNPARSED


def test_an_empty_label_and_a_missing_one_are_none():
    assert set(read(STORY, "Occupation:\nShe was a nurse.").readings.values()) == {Reading.NONE}
    assert set(read(STORY, "").readings.values()) == {Reading.NONE}


def test_the_first_of_two_labels_counts_and_labels_inside_a_sentence_do_not():
    assert read(STORY, "Occupation: nurse\nOccupation: baker").raw == {"occupation": ("nurse",)}
    assert read(STORY, "Her occupation: nurse").raw == {}
    assert read(STORY, "Occupations: nurse").raw == {}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("I'm sorry, but I can’t help with that.", True),
        ("As an AI model, I must decline this request.", True),
        ("I cannot guess who is speaking.\n\nOccupation: unclear", True),
        ("I can't wait to tell you about Ann, who sailed away.", False),
        ("I can't help smiling.\n\nOccupation: nurse", False),
        ("I can't guess.\n\nFamily status: complicated", False),
        ("", False),
    ],
)
def test_a_refusal_declines_and_settles_nothing(text, refused):
    assert read(STORY, text).refused is refused


WORDS = st.sampled_from(
    ["Occupation", "Activities", "personality", ":", " - ", "**", "*", "__", "- ", "1. ", "\n", "\n\n", ", ", " and ",
     "; ", "/", "nurse", "kind", "poor", "N/A", "unclear", ".", "“", "\u2028", "\x00", "ı", "İ", "I can't help"]
)  # fmt: skip


@given(st.lists(WORDS | st.text(max_size=8), max_size=30).map("".join), st.sampled_from(sorted(TASKS)))
def test_no_text_breaks_it_and_no_value_is_made_up(text, name):
    task = TASKS[name]
    extraction = read(task, text)
    attributes = task.card.extraction.attributes
    plain = text.replace("**", "").replace("__", "").replace("*", "")
    assert set(extraction.readings) == set(attributes)
    assert {name for name, reading in extraction.readings.items() if reading is Reading.VALUE} == set(extraction.raw)
    for attribute, values in extraction.raw.items():
        assert 1 <= len(values) <= attributes[attribute].up_to
        assert all(value and value in plain and "\n" not in value for value in values)
