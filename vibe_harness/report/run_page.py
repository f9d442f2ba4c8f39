"""The page of one run: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2

from vibe_harness.pipeline.results import Results, TaskResult
from vibe_harness.pipeline.run_folder import RunRecord
from vibe_harness.report.figures import distribution_svg


def run_page(results: Results, record: RunRecord) -> str:
    """The page as HTML. Everything a model wrote is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    figures = [figure for task in results.tasks for figure in _figures(task)]
    return environment.get_template("run_page.html.j2").render(results=results, record=record, figures=figures)


def _figures(task: TaskResult) -> Iterator[dict[str, Any]]:
    for score in task.scores:
        if score.metric == "ntvd" and score.attribute and score.value is not None:
            answers = {g: c.readings[score.attribute]["value"] for g, c in task.groups.items()}
            name = score.attribute.replace("_", " ")
            title = f"{task.task} ({task.variant}), {name} by {task.dimension}: nTVD {score.value:.1f}"
            yield {"title": title, "svg": distribution_svg(title, score.detail["distribution"], answers)}


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"
