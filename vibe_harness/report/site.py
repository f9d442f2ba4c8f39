"""The leaderboard as a folder of pages and files, written whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from vibe_harness.cards.digest import digest
from vibe_harness.progress import Progress
from vibe_harness.report.board import Board
from vibe_harness.report.board_page import board_context, board_environment
from vibe_harness.report.board_runs import Entry
from vibe_harness.report.board_tables import as_csv, as_json, as_markdown, attributes_csv
from vibe_harness.report.latex import attributes_latex, scores_latex, trust_latex
from vibe_harness.report.model_page import model_context
from vibe_harness.report.relations import Beside, beside_choice, corpus_agreement, task_relations, tau_rows
from vibe_harness.report.run_page import write_run_page
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.run_folder import RunFolder


def write_site(
    output: Path,
    board: Board,
    entries: Sequence[Entry],
    published_beside: Sequence[Beside],
    progress: Progress,
    *,
    figures: bool = False,
    answers: bool = False,
) -> Path:
    """Write index.html, a page for each model, and the files of the same figures; returns the index.

    figures: a drawing of each block too. answers: the page of each run too, with its single answers; else there are
    aggregates only.

    Raises UserError where a file cannot be written.
    """
    pages = _page_names(board)
    templates = board_environment()
    correlations = [found for block in board.blocks if (found := task_relations(block))]
    tau = [row for block in board.blocks for row in tau_rows(block)]
    agreement = corpus_agreement(board.blocks)
    beside = [*beside_choice(board.blocks), *published_beside]
    texts = {
        "leaderboard.csv": as_csv(board),
        "leaderboard.json": as_json(board, correlations, tau, agreement, beside),
        "leaderboard.md": as_markdown(board),
        "leaderboard.tex": scores_latex(board),
        "attributes.csv": attributes_csv(board),
        "attributes.tex": attributes_latex(board),
        "trust.tex": trust_latex(board),
    }
    shared = {"version": version("vibe-harness")}
    page = templates.get_template("model.html.j2")
    samples = _answers(output, entries, progress) if answers else []
    drawings = draw_boards(output, board, progress) if figures else []
    with progress.stage("writing pages", len(pages)) as tick:
        for key, name in pages.items():
            own = [entry for entry in entries if entry.identity == key]
            context = model_context(key, board, own)
            _write(output / "models" / name, page.render(model=context, family=board.family, **shared))
            tick(1)
        for name, text in texts.items():
            _write(output / name, text)
        index = templates.get_template("leaderboard.html.j2").render(
            board_context(board, entries, correlations, tau, agreement, beside),
            pages=pages, files=list(texts), figures=drawings, samples=samples, script="tables.js", **shared,
        )  # fmt: skip
        _write(output / "index.html", index)
    return output / "index.html"


def _answers(output: Path, entries: Sequence[Entry], progress: Progress) -> list[str]:
    """Write the page of each run, without its clips; its file, as the index names it."""
    files = []
    with progress.stage("writing pages of runs", len(entries)) as tick:
        for number, entry in enumerate(entries, 1):
            name = _file_name(f"{number}-{entry.results.model}-{entry.results.corpus}")
            write_run_page(RunFolder(entry.path), output / "answers" / f"{name}.html", clips=False)
            files.append(f"answers/{name}.html")
            tick(1)
    return files


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")[:60]


def draw_boards(output: Path, board: Board, progress: Progress) -> list[str]:
    """Write the figure of each block that has shifts; the files, as the index names them."""
    from vibe_harness.report.figures import board_figure, save_figures

    files = []
    with progress.stage("drawing figures", len(board.blocks)) as tick:
        for number, block in enumerate(board.blocks, 1):
            if block.main_columns() and block.rows:
                name = _file_name(f"{number}-{block.dimension}-{block.corpus}")
                drawn = save_figures(partial(board_figure, block), output / "figures" / name)
                files += [f"figures/{path.name}" for path in drawn]
            tick(1)
    return files


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="replace")


def _page_names(board: Board) -> dict[str, str]:
    """Key of a measured model -> the name of its page."""
    names: dict[str, str] = {}
    for block in board.blocks:
        for row in block.rows:
            if not block.published and row.key not in names:
                plain = _file_name(row.model)
                names[row.key] = f"{plain}-{digest(row.key, 6)}.html" if plain != row.model else f"{plain}.html"
    return names
