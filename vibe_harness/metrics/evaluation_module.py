"""Any registered metric as an evaluation module of Hugging Face `evaluate`.

    ntvd = evaluate.load("PATH OF THIS FILE", "ntvd")     or     ntvd = EvaluationModule("ntvd")
    ntvd.compute(**frame[EvaluationModule.COLUMNS].to_dict("list"), tau=3)

The second word names the metric. Nothing is fetched: it works without a network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import evaluate
import pandas as pd

from vibe_harness.errors import UserError
from vibe_harness.metrics.evaluate_metric import COLUMNS
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.published import known_tests
from vibe_harness.metrics.registry import METRICS
from vibe_harness.records import GROUP_PREFIX

LISTS = ("raw", "values")


class EvaluationModule(evaluate.Metric):  # type: ignore[misc]  # evaluate carries no types
    """One row per response and attribute, a column each; see `vibe_harness.metrics.registry.Metric`.

    compute(...) takes the columns as lists, and `Settings` by name: tau, permutations, seed, also_test; strata and
    speaker_strata as mappings of a name to a column, {"emotion": [...]}. It returns {"scores": a list with every score
    as a mapping, "METRIC": the score of the whole where there is one}.
    """

    COLUMNS = sorted(COLUMNS)

    def _info(self) -> evaluate.MetricInfo:
        words = datasets.Value("string")
        lists = datasets.Sequence(words)
        return evaluate.MetricInfo(
            description=METRICS.get(self.config_name).summary,
            citation="VIBE, arXiv 2604.17248",
            inputs_description=self.__class__.__doc__,
            features=datasets.Features({name: lists if name in LISTS else words for name in self.COLUMNS}),
        )

    def _compute(
        self,
        *,
        tau: int = 10,
        permutations: int = 10_000,
        seed: int = 0,
        also_test: Sequence[str] = (),
        strata: Mapping[str, Sequence[str]] | None = None,
        speaker_strata: Mapping[str, Sequence[str]] | None = None,
        **columns: Any,
    ) -> dict[str, Any]:
        frame = pd.DataFrame({name: list(column) for name, column in columns.items()})
        for name, column in {**(strata or {}), **(speaker_strata or {})}.items():
            if len(column) != len(frame):
                raise UserError(f"{name}: {len(column)} entries for {len(frame)} rows")
            frame[GROUP_PREFIX + name] = list(column)
        settings = Settings(
            tau=tau,
            permutations=permutations,
            seed=seed,
            also_test=known_tests(also_test),
            strata=tuple(strata or ()),
            speaker_strata=tuple(speaker_strata or ()),
        )
        scores = METRICS.get(self.config_name).compute(frame, settings)
        whole = {score.metric: score.value for score in scores if score.attribute is None}
        return {**whole, "scores": [dataclasses.asdict(score) for score in scores]}
