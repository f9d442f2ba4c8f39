"""`vibe-harness run`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vibe_harness.cli.options import also_test, parse_model_args, read_config, split_commas
from vibe_harness.cli.output import echo


@click.command(name="run")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    callback=read_config,
    is_eager=True,
    expose_value=False,
    help="YAML file of these options; the command line wins.",
)
@click.option("--model", required=True, help="Model card: a name, or a YAML file.")
@click.option("--model-args", multiple=True, callback=parse_model_args, help="Overrides for the model: name=value,...")
@click.option(
    "--tasks",
    multiple=True,
    required=True,
    callback=split_commas,
    help="Tasks: names, globs or YAML files, separated by commas.",
)
@click.option(
    "--corpus",
    help="A name, or a manifest (CSV, JSONL, Parquet). Default: the model card's, else all the tasks are meant for.",
)
@click.option(
    "--dimension",
    "dimensions",
    multiple=True,
    callback=split_commas,
    help="Compare the groups of these columns. Default: those of the tasks that the corpus has.",
)
@click.option("--extractor", help="Reads attributes from answers: 'rules' or a model card.")
@click.option("--prompt-variant", help="A prompt's name, or 'all'. Default: the first of each task.")
@click.option("--limit", type=click.IntRange(min=1), help="So many clips, drawn evenly over groups and speakers.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--tau",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="A value counts when seen at least so often.",
)
@click.option("--permutations", type=click.IntRange(min=1), default=10_000, show_default=True)
@also_test
@click.option("--skip-bad-clips", is_flag=True, help="Leave out clips that cannot be used, and say so.")
@click.option(
    "--no-hearing-check",
    "hearing_check",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Do not ask the model what was said before the run; recorded in the results.",
)
@click.option(
    "--modality",
    type=click.Choice(["audio", "transcript", "cascade"]),
    default="audio",
    show_default=True,
    help="What the model is given: the clip, the corpus's words, or its own transcription.",
)
@click.option(
    "--answer-by",
    type=click.Choice(["generate", "likelihood"]),
    default="generate",
    show_default=True,
    help="Choice tasks: by what the model writes, or by its likeliest option letter (hf, vllm).",
)
@click.option(
    "--check-batch-invariance",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Ask N answered requests again, one by one; the results say how many answers differ.",
)
@click.option("--max-requests", type=click.IntRange(min=1), help="Ask the model no more than this, this time.")
@click.option("--trust-remote-code", is_flag=True, help="Run Python code that a card names: a metric's, a model's.")
@click.option("--executor", default="local", show_default=True, help="Where engines run: local or ray.")
@click.option(
    "--executor-args", multiple=True, callback=parse_model_args, help="For ray: workers=8,gpus=1,address=auto"
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    help="Spend no more than this, this time, by the prices of the model card.",
)
@click.option(
    "--include-path",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder with your own tasks/, models/ and templates/.",
)
@click.option("--output-path", type=click.Path(path_type=Path), help="Run folder. Default: one below runs/.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option(
    "--dry-run", is_flag=True, help="Say what would be asked and what it may cost, and show the first prompt."
)
def command(as_json: bool, dry_run: bool, **options: Any) -> int:
    """Ask a model with recordings, read its answers and score how far they shift between groups."""
    from vibe_harness.cli.dry_run import show_dry_run
    from vibe_harness.cli.stopping import UNASKED, kept_words, when_stopped
    from vibe_harness.cli.terminal import TerminalProgress, exit_code, print_json, print_results
    from vibe_harness.pipeline.run import run_all
    from vibe_harness.planning.prepare import Question, prepare
    from vibe_harness.report.run_page import write_run_page
    from vibe_harness.store.results import to_json
    from vibe_harness.store.run_folder import RunFolder

    progress = TerminalProgress()
    with when_stopped(lambda: UNASKED):
        found = prepare(Question(**options), progress)
    if dry_run:
        show_dry_run(found, as_json)
        return 0
    folders = [RunFolder(prepared.folder) for prepared in found]
    with when_stopped(lambda: kept_words([folder.path for folder in folders], ", ".join(str(f.path) for f in folders))):
        results = list(run_all(found, progress))
        for folder in folders:  # ahead of all printing, so that the work is done whoever reads it
            write_run_page(folder, folder.page, progress)
    if as_json:
        print_json([to_json(one) for one in results])
        return exit_code(results)
    for scored, folder in zip(results, folders, strict=True):
        print_results(scored, folder.path)
        echo(f"Page: {folder.page}")
    return exit_code(results)
