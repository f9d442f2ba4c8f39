"""Gates as files for a build: a summary in Markdown, and JUnit XML, which build servers read."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from vibe_harness.store.atomic_files import atomic_write, check_replaced

if TYPE_CHECKING:
    from vibe_harness.analysis.compare import RunComparison
    from vibe_harness.analysis.gates import Gate

MARKS = {
    "held": "✅ held",
    "not held": "❌ not held",
    "cannot tell": "❔ cannot tell",
    "no growth found": "➖ no growth found",
}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~-])")


def passes(gate: Gate, allow_inconclusive: bool) -> bool:
    """Whether a gate lets a build pass: it is held, or no growth is found where that is enough."""
    return gate.held or (allow_inconclusive and gate.verdict == "no growth found")


def write_markdown(
    path: Path, gates: Sequence[Gate], comparison: RunComparison | None, *, allow_inconclusive: bool = False
) -> None:
    """Write gates and comparison as Markdown tables, as a build server shows them.

    Raises UserError where the file is there and is no Markdown.
    """
    check_replaced(path, ".md", ".markdown")
    lines: list[str] = []
    if gates:
        passed = sum(passes(gate, allow_inconclusive) for gate in gates)
        lines += [f"### vibe-harness: {passed} of {len(gates)} gates pass", ""]
        rows = [[MARKS[gate.verdict], place_of(gate), gate.gate, gate.run, _model(gate), gate.why] for gate in gates]
        lines += _table(["verdict", "task", "gate", "run", "model", "why"], rows)
    if comparison is not None:
        lines += [f"### {_escaped(comparison.before)} before, {_escaped(comparison.after)} after", ""]
        lines += _table(["task", "before", "after", "difference", "95 % interval", "adjusted p"], _compared(comparison))
        lines += [f"- {_escaped(line)}" for line in (*comparison.not_compared, *comparison.warnings)]
    with atomic_write(path) as aside:
        aside.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8", errors="replace")


def write_junit(path: Path, gates: Sequence[Gate], *, allow_inconclusive: bool = False) -> None:
    """Write gates as JUnit XML: a test case a gate and task; one that does not pass is a failure with its verdict.

    Raises UserError where the file is there and is no XML.
    """
    check_replaced(path, ".xml")
    failures = sum(not passes(gate, allow_inconclusive) for gate in gates)
    counts = {"tests": str(len(gates)), "failures": str(failures), "errors": "0", "skipped": "0"}
    suite = ElementTree.Element("testsuite", {"name": "vibe-harness compare", **counts})
    for gate in gates:
        names = {"classname": _xml(f"{gate.run} ({_model(gate)})"), "name": _xml(f"{gate.gate}: {place_of(gate)}")}
        case = ElementTree.SubElement(suite, "testcase", names)
        if passes(gate, allow_inconclusive):
            ElementTree.SubElement(case, "system-out").text = _xml(f"{gate.verdict}: {gate.why}")
        else:
            failure = ElementTree.SubElement(case, "failure", {"type": gate.verdict, "message": _xml(gate.why)})
            failure.text = _xml(f"{gate.verdict}: {gate.why}")
    with atomic_write(path) as aside:
        ElementTree.ElementTree(suite).write(aside, encoding="utf-8", xml_declaration=True)


def place_of(gate: Gate) -> str:
    """ "story by gender"."""
    return f"{gate.task} by {gate.dimension}" if gate.dimension else gate.task


def _model(gate: Gate) -> str:
    return f"{gate.model}, not a real model" if gate.simulated else gate.model


def _compared(comparison: RunComparison) -> list[list[str]]:
    rows = []
    for one in comparison.compared:
        found = one.whole
        interval = "" if found.interval is None else f"{found.interval[0]:+.1f} to {found.interval[1]:+.1f}"
        name = one.task if one.variant == "default" else f"{one.task}/{one.variant}"
        rows.append([
            f"{name} by {one.dimension}",
            "" if found.before is None else f"{found.before:.1f}",
            "" if found.after is None else f"{found.after:.1f}",
            "undefined" if found.difference is None else f"{found.difference:+.1f}",
            interval,
            "" if one.adjusted is None else f"{one.adjusted:.4f}",
        ])  # fmt: skip
    return rows


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *([_escaped(cell) for cell in row] for row in rows)]
    return [*(f"| {' | '.join(cells)} |" for cells in lines), ""]


def _escaped(text: str) -> str:
    """Text on one line that Markdown and HTML take for nothing but text."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return _MARKDOWN.sub(r"\\\1", html.escape(printable, quote=False))


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
