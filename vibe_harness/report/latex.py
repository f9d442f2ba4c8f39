"""A leaderboard's tables for papers: LaTeX with booktabs, one table a block and corpus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from vibe_harness.metrics.presentation import p_value_words
from vibe_harness.metrics.registry import presentation_of
from vibe_harness.report.attribute_rows import AttributeRow, attribute_rows, extra_headings
from vibe_harness.report.board import Block, Board, Cell, Column, Row
from vibe_harness.report.html import number, range_words
from vibe_harness.report.stars import Family
from vibe_harness.report.trust import TrustColumn
from vibe_harness.store.results import TaskResult

HEAD = "% needs \\usepackage{booktabs}; names in other scripts than Latin need XeLaTeX or LuaLaTeX"
ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''",
}  # fmt: skip
GAP = "\\addlinespace\n"  # between the tasks of a table
GROUPS_TOLD = 4  # groups whose numbers of speakers are told one by one


def scores_latex(board: Board) -> str:
    """A table for each block: score, interval, chance, adjusted p and speakers of each model, task by task."""
    tables = [_published(block) if block.published else _scores(block, board.family) for block in board.blocks]
    return "\n".join([HEAD, *tables])


def attributes_latex(board: Board) -> str:
    """A table for each measured block: the score of each attribute, model by model."""
    return "\n".join([HEAD, *(_attributes(block) for block in board.blocks if not block.published)])


def trust_latex(board: Board) -> str:
    """A table for each measured block: what to know of each score before it is believed."""
    return "\n".join([HEAD, *(_trust(block) for block in board.blocks if not block.published)])


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is, on one line."""
    return "".join(ESCAPES.get(letter, letter) for letter in " ".join(text.split()) if letter.isprintable())


def _scores(block: Block, family: Family) -> str:
    rows = []
    for index, column in enumerate(block.columns):
        cells = [(row, cell) for row in block.rows if (cell := row.cells[index]) is not None]
        if cells:
            rows.append(_section(column.heading, 6))
            rows += [_line([_model(row), *_figures(cell, column)]) for row, cell in cells]
    heads = ["Model", "Score", r"95\,\% interval", "Chance", "Adjusted $p$", "Speakers a group"]
    return _table("scores", block, "lrrrrr", heads, rows, _score_caption(block, family))


def _figures(cell: Cell, column: Column) -> list[str]:
    figure = "undefined" if cell.value is None else number(cell.value, column.digits)
    figure = {"highest": rf"\textbf{{{figure}}}", "lowest": rf"\underline{{{figure}}}"}.get(cell.mark, figure)
    return [
        figure + ("" if cell.reliable else r"$^\dagger$"),
        _range(cell.interval, column.digits),
        number(cell.null_p95, column.digits) or "--",
        "--" if cell.adjusted_p is None else p_value_words(cell.adjusted_p),
        "--" if cell.result is None else _speakers(cell.result),
    ]


def _range(interval: tuple[float, float] | None, digits: int) -> str:
    return range_words(*interval, digits) if interval else "--"


def _speakers(result: TaskResult) -> str:
    """Speakers of each group: "12/12"; of many groups the range: "3--12 in 40"."""
    counts = [group.speakers for group in result.groups.values()]
    if len(counts) <= GROUPS_TOLD:
        return "/".join(map(str, counts))
    low, high = min(counts), max(counts)
    return f"{low if low == high else f'{low}--{high}'} in {len(counts)}"


def _score_caption(block: Block, family: Family) -> str:
    measures = ", ".join(dict.fromkeys(presentation_of(c.metric).title for c in block.columns if c.is_shift))
    if family.refused:
        adjusted = f"$p$ is not adjusted: {escaped(family.refused)}"
    else:
        adjusted = f"$p$ is adjusted by Benjamini and Hochberg over {family.tests} tests"
    told = [
        f"How far answers shift with {escaped(block.dimension)} on {escaped(block.place)}"
        + (f" ({escaped(measures)}; 0: no shift)" if measures else ""),
        r"Interval: 95\,\%, of the true figure. Chance: what a shuffle of the speakers reaches once in twenty",
        *_test(block),
        adjusted,
        _settings(block),
        r"Bold and underlined: highest and lowest, where a score's interval lies apart from all others. $\dagger$: not "
        "reliable, too few answers were read or unevenly over the groups",
    ]
    return ". ".join(told) + "."


def _test(block: Block) -> Iterator[str]:
    """The test that made the p of a block, in a sentence; nothing where none was made."""
    results = [cell.result for row in block.rows for cell in row.cells if cell is not None and cell.result is not None]
    scores = [score for result in results for score in result.scores if score.p_value is not None and score.test]
    names = sorted({f"{score.test}, {score.permuted} permuted" for score in scores if score.permuted})
    most = max((score.permutations for score in scores if score.permutations is not None), default=None)
    if names:
        yield escaped(f"Test: {'; '.join(names)}, {most:,} permutations at most")


def _settings(block: Block) -> str:
    given = block.settings
    told = [f"tau = {given['tau']}"] if "tau" in given else []
    told.append(f"answers read by {block.extractor}")
    if given.get("modality", "audio") != "audio":
        told.append(f"the model was given the {given['modality']}")
    if given.get("answer_by", "generate") != "generate":
        told.append("answered by likelihood")
    if given.get("evened out over", "nothing") != "nothing":
        told.append(f"evened out over {given['evened out over']}")
    return escaped(", ".join(told)[:1].upper() + ", ".join(told)[1:])


def _attributes(block: Block) -> str:
    found = list(attribute_rows(block))
    extra = extra_headings(found)
    heads = [
        "Model", "Score", r"95\,\% interval", "Chance", "$p$", "$p$ in the task", *(escaped(one) for one in extra),
    ]  # fmt: skip
    rows, section = [], ""
    for one in found:
        if one.name != section:
            section = one.name
            rows.append(_section(section, len(heads)))
        rows.append(_line([_model(one.row), *_attribute_figures(one, extra)]))
    caption = (
        f"Attributes by {escaped(block.dimension)} on {escaped(block.place)}. {_settings(block)}. $p$ is not adjusted; "
        "$p$ in the task is adjusted over the attributes of a task."
    )
    return _table("attributes", block, f"l{'r' * (len(heads) - 1)}", heads, rows, caption)


def _attribute_figures(one: AttributeRow, extra: Sequence[str]) -> list[str]:
    score, digits = one.score, one.digits
    return [
        "undefined" if score.value is None else number(score.value, digits),
        _range(score.interval, digits),
        number(score.null_p95, digits) or "--",
        "--" if score.p_value is None else p_value_words(score.p_value),
        "--" if score.p_within_task is None else p_value_words(score.p_within_task),
        *(escaped(one.extra.get(heading, "")) or "--" for heading in extra),
    ]


def _trust(block: Block) -> str:
    headings = block.trust_headings
    rows = []
    for index in block.task_columns():
        cells = [(row, cell) for row in block.rows if (cell := row.cells[index]) is not None and cell.trust]
        if cells:
            rows.append(_section(block.columns[index].name, len(headings) + 1))
            rows += [_line([_model(row), *map(_trust_words, cell.trust)]) for row, cell in cells]
    place = f"{escaped(block.dimension)} on {escaped(block.place)}"
    caption = f"What to know of the scores by {place}. Bold: speaks against the score."
    share = 0.98 / (len(headings) + 1)
    columns = f"*{{{len(headings) + 1}}}{{p{{{share:.3f}\\linewidth}}}}"
    return _table("trust", block, columns, ["Model", *map(escaped, headings)], rows, caption, wide=True)


def _trust_words(column: TrustColumn) -> str:
    words = escaped(column.words)
    return rf"\textbf{{{words}}}" if column.ok is False else words


def _published(block: Block) -> str:
    heads = ["Model", *(escaped(column.heading) for column in block.columns)]
    rows = [
        _line([
            _model(row),
            *("--" if cell is None else _figures(cell, column)[0]
              for cell, column in zip(row.cells, block.columns, strict=True)),
        ])
        for row in block.rows
    ]  # fmt: skip
    caption = f"By {escaped(block.name)}. Published, not measured here: {escaped(block.published or '')}."
    return _table("published", block, f"l{'r' * len(block.columns)}", heads, rows, caption)


def _table(
    kind: str, block: Block, columns: str, heads: Sequence[str], rows: Sequence[str], caption: str, *,
    wide: bool = False,
) -> str:  # fmt: skip
    """A floating table. wide: over both columns of a page, its cells broken into lines."""
    label = re.sub(r"[^a-z0-9]+", "-", f"{kind}-{block.dimension}-{block.place}".lower()).strip("-")
    environment, size = ("table*", r"\scriptsize\setlength{\tabcolsep}{2pt}") if wide else ("table", r"\small")
    body = "".join(rows).removeprefix(GAP)
    return (
        f"\n\\begin{{{environment}}}\n\\centering{size}\n\\caption{{{caption}}}\n\\label{{tab:{label}}}\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{_line(heads)}\\midrule\n{body}"
        f"\\bottomrule\n\\end{{tabular}}\n\\end{{{environment}}}\n"
    )


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\\n"


def _section(heading: str, columns: int) -> str:
    return f"{GAP}\\multicolumn{{{columns}}}{{l}}{{\\emph{{{escaped(heading)}}}}} \\\\\n"


def _model(row: Row) -> str:
    return escaped(row.model + (" (simulated)" if row.simulated else ""))
