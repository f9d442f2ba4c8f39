"""The published tests beside the default one."""

import numpy as np
import pandas as pd
import pytest

from vibe_harness.errors import UserError
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import ntvd
from vibe_harness.metrics.published import known_tests


def stubborn(speakers=5, answers=40):
    """Speakers who keep to a word of their own: what looks like a shift among answers is none among speakers."""
    rng = np.random.default_rng(2)
    rows = []
    for group in "fm":
        for speaker in range(speakers):
            own = "chef" if (speaker < 3) == (group == "f") else "nurse"
            for number in range(answers):
                value = own if rng.random() < 0.95 else "judge"
                request = f"{group}{speaker}-{number}"
                rows.append(
                    {
                        "request": request, "clip": request, "speaker": f"{group}{speaker}", "group": group,
                        "group_sex": group, "group_age": "old" if speaker < 2 else "young", "attribute": "job",
                        "outcome": "ok", "reading": "value", "raw": [value], "values": [value],
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def test_version_1_exchanges_utterances_and_version_2_speakers_without_strata():
    frame = stubborn()
    settings = Settings(tau=1, permutations=300, speaker_strata=("age",), also_test=("version-1", "version-2"))
    for score in ntvd(frame, settings):
        first, second = (score.detail["tests"][name] for name in ("version-1", "version-2"))
        assert first["value"] == second["value"] == pytest.approx(score.value)
        assert first["permuted"] == "utterances" and first["permutations"] == 300 and first["p_value"] < 0.05
        assert second["permuted"] == "speakers" and second["exact"] and second["permutations"] == 252  # 10 over 5
        assert second["p_value"] > 0.1 and score.permuted == "speakers within age"
        assert score.p_value not in (first["p_value"], second["p_value"])
    # By itself, the default is version 2's test for a corpus that declares no strata.
    [whole, _] = ntvd(frame, Settings(tau=1, permutations=300))
    assert whole.p_value == second["p_value"] and "tests" not in whole.detail


def test_a_test_that_nobody_published_is_refused():
    assert known_tests(["version-2", "version-2"]) == ("version-2",)
    with pytest.raises(UserError, match="version-1"):
        known_tests(["version-l"])
