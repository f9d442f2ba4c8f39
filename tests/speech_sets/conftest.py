"""A small set of questions, its card changed as a test needs."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

QUESTIONS = """\
sample_id,question,option_a,option_b,answer,subject
1,What is the capital of France?,Paris,Rome,A,geography
2,How many legs does a spider have?,Six,Eight,B,biology
3,"What is 2 + 3, please?",5,6,A,mathematics
"""
CARD = {
    "speech_set": "set",
    "version": 1,
    "description": "made by a test",
    "source": "questions.csv",
    "id": "sample_id",
    "texts": ["question", "option_a", "option_b"],
    "keep": ["answer", "subject"],
    "licence": "CC0-1.0",
    "voices": [
        {
            "voice": "amy",
            "settings": {"voice": "en+f2"},
            "groups": {"language": "en", "accent": "british", "gender": "female"},
        },
        {
            "voice": "bob",
            "settings": {"voice": "en-us+m3"},
            "groups": {"language": "en", "accent": "american", "gender": "male"},
        },
    ],
}
WriteSet = Callable[..., Path]


@pytest.fixture
def write_set(tmp_path: Path) -> WriteSet:
    """write_set(questions=..., **fields of the card) -> the card's file."""

    def write(questions: str = QUESTIONS, **fields: object) -> Path:
        folder = tmp_path / "set"
        folder.mkdir(exist_ok=True)
        (folder / "questions.csv").write_text(questions, encoding="utf-8")
        (folder / "set.yaml").write_text(yaml.safe_dump({**CARD, **fields}, sort_keys=False), encoding="utf-8")
        return folder / "set.yaml"

    return write
