"""The leaderboard as a folder of pages and files, written whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from vibe_harness.cards.digest import digest
from vibe_harness.progress import Progress
from vibe_harness.report.board import Board, Cell
from vibe_harness.report.board_runs import Entry
from vibe_harness.report.board_tables import as_csv, as_json, as_latex, as_markdown
from vibe_harness.report.html import environment
from vibe_harness.report.model_page import model_context
from vibe_harness.report.relations import (
    REFERENCE,
    Beside,
    beside_choice,
    corpus_agreement,
    task_relations,
    tau_rows,
)
from vibe_harness.report.run_page import write_run_page
from vibe_harness.stats.agreement import TAUS
from vibe_harness.store.atomic_files import atomic_write
from vibe_harness.store.run_folder import RunFolder

FILES = ("leaderboard.csv", "leaderboard.json", "leaderboard.md", "leaderboard.tex")


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
    templates = environment().overlay()  # the filters of others stay as they are
    templates.filters = {**templates.filters, "span": _span}
    correlations = [found for block in board.blocks if (found := task_relations(block))]
    tau = [row for block in board.blocks for row in tau_rows(block)]
    agreement = corpus_agreement(board.blocks)
    beside = [*beside_choice(board.blocks), *published_beside]
    texts = {
        "leaderboard.csv": as_csv(board),
        "leaderboard.json": as_json(board, correlations, tau, agreement, beside),
        "leaderboard.md": as_markdown(board),
        "leaderboard.tex": as_latex(board),
    }
    shared = {"version": version("vibe-harness")}
    page = templates.get_template("model.html.j2")
    samples = _answers(output, entries, progress) if answers else []
    drawings = _figures(output, board, progress) if figures else []
    with progress.stage("writing pages", len(pages)) as tick:
        for key, name in pages.items():
            own = [entry for entry in entries if entry.identity == key]
            context = model_context(key, board, own)
            _write(output / "models" / name, page.render(model=context, family=board.family, **shared))
            tick(1)
        for name, text in texts.items():
            _write(output / name, text)
        index = templates.get_template("leaderboard.html.j2").render(
            board=board, pages=pages, correlations=correlations, tau=tau, taus=TAUS, reference=REFERENCE,
            agreement=agreement, beside=beside, coverage=_coverage(board), prompts=_prompts(entries), files=FILES,
            figures=drawings, samples=samples, script="tables.js", **shared,
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


def _figures(output: Path, board: Board, progress: Progress) -> list[str]:
    """Write the figure of each block that has one, as SVG and PNG; the files, as the index names them."""
    from vibe_harness.report.figures import board_figure, save_figure

    files = []
    with progress.stage("drawing figures", len(board.blocks)) as tick:
        for number, block in enumerate(board.blocks, 1):
            figure = board_figure(block)
            if figure is not None:
                name = _file_name(f"{number}-{block.dimension}-{block.corpus}")
                files += [f"figures/{path.name}" for path in save_figure(figure, output / "figures" / name)]
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


def _span(cell: Cell, scale: float) -> Markup:
    """Where a cell's interval and value lie on a scale, for the style."""
    assert cell.interval is not None and cell.value is not None
    low, high = (100 * end / scale for end in cell.interval)
    return Markup(f"--l:{low:.0f}%;--r:{high:.0f}%;--v:{100 * cell.value / scale:.0f}%")  # numbers alone


def _coverage(board: Board) -> list[dict[str, Any]]:
    """For each measured block: model, hearing check, and for each task what was read and refused."""
    tables = []
    for block in board.blocks:
        if block.published:
            continue
        first: dict[tuple[str, str, str | None], int] = {}  # one column a task, whatever it was measured by
        for index, column in enumerate(block.columns):
            first.setdefault((column.task, column.variant, column.digest), index)
        shown = list(first.values())
        rows = [(row.model, row.hearing_check, [_read(row.cells[i]) for i in shown]) for row in block.rows]
        tables.append({"name": block.name, "labels": [block.columns[i].name for i in shown], "rows": rows})
    return tables


def _read(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None or cell.result is None:
        return None
    refusing = next((score.value for score in cell.result.scores if score.metric == "refusal_ntvd"), None)
    alike = next((s.detail for s in cell.result.scores if s.metric == "diversity" and s.attribute is None), {})
    return {
        "read": cell.with_value, "reliable": cell.reliable, "refusing": refusing,
        "alike": alike.get("identical_share"),
    }  # fmt: skip


def _prompts(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Each prompt once: of a task card and a variant."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in entries:
        for task in entry.record.tasks:
            for variant in task.variants:
                found.setdefault((task.digest, variant), {
                    "task": task.card.task, "variant": variant, "version": task.card.version, "digest": task.digest,
                    "text": task.prompts[variant],
                })  # fmt: skip
    return sorted(found.values(), key=lambda one: (one["task"], one["variant"], one["digest"]))
