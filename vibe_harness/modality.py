"""Modalities: the model gets a clip as audio, as the corpus's text, or as its own transcription of the audio."""

from __future__ import annotations

from typing import Literal

Modality = Literal["audio", "transcript", "cascade"]
TRANSCRIBE = "Write down, word for word, what is said in this recording. Give the words alone, without any remark."
TRANSCRIPTION_TOKENS = 1024  # four minutes of speech
_IN_WORDS = 'In place of the recording, here are its words as they were written down:\n\n"{words}"\n\n{prompt}'


def in_words(words: str, prompt: str) -> str:
    """A task's prompt with the words of a clip in place of its audio."""
    return _IN_WORDS.format(words=" ".join(words.split()), prompt=prompt)


def modality_identity(modality: Modality) -> str:
    """Everything about the modality that can change an answer. It is part of every request id."""
    return f"{modality}\n{TRANSCRIBE}\n{TRANSCRIPTION_TOKENS}\n{_IN_WORDS}" if modality == "cascade" else modality
