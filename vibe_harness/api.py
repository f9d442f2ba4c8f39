"""The harness from Python: what `vibe-harness run` does, with typed results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vibe_harness.pipeline.prepare import Question, prepare
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import Results
from vibe_harness.pipeline.run import run
from vibe_harness.pipeline.words import Modality


def evaluate(
    model: str,
    tasks: Sequence[str],
    corpus: str | Path | None = None,
    *,
    dimensions: Sequence[str] = (),
    extractor: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    prompt_variant: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    tau: int = 10,
    permutations: int = 10_000,
    skip_bad_clips: bool = False,
    modality: Modality = "audio",
    hearing_check: bool = True,
    check_batch_invariance: int = 0,
    max_requests: int | None = None,
    max_cost: float | None = None,
    include_path: Sequence[str | Path] = (),
    output_path: str | Path | None = None,
    progress: Progress | None = None,
) -> list[Results]:
    """Ask a model with recordings, read its answers and score them; goes on from what an earlier call left on disk.

    The arguments are the options of `vibe-harness run` by the same names. Returns the results of each corpus: one where
    `corpus` is given or the model's card names one, else one for each corpus at hand that the tasks are meant for.

    Raises UserError for a mistake in what was asked, and EngineError where an engine fails.
    """
    question = Question(
        model=model,
        tasks=[tasks] if isinstance(tasks, str) else tasks,
        corpus=None if corpus is None else str(corpus),
        dimensions=dimensions,
        extractor=extractor,
        model_args=model_args or {},
        prompt_variant=prompt_variant,
        limit=limit,
        seed=seed,
        tau=tau,
        permutations=permutations,
        skip_bad_clips=skip_bad_clips,
        modality=modality,
        hearing_check=hearing_check,
        check_batch_invariance=check_batch_invariance,
        max_requests=max_requests,
        max_cost=max_cost,
        include_path=[Path(folder) for folder in include_path],
        output_path=None if output_path is None else Path(output_path),
    )
    progress = progress or Progress()
    return [run(prepared, progress) for prepared in prepare(question, progress)]
