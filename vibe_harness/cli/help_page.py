"""What `vibe-harness --help` shows: the options of a run that people need, each as an example, and the verbs."""

from __future__ import annotations

from collections.abc import Mapping

import click

from vibe_harness.planning.config import ASKED, GROUPS, LIMITS, option_named

EXAMPLES = {
    "model": "--model qwen2-audio",
    "tasks": "--tasks story,advisory",
    "corpus": "--corpus crema-d",
    "dimensions": "--dimension gender,accent",
    "limit": "--limit 200",
    "model_args": "--model-args temperature=0.7",
    "extractor": "--extractor qwen3-8b",
    "tau": "--tau 5",
    "skip_bad_clips": "--skip-bad-clips",
    "max_cost": "--max-cost 5",
    "include_path": "--include-path my-cards",
    "output_path": "--output-path runs/first",
    "fresh": "--fresh",
}
"""Option of a run -> how it is typed, of those that the first help shows."""

DRY_RUN = ("--dry-run", "Show what would be asked, what it may cost, and the first prompt.")

VERB_GROUPS = {
    "Measure": ("run", "study", "score", "power"),
    "Read results": ("show", "report", "compare", "leaderboard", "values"),
    "Check": ("run-check", "validate-extraction"),
    "Cards and corpora": ("tasks", "models", "corpus", "speech-set", "schema"),
}
OTHERS = "More"


def write_help(formatter: click.HelpFormatter, verbs: Mapping[str, str]) -> None:
    """Write the options by group and the verbs by group. verbs: name -> what it does, in a line."""
    for group in GROUPS:
        rows = [
            (example, option.help)
            for name, example in EXAMPLES.items()
            if (option := option_named(name)).group == group
        ]
        with formatter.section(f"{group} (options of `run`)" if group == ASKED else group):
            formatter.write_dl([*rows, *([DRY_RUN] if group == LIMITS else [])])
    formatter.write_paragraph()
    formatter.write_text("All options: vibe-harness run --help")
    grouped = {name for names in VERB_GROUPS.values() for name in names}
    others = tuple(name for name in verbs if name not in grouped)
    for heading, names in {**VERB_GROUPS, OTHERS: others}.items():
        if shown := [(name, verbs[name]) for name in names if name in verbs]:
            with formatter.section(heading):
                formatter.write_dl(shown)
