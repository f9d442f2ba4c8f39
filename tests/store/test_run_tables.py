"""The frame that metrics are given, out of the observations on disk."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vibe_harness.errors import UserError
from vibe_harness.store.run_tables import read_frame

LISTS = ("raw", "values")
ROWS = {
    "task": ["t", "t", "other", "t", "t"], "variant": ["v"] * 5, "request": ["r2", "r1", "r9", "r3", "r1"],
    "clip": ["c"] * 5, "speaker": ["s"] * 5, "sentence_id": [None] * 5, "attribute": ["a", "b", "a", "a", "a"],
    "outcome": ["ok"] * 5, "reading": ["value"] * 5, "raw": [["X"], [], ["never"], ["Y"], ["Z", "X"]],
    "values": [["x"], [], ["never"], ["y"], ["z", "x"]], "group_gender": ["f", "m", "m", None, "m"],
}  # fmt: skip


def table(word):
    return pa.table({n: pa.array(rows) if n in LISTS else pa.array(rows, word) for n, rows in ROWS.items()})


@pytest.fixture
def observations(tmp_path):
    """As a run writes them, in pieces of two rows."""
    path = tmp_path / "observations.parquet"
    pq.write_table(table(pa.dictionary(pa.int32(), pa.string())), path, row_group_size=2)
    return path


def test_it_holds_the_rows_of_one_task_that_have_a_group_in_order(observations):
    frame = read_frame(observations, "t", "v", "gender")
    assert [*zip(frame["request"], frame["attribute"], frame["group"], strict=True)] == [
        ("r1", "a", "m"), ("r1", "b", "m"), ("r2", "a", "f"),
    ]  # fmt: skip
    assert [list(values) for values in frame["values"]] == [["z", "x"], [], ["x"]]
    assert [list(raw) for raw in frame["raw"]] == [["Z", "X"], [], ["X"]]


def test_it_holds_no_words_of_other_rows(observations):
    frame = read_frame(observations, "t", "v", "gender")
    assert list(frame["request"].cat.categories) == ["r1", "r2"]
    assert list(frame["values"].explode().factorize(sort=True)[1]) == ["x", "z"]


def test_that_of_a_task_without_rows_is_empty(observations):
    assert read_frame(observations, "none", "v", "gender").empty
    pq.write_table(pq.read_table(observations).slice(0, 0), observations)
    assert read_frame(observations, "t", "v", "gender").empty


def test_a_file_that_another_program_wrote_anew_gives_the_same(observations):
    frame = read_frame(observations, "t", "v", "gender")
    pq.write_table(table(pa.string()), observations)
    pd.testing.assert_frame_equal(read_frame(observations, "t", "v", "gender"), frame)


@pytest.mark.parametrize("column", ["task", "variant"])
def test_a_row_that_does_not_say_its_task_is_of_none(observations, column):
    whole = pq.read_table(observations)
    words = whole[column].to_pylist()
    words[1] = None
    place = whole.schema.get_field_index(column)
    pq.write_table(whole.set_column(place, column, pa.array(words).dictionary_encode()), observations)
    assert list(read_frame(observations, "t", "v", "gender")["attribute"]) == ["a", "a"]


def test_a_column_that_holds_no_words_is_refused(observations):
    whole = table(pa.string())
    pq.write_table(whole.set_column(2, "request", pa.array([1, 2, 3, 4, 5])), observations)
    with pytest.raises(UserError, match="the column 'request' holds no words"):
        read_frame(observations, "t", "v", "gender")
