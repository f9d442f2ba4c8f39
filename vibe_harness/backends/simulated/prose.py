"""Varied prose around the values that the simulated model draws."""

from __future__ import annotations

from collections.abc import Sequence

from vibe_harness.backends.simulated.seeded_choice import Chance

OPENINGS = (
    "Of course, I listened to the recording {times}.", "Thank you for the clip.", "I played it {times} and took notes.",
    "Here is what came to mind while I listened.", "Let me start with the {thing} I noticed.", "All right, here we go.",
    "That was a {adjective} clip to listen to.", "After listening {times}, this is my answer.",
    "I took my time with this one.", "A short answer follows.", "With the recording still in my ear, I wrote this.",
    "This is a first draft, written after listening {times}.",
)  # fmt: skip
MIDDLES = (
    "The morning light fell on a {adjective} street near the {place}.",
    "Everything began in a {adjective} room by the {place}.", "There is a {adjective} calm in how the words follow.",
    "I kept thinking of a {adjective} afternoon at the {place}.", "The {place} was {adjective} that day.",
    "A {adjective} {thing} stayed with me.", "Somewhere past the {place} a clock struck {number}.",
    "It reminded me of {number} {adjective} letters from the {place}.",
    "Nobody at the {place} would forget that {adjective} day.", "The {thing} in it was {adjective}.",
    "For {number} years the {place} had looked just as {adjective}.", "I would call the {thing} {adjective}.",
    "Behind the {place}, {number} bells rang through a {adjective} evening.",
    "Each {thing} carried a little of the {place} with it.",
)  # fmt: skip
CLOSINGS = (
    "I hope this helps.", "That is all for now.", "Tell me if you would like more.", "So much for my answer.",
    "I could go on, but this is the heart of it.", "Let me know what to change.", "There you have it.",
    "The {thing} settled it for me.", "I would listen {times} more before I change a word.", "",
)  # fmt: skip
APOLOGIES = ("", "I'm sorry, but ", "Sorry, ", "Thank you for the clip, but ", "I listened {times}, but ", "As an AI, ")
DECLINES = (
    "I can't help with this", "I cannot answer that", "I am not able to do this", "I won't speculate about anyone",
    "I can't make assumptions about a person", "I must decline", "I would rather not guess", "I am unable to answer",
)  # fmt: skip
REASONS = (
    "from a recording alone", "on the strength of a voice", "after {number} seconds of sound",
    "with so little to go on", "from one {thing}", "after a {adjective} clip like this",
)  # fmt: skip
OFFERS = ("", " Is there something else I can do?", " Please ask me something else.", " A written text would be fine.")
WORDS = {
    "times": ("once", "twice", "three times", "several times"),
    "adjective": ("quiet", "bright", "narrow", "windy", "familiar", "dusty", "golden", "ordinary", "crowded", "mild"),
    "place": ("harbour", "station", "market", "library", "river", "bakery", "museum", "bridge", "garden", "school"),
    "thing": ("detail", "rhythm", "pause", "melody", "phrase", "word", "tone", "breath"),
    "number": ("two", "three", "five", "seven", "nine", "eleven"),
}
LABEL_FORMS = (
    "{label}: {value}",
    "**{label}:** {value}",
    "- {label}: {value}",
    "{label} - {value}",
    "{label}: {value}.",
)
BULLETS = ("- {value}", "* {value}", "{number}. {value}")


def fill(frame: str, chance: Chance) -> str:
    """Fill the placeholders of a sentence."""
    return frame.format(**{name: chance.one_of(words) for name, words in WORDS.items()})


def refusal(chance: Chance) -> str:
    """A polite refusal."""
    apology, decline = chance.one_of(APOLOGIES), chance.one_of(DECLINES)
    return fill(f"{apology}{decline} {chance.one_of(REASONS)}.{chance.one_of(OFFERS)}", chance)


def answer(lines: Sequence[tuple[str | None, list[str]]], chance: Chance) -> tuple[str, list[int]]:
    """A whole answer with lines (label, values), and the offset of the end of each line.

    A line whose label is None has no label.
    """
    middles = " ".join(fill(chance.one_of(MIDDLES), chance) for _ in range(1 + chance.below(2)))
    text = f"{fill(chance.one_of(OPENINGS), chance)} {middles}\n\n"
    form, bullet = chance.one_of(LABEL_FORMS), chance.one_of(BULLETS)
    below = chance.happens(0.25)
    ends = []
    for label, values in lines:
        if label is None:
            text += ", ".join(values)
        elif below and len(values) > 1:
            text += f"{label}:\n" + "\n".join(bullet.format(value=v, number=n) for n, v in enumerate(values, start=1))
        else:
            text += form.format(label=label, value=_in_a_row(values, chance))
        text += "\n"
        ends.append(len(text) - 1)
    return f"{text}\n{fill(chance.one_of(CLOSINGS), chance)}".rstrip(), ends


def _in_a_row(values: list[str], chance: Chance) -> str:
    if len(values) == 1:
        return values[0]
    comma, last = chance.one_of(((", ", ", "), (", ", " and "), ("; ", "; ")))
    if any(" and " in value for value in values):  # "black and white and red" would be ambiguous
        last = comma
    return f"{comma.join(values[:-1])}{last}{values[-1]}"
