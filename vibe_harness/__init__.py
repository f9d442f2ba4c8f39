"""Measures how far an audio-language model's answers shift with the voice that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vibe_harness.api import (
        check_corpus,
        check_run,
        check_tasks,
        cite,
        compare,
        evaluate,
        export_run,
        list_corpora,
        list_models,
        list_tasks,
        load_corpus,
        make_speech_set,
        new_card,
        observations,
        power,
        prepare_corpus,
        push_run,
        results,
        run_study,
        sample_responses,
        schema,
        score,
        score_judgments,
        values,
        write_leaderboard,
        write_report,
    )

__all__ = [
    "check_corpus",
    "check_run",
    "check_tasks",
    "cite",
    "compare",
    "evaluate",
    "export_run",
    "list_corpora",
    "list_models",
    "list_tasks",
    "load_corpus",
    "make_speech_set",
    "new_card",
    "observations",
    "power",
    "prepare_corpus",
    "push_run",
    "results",
    "run_study",
    "sample_responses",
    "schema",
    "score",
    "score_judgments",
    "values",
    "write_leaderboard",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """What `vibe_harness.api` offers is imported when it is asked for: a bare `import vibe_harness` stays light."""
    if name in __all__:
        from vibe_harness import api

        return getattr(api, name)
    raise AttributeError(f"module 'vibe_harness' has no attribute '{name}'")
