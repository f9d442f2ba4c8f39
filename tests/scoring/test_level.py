"""A design in which the test rejects true nulls too often: the score says so, and is not reliable."""

from vibe_harness.records import Score
from vibe_harness.scoring.score import _levels_not_held


def test_the_share_of_true_nulls_rejected_is_told_by_metric() -> None:
    scores = [
        Score(metric="ntvd", value=3.0, detail={"level": 0.06}),
        Score(metric="ntvd", attribute="pay", value=3.0, detail={"level": 0.18}),
        Score(metric="refusal_ntvd", value=1.0, detail={}),
    ]
    (warning,) = _levels_not_held(scores)
    assert "ntvd" in warning and "the test of pay" in warning and "18%" in warning
    assert not _levels_not_held(scores[::2])
