"""The harness from Python: what the command line does, with typed results."""

from __future__ import annotations

from typing import Any

from vibe_harness.pipeline.prepare import Question, prepare
from vibe_harness.pipeline.progress import Progress
from vibe_harness.pipeline.results import Results
from vibe_harness.pipeline.run import run


def evaluate(*, progress: Progress | None = None, **question: Any) -> Results:
    """Ask a model with recordings, read its answers and score them; resumes what an earlier call left.

    The arguments are the fields of `Question`: model, tasks, corpus, dimensions, extractor, model_args, limit, seed,
    tau, permutations, skip_bad_clips, include_path, output_path. Raises UserError for a mistake in them and
    EngineError where the engine fails.
    """
    progress = progress or Progress()
    return run(prepare(Question(**question), progress), progress)
