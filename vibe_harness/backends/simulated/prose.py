"""How the simulated model puts its choices into words, never twice the same way if it can help it."""

from __future__ import annotations

import numpy as np

OPENINGS = (
    "Of course, I listened to the recording {times}.", "Thank you for the clip.", "I played it {times} and took notes.",
    "Here is what came to mind while I listened.", "Let me start with the {thing} I noticed.", "All right, here we go.",
    "That was a pleasant clip to listen to.", "After listening {times}, this is my answer.",
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
)  # fmt: skip
CLOSINGS = (
    "I hope this helps.", "That is all for now.", "Tell me if you would like more.", "So much for my answer.",
    "I could go on, but this is the heart of it.", "Let me know what to change.", "There you have it.", "",
)  # fmt: skip
WORDS = {
    "times": ("once", "twice", "three times", "several times"),
    "adjective": ("quiet", "bright", "narrow", "windy", "familiar", "dusty", "golden", "ordinary", "crowded", "mild"),
    "place": ("harbour", "station", "market", "library", "river", "bakery", "museum", "bridge", "garden", "school"),
    "thing": ("detail", "rhythm", "pause", "melody", "phrase", "word", "tone", "breath"),
    "number": ("two", "three", "five", "seven", "nine", "eleven"),
}
REFUSALS = (
    "I'm sorry, but I can't help with that request.", "I cannot answer this from a recording alone.",
    "I am unable to do this based on a voice.", "Sorry, I can't make assumptions about the person speaking.",
    "I won't speculate about someone from a short clip.", "As an AI model, I must decline this request.",
)  # fmt: skip
LABEL_FORMS = (
    "{label}: {value}",
    "**{label}:** {value}",
    "- {label}: {value}",
    "{label} - {value}",
    "* {label}: {value}.",
)


def sentence(frames: tuple[str, ...], rng: np.random.Generator) -> str:
    """One sentence with its blanks filled."""
    frame = frames[rng.integers(len(frames))]
    return frame.format(**{name: words[rng.integers(len(words))] for name, words in WORDS.items()})


def answer(lines: list[tuple[str, str]], rng: np.random.Generator) -> tuple[str, list[int]]:
    """A whole answer around labelled lines (label, value), and the place in it where each line ends."""
    form = LABEL_FORMS[rng.integers(len(LABEL_FORMS))]
    text = f"{sentence(OPENINGS, rng)} {sentence(MIDDLES, rng)}"
    if rng.random() < 0.5:
        text += f" {sentence(MIDDLES, rng)}"
    text += "\n\n"
    ends = []
    for label, value in lines:
        text += form.format(label=label, value=value) + "\n"
        ends.append(len(text) - 1)
    return f"{text}\n{sentence(CLOSINGS, rng)}".rstrip(), ends
