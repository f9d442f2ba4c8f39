"""What people type who come from lm-evaluation-harness, and what to use here instead."""

from __future__ import annotations

OPTIONS = {
    "--apply-chat-template": "the model's own chat template is always applied: leave it out",
    "--batch-size": "engines form batches themselves. To bound them: --model-args max_num_seqs=8 (vllm) or "
    "--model-args concurrency=8 (servers). Whether batches change answers: --check-batch-invariance N",
    "--cache-requests": "every answer is kept as it arrives, and the same command goes on from there: leave it out",
    "--check-integrity": "use `vibe-harness run-check RUN`",
    "--confirm-run-unsafe-code": "use --trust-remote-code",
    "--device": "use --model-args device=cuda (hf); vllm takes the GPUs that CUDA_VISIBLE_DEVICES names",
    "--fewshot-as-multiturn": "no examples are shown to the model, since they would lead its answers",
    "--gen-kwargs": "how answers are generated stands in the task card; --model-args temperature=0.7 overrides it",
    "--log-samples": "every answer is always kept, in responses.jsonl of the run folder, and shown by report.html",
    "--max-batch-size": "use --model-args max_num_seqs=8 (vllm) or --model-args concurrency=8 (servers)",
    "--num-fewshot": "no examples are shown to the model, since they would lead its answers",
    "--predict-only": "answers are kept: `vibe-harness score RUN` scores them again without the model",
    "--samples": "use --limit N, which draws evenly over groups and speakers",
    "--show-config": "use --dry-run, or `vibe-harness tasks show NAME`",
    "--system-instruction": "write it into a task's prompt template: `vibe-harness tasks new NAME`",
    "--use-cache": "every answer is kept as it arrives, and the same command goes on from there: leave it out",
    "--verbosity": "progress and warnings are always shown: leave it out",
    "--wandb-args": "results.json and observations.parquet in the run folder can be logged from Python",
    "--write-out": "use --dry-run, which shows the first prompt",
}
"""Option of lm_eval -> what to use."""

VERBS = {
    "ls": "use `vibe-harness tasks list`, `models list` or `corpus list`",
    "list": "use `vibe-harness tasks list`, `models list` or `corpus list`",
    "validate": "use `vibe-harness tasks check TASK`",
    "eval": "use `vibe-harness run`, or leave the verb out",
    "evaluate": "use `vibe-harness run`, or leave the verb out",
}
"""Verb of lm_eval -> what to use."""


def option_hint(option: str) -> str | None:
    """What to use in place of an option of lm_eval; None for any other."""
    hint = OPTIONS.get(option.replace("_", "-"))
    return None if hint is None else f"{option}: {hint}"


def verb_hint(verb: str) -> str | None:
    """What to use in place of a verb of lm_eval; None for any other."""
    hint = VERBS.get(verb)
    return None if hint is None else f"there is no verb '{verb}': {hint}"
