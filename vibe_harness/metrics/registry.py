"""The metrics there are, by name."""

from __future__ import annotations

from vibe_harness.errors import UserError
from vibe_harness.metrics.metric import EVALUATE, Metric
from vibe_harness.metrics.presentation import Presentation
from vibe_harness.registry import Registry

METRICS: Registry[Metric] = Registry(
    "metric",
    "vibe_harness.metrics",
    {
        "ntvd": "vibe_harness.metrics.ntvd:NTVD",
        "refusal_ntvd": "vibe_harness.metrics.refusal_ntvd:REFUSAL_NTVD",
        "diversity": "vibe_harness.metrics.diversity:DIVERSITY",
        "slifs": "vibe_harness.metrics.stereotypes:SLIFS",
        "slms": "vibe_harness.metrics.stereotypes:SLMS",
        "slbs": "vibe_harness.metrics.stereotypes:SLBS",
        "slbs_binomial": "vibe_harness.metrics.stereotypes:SLBS_BINOMIAL",
        "parity_deviation": "vibe_harness.metrics.stereotypes:PARITY_DEVIATION",
        "choice_by_place": "vibe_harness.metrics.places:CHOICE_BY_PLACE",
        "accuracy": "vibe_harness.metrics.consistency:ACCURACY",
        "question_entropy": "vibe_harness.metrics.consistency:QUESTION_ENTROPY",
        "apes": "vibe_harness.metrics.consistency:APES",
        "fleiss_kappa": "vibe_harness.metrics.consistency:FLEISS_KAPPA",
        "fleiss_kappa_averaged": "vibe_harness.metrics.consistency:FLEISS_KAPPA_AVERAGED",
    },
)


def find_metric(name: str, *, trust_remote_code: bool = False) -> Metric:
    """The registered metric with this name or, for "evaluate:NAME", the one of Hugging Face `evaluate`.

    Raises UserError, with a suggestion, if there is none, and for the latter if its code is not trusted.
    """
    if name.startswith(EVALUATE):
        if not trust_remote_code:
            raise UserError(
                f"the metric '{name}' is Python code that a card names: read it, then allow it with --trust-remote-code"
            )
        from vibe_harness.metrics.evaluate_metric import evaluate_metric

        return evaluate_metric(name)
    return METRICS.get(name)


def presentation_of(name: str) -> Presentation:
    """How the scores of a metric are shown. A plain line where the metric declares nothing, is one of Hugging Face
    `evaluate` ("evaluate:NAME", "evaluate:NAME:FIGURE"), or its package is not installed where the run is read."""
    declared = METRICS.get(name).presentation if name in METRICS.names() else None
    return declared or Presentation(name.removeprefix(EVALUATE).replace("_", " "))
