"""What `--dry-run` says: what would be asked, what it may cost, and the first prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vibe_harness.cli.output import echo
from vibe_harness.cli.terminal import print_json
from vibe_harness.store.responses import FinalResponses

if TYPE_CHECKING:
    from vibe_harness.planning.estimate import Estimate
    from vibe_harness.planning.prepare import PreparedRun

OWN_WORDS = "[what the model writes down of the clip]"


def show_dry_run(found: Sequence[PreparedRun], as_json: bool) -> None:
    """Print it for each corpus that was prepared."""
    data = [_described(prepared) for prepared in found]
    if as_json:
        print_json(data)
        return
    for prepared, one in zip(found, data, strict=True):
        echo(
            f"{one['requests']} requests to {prepared.plan.model.model} over {one['clips']} clips of {one['corpus']} "
            f"({one['audio_seconds'] / 60:.1f} min of audio each time); {one['answered']} are answered already in "
            f"{one['folder']}.\nCompared by {', '.join(prepared.dimensions)}; read by the extractor "
            f"{prepared.extractor}."
        )
        for name in ("model", "extractor"):
            if one["estimate"][name]:
                echo(_told(name, one["estimate"][name]))
        echo(f"The first prompt, with clip {one['first_clip']}:\n\n{one['first_prompt_laid_out']}")


def _described(prepared: PreparedRun) -> dict[str, Any]:
    from vibe_harness.extraction.opening import find_extractor
    from vibe_harness.modality import in_words
    from vibe_harness.planning.estimate import estimate_extractor, estimate_model
    from vibe_harness.store.run_folder import RunFolder

    plan = prepared.plan
    done = FinalResponses(RunFolder(prepared.folder).responses, plan.table()).answered
    first, layout = next(plan.requests()), plan.model.layout
    prompt = in_words(OWN_WORDS, first.prompt) if plan.modality == "cascade" else first.prompt
    estimates: dict[str, Estimate | None] = {
        "model": estimate_model(plan, done),
        "extractor": estimate_extractor(plan, find_extractor(prepared.extractor, prepared.index)),
    }
    heard = plan.modality == "audio"
    return {
        "corpus": prepared.corpus.name,
        "tasks": [task.name for task in plan.tasks],
        "modality": plan.modality,
        "answer_by": plan.answer_by,
        "requests": len(plan),
        "answered": len(done),
        "clips": len(plan.clips),
        "audio_seconds": sum(heard.seconds for heard in plan.clips),
        "dimensions": list(prepared.dimensions),
        "folder": str(prepared.folder),
        "estimate": {name: asdict(one) if one else None for name, one in estimates.items()},
        "first_clip": first.clip,
        "first_prompt": prompt,
        "first_prompt_laid_out": f"{layout.before}[clip]{layout.after}\n{prompt}{layout.end}" if heard else prompt,
    }


def _told(name: str, one: dict[str, Any]) -> str:
    if one["audio_tokens"] is None:
        audio = f"{one['audio_seconds'] / 60:.1f} min of audio (tokens not known: audio_tokens_per_second of its card)"
    else:
        audio = f"{one['audio_seconds'] / 60:.1f} min of audio in {one['audio_tokens']:,} tokens"
    cost = ""
    if one["most_cost"] is not None:
        cost = f", at most about {one['most_cost']:.2f} {one['currency']}"
    elif one["currency"]:
        cost = ", at a cost that is not known"
    heard = f"{audio} and " if one["audio_seconds"] else ""
    return (
        f"The {name}: {one['requests']:,} requests to come, {heard}about {one['text_tokens']:,} tokens of text, at "
        f"most {one['most_output_tokens']:,} tokens of answers{cost}."
    )
