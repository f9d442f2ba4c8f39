"""Makes the spoken labels of choice tasks: "question" and the letters, by eSpeak NG. Nothing here was recorded.

    python templates/labels/make_labels.py

writes question.ogg, a.ogg to h.ogg beside this script, in one voice, with the synthesizer of the demo corpus.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "corpora" / "demo" / "make_demo.py"
WORDS = {"question": "Question."} | {letter: f"{letter.upper()}." for letter in "abcdefgh"}


def make(folder: Path) -> None:
    """Write the clips; one whose waveform has not changed is left as it is."""
    spec = importlib.util.spec_from_file_location("make_demo", DEMO)
    assert spec and spec.loader
    demo = importlib.util.module_from_spec(spec)
    sys.modules["make_demo"] = demo  # where its dataclass looks for itself
    spec.loader.exec_module(demo)
    espeak = demo.Espeak()
    voice = demo.Voice("label", "none", "american", "m3", 50, 40, 150)
    for name, text in WORDS.items():
        demo.write_if_changed(folder / f"{name}.ogg", demo.clip_bytes(espeak.say(voice, text), espeak.sample_rate))


if __name__ == "__main__":
    make(HERE)
