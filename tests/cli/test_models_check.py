"""`models check`: what a model is going to be given, and what could not be looked at."""

from pathlib import Path
from typing import Any

import pytest


def test_a_card_with_a_layout_shows_the_final_prompt_and_says_what_was_not_checked(
    quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vibe_harness.backends.preview.importlib.util.find_spec", lambda name: None)
    shown = quick("models", "check", "qwen2-audio", check=0).stdout
    assert "Audio 1: <|audio_bos|><|AUDIO|><|audio_eos|>\nSuggest three specific hobbies" in shown
    assert shown.rstrip().endswith("transformers is not installed: pip install 'vibe-harness[hf]'")
    shown = quick("models", "check", "qwen3-omni", check=0).stdout
    assert "not checked: the final prompt, which the model's own chat template makes" in shown


def test_a_servers_prompt_is_the_servers_own(quick: Any) -> None:
    shown = quick("models", "check", "gemini-3.5-flash-lite", "--task", "story", check=0).stdout
    assert "[clip: WAV" in shown and "not checked: the server makes the final prompt" in shown
    assert "never greedy" in shown
    text = quick("models", "check", "qwen3-8b", check=0).stdout
    assert "takes: text" in text and "[clip" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("qwen2-adio",), "Did you mean 'qwen2-audio'"),
        (("qwen2-audio", "--model-args", "dtyp=float32"), "has no such argument"),
        (("qwen2-audio", "--task", "stroy"), "Did you mean 'story'"),
    ],
)
def test_what_is_wrong_is_told(quick: Any, arguments: tuple[str, ...], said: str) -> None:
    assert said in quick.refuses("models", "check", *arguments)


def test_a_package_of_its_own_back_end_has_nothing_to_show(quick: Any, tmp_path: Path) -> None:
    assert "has no prompt to show" in quick("models", "check", "simulated", check=0).stdout
