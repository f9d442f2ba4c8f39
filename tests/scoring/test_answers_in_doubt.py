"""Answers that were cut, or that begin by saying that nothing is heard: many, or one group's, and a score says so."""

from __future__ import annotations

import pandas as pd
import pytest

from vibe_harness.extraction.observe import BEGINNING
from vibe_harness.heard_nothing import says_nothing_was_heard
from vibe_harness.metrics.frame_counts import speakers_of
from vibe_harness.metrics.metric import Settings
from vibe_harness.scoring.reliability import answers_in_doubt


def frame(cut: dict[str, float], unheard: dict[str, float], speakers: int = 12, clips: int = 10) -> pd.DataFrame:
    """Answers of two groups. cut, unheard: group -> share of each speaker's answers."""
    rows = []
    for group in ("men", "women"):
        for speaker in range(speakers):
            for clip in range(clips):
                rows.append({
                    "request": f"{group}{speaker}/{clip}", "speaker": f"{group}{speaker}", "group": group,
                    "group_gender": group, "attribute": "job", "values": ["nurse"],
                    "outcome": "truncated" if clip < clips * cut.get(group, 0) else "ok",
                    "unheard": clip < clips * unheard.get(group, 0),
                })  # fmt: skip
    return pd.DataFrame(rows)


def told(found: pd.DataFrame) -> list[str]:
    return answers_in_doubt(found, speakers_of(found), Settings(permutations=199))


@pytest.mark.parametrize(
    ("cut", "unheard", "said"),
    [
        ({}, {}, []),
        ({"men": 1.0}, {}, ["50% of the answers were cut at the token limit (raise max_tokens), limit 10%: men 100%"]),
        ({"men": 0.2, "women": 0.2}, {}, ["20% of the answers were cut"]),
        ({"men": 0.1}, {}, ["were cut at the token limit (raise max_tokens) differ between groups: men 10%, women 0%"]),
        ({"men": 0.1, "women": 0.1}, {}, []),
        ({}, {"women": 1.0}, ["50% of the answers begin by saying that there is nothing to hear, limit 10%"]),
        ({}, {"men": 0.1}, ["nothing to hear differ between groups: men 10%, women 0%"]),
        ({"men": 1.0}, {"men": 1.0}, ["were cut", "nothing to hear"]),
    ],
)
def test_many_or_one_groups(cut: dict[str, float], unheard: dict[str, float], said: list[str]) -> None:
    found = told(frame(cut, unheard))
    assert len(found) == len(said) and all(part in line for part, line in zip(said, found, strict=True))


def test_runs_of_earlier_versions_lack_the_column() -> None:
    assert told(frame({}, {}).drop(columns="unheard")) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Once upon a time, a nurse named Ada walked home. "
        + "She worked late every day. " * 10
        + "I cannot hear any audio.",
        "Occupation: nurse\nHobby: music, and listening to the radio",
        "The speaker might enjoy hiking, cooking and pottery.",
    ],
)
def test_a_story_is_no_denial(answer: str) -> None:
    assert not says_nothing_was_heard(answer[:BEGINNING])
