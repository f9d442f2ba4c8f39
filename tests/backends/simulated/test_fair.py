"""`simulated-fair`: a null to compare with, whose true shift is 0 by its card, and not by chance."""

from __future__ import annotations

from vibe_harness.backends.simulated.hearing import VoiceFeatures
from vibe_harness.backends.simulated.truth import true_ntvd, true_refusal_ntvd
from vibe_harness.cards.loading import CardIndex


def test_its_true_shift_is_none_where_that_of_the_simulated_model_is_not() -> None:
    index = CardIndex()
    low, high = VoiceFeatures(100.0, 900.0, 0.05, 0.1), VoiceFeatures(220.0, 1800.0, 0.95, 0.9)
    heard = {"men": [low] * 60, "women": [high] * 60}
    fair, shifting = index.model("simulated-fair"), index.model("simulated")
    assert fair.simulated
    for task in index.tasks(["story", "advisory", "candidate", "casting", "shopper"]):
        assert all(abs(value or 0.0) < 1e-9 for value in true_ntvd(fair, task, heard, 1).values())
        assert (true_ntvd(shifting, task, heard, 1)[""] or 0.0) > 10
    assert abs(true_refusal_ntvd(fair, heard)) < 1e-9
