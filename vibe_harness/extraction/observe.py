"""Observations: what one response says, one per attribute."""

from __future__ import annotations

from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import Task
from vibe_harness.extraction.canonical import Canonicaliser, canonicalisers
from vibe_harness.heard_nothing import says_nothing_was_heard
from vibe_harness.kinds.base import kind_of
from vibe_harness.records import Clip, Extraction, Observation, Outcome, Reading, Response

BEGINNING = 200
"""Letters of an answer in which it says that there is nothing to hear; further on, a story may say so of somebody."""


def observations(
    task: Task, variant: str, clip: Clip, response: Response, extraction: Extraction | None
) -> list[Observation]:
    """Make one observation for each attribute of the task, in the card's order.

    extraction: of the response; None if there was no text to read. Only responses with text (ok or truncated) have
    values. If such a response has no extraction yet, the readings are errors, to be extracted later.
    """
    outcome = response.outcome
    answer = digest(response.text, 16) if response.text else None
    read = extraction if outcome in (Outcome.OK, Outcome.TRUNCATED) else None
    if read is not None and read.request != response.request:
        raise ValueError(f"the extraction of {read.request} was given for the response to {response.request}")
    if read is not None and read.refused:
        outcome = Outcome.REFUSED
    unheard = bool(response.text) and says_nothing_was_heard(response.text[:BEGINNING])
    found: list[Observation] = []
    for attribute, canonicaliser in canonicalisers(task).items():
        raw: tuple[str, ...] = ()
        values: tuple[str, ...] = ()
        if outcome not in (Outcome.OK, Outcome.TRUNCATED):
            reading = Reading.NONE
        elif read is None:
            reading = Reading.NONE if response.thought and not response.text else Reading.ERROR
        else:
            reading, raw, values = _values_read(read, attribute, canonicaliser)
            if values:  # raw keeps the letter of an option
                values = kind_of(task.card).meaning(task.card, variant, values)
        found.append(
            Observation(
                response.request,
                task.name,
                variant,
                clip.id,
                clip.speaker,
                attribute,
                outcome,
                reading,
                raw,
                values,
                answer,
                bool(response.thought),
                unheard,
            )
        )
    return found


def _values_read(
    read: Extraction, attribute: str, canonicaliser: Canonicaliser
) -> tuple[Reading, tuple[str, ...], tuple[str, ...]]:
    """The reading of an attribute, with raw and canonical values; both are empty unless it is Reading.VALUE."""
    reading = read.readings.get(attribute, Reading.ERROR if read.error else Reading.UNPARSED)
    if reading is not Reading.VALUE:
        return reading, (), ()
    raw = read.raw.get(attribute, ())
    values = canonicaliser.canonical_values(raw)
    if not values or None in map(canonicaliser.canonical, raw):  # read by rules, or under an older card
        return Reading.UNPARSED, (), ()
    return reading, raw, values
