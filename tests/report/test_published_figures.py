"""The papers' figures as they stand in the leaderboard: Table 1 of version 1, and what its appendix says of it."""

import json

import pytest

from tests.support import SHARED
from vibe_harness.report.board_building import build_board
from vibe_harness.report.published_figures import published_beside, published_blocks
from vibe_harness.report.relations import task_relations

# Typed off Table 1: the highest and the lowest of each column.
EXTREMES = {
    "gender": {
        "advisory": (46.77, 2.45),
        "casting": (22.23, 0.57),
        "shopper": (28.79, 3.73),
        "story": (38.12, 1.64),
        "candidate": (7.11, 0.36),
    },
    "accent": {
        "advisory": (27.44, 2.97),
        "casting": (8.29, 2.16),
        "shopper": (9.59, 1.65),
        "story": (19.38, 2.17),
        "candidate": (5.05, 0.56),
    },
}


@pytest.mark.parametrize("dimension", ["gender", "accent"])
def test_the_extremes_of_table_1_are_as_printed_and_none_is_marked(dimension: str) -> None:
    blocks = build_board([], published=published_blocks()).blocks
    [block] = [block for block in blocks if block.dimension == dimension and block.columns[0].kind == "open_ended"]
    assert len(block.rows) == 11 and block.published is not None and "Table 1" in block.published
    for index, column in enumerate(block.columns):
        cells = [row.cells[index] for row in block.rows]
        values = [cell.value for cell in cells if cell is not None and cell.value is not None]
        assert (max(values), min(values)) == EXTREMES[dimension][column.task], column.task
        assert not any(cell.mark for cell in cells if cell)  # printed without intervals: chance is not known


def test_correlations_between_tasks_are_those_of_the_appendix() -> None:
    open_ended = [block for block in published_blocks() if block.columns[0].kind == "open_ended"]
    by_dimension = {block.dimension: task_relations(block) for block in open_ended}
    found = {
        dimension: {
            (first, second): relations.values[i][j].value
            for i, first in enumerate(relations.labels)
            for j, second in enumerate(relations.labels)
        }
        for dimension, relations in by_dimension.items()
    }
    assert round(found["gender"]["story", "advisory"], 2) == 0.31
    assert round(found["gender"]["story", "casting"], 2) == 0.27
    assert round(found["accent"]["advisory", "story"], 2) == 0.88
    assert round(found["accent"]["shopper", "candidate"], 2) == 0.06
    others = ("advisory", "casting", "shopper", "candidate")
    assert all(round(found["gender"][a, b], 2) >= 0.85 for a in others for b in others)


def test_table_2_sets_story_beside_the_choice_benchmark() -> None:
    [table] = published_beside()
    rows = dict(table.rows)
    story, parity = rows["DeSTA2.5-Audio"]
    assert (story.value, parity.value, parity.stars) == (20.17, 8.7, "**")
    assert sum(bool(cells[1].stars) for cells in rows.values()) == 6  # as the table stars them
    [(_, [(_, ranks)])] = table.ranks
    # ranks of story 9 8 10 1 2 6 3 7 4 5 (largest 10) and deviation 10 6 9 2 3 7 4 8 1 5: squares 1 4 1 1 1 1 1 1 9 0
    assert ranks.value == pytest.approx(1 - 6 * 20 / (10 * 99)) and ranks.models == 10


def test_spoken_stereoset_stands_by_dimension_and_input() -> None:
    blocks = {block.name: block for block in published_blocks() if block.columns[0].kind == "choice"}
    assert len(blocks) == 4
    audio = blocks["gender on Spoken StereoSet (published, audio)"]
    assert [column.metric for column in audio.columns] == ["slifs", "slms", "slbs"]
    values = {row.model: [cell.value for cell in row.cells if cell is not None] for row in audio.rows}
    assert values["SALMONN-13B"] == [96.21, 77.98, 49.91]
    assert all(row.mean is None for block in blocks.values() for row in block.rows)
    text = blocks["age on Spoken StereoSet (published, text only)"]
    assert {row.model: row.cells[2].value for row in text.rows if row.cells[2]}["SALMONN-7B"] == 45.76


REFERENCE = SHARED / "reference" / "spoken_stereoset_published.json"


@pytest.mark.skipif(not REFERENCE.exists(), reason=f"the published tables are not at {REFERENCE}")
def test_spoken_stereoset_is_as_the_reference_has_it() -> None:
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))
    for block in published_blocks():
        if block.columns[0].kind == "choice":
            table = reference["text_only" if "text" in block.apart else "audio"][block.dimension]
            found = {row.model: [cell.value for cell in row.cells if cell is not None] for row in block.rows}
            assert found == table and [column.metric for column in block.columns] == reference["order"]
