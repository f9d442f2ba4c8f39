"""BiasInEar in the hub's Parquet layout, built with synthetic speech; what is unconfirmed of it is asserted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.biasinear_layout import Row, biasinear_layout
from vibe_harness.corpora.card import load_corpus_card
from vibe_harness.corpora.importers import biasinear
from vibe_harness.corpora.importers.base import IMPORTERS, counted
from vibe_harness.corpora.importers.hub import HubRow, stream
from vibe_harness.corpora.prepare.prepare import prepare
from vibe_harness.errors import UserError


def test_the_configurations_of_the_benchmark(tmp_path: Path) -> None:
    card, path = load_corpus_card("biasinear")
    biasinear_layout(tmp_path / "src")
    prepared = prepare(card, path, str(tmp_path / "src"), tmp_path / "out")
    clips = prepared.corpus.clips
    assert len(clips) == 2 * 28 and not prepared.left_out  # 28 configurations of each question
    keys = ("language", "accent", "gender", "order")
    assert len({tuple(clip.groups[key] for key in keys) for clip in clips}) == 28
    one = next(clip for clip in clips if clip.groups["order"] == "reversed" and clip.speaker == "en-indian-male")
    assert one.id == "biasinear/en-indian-male/q/0-reversed" and one.sentence_id == "q/0" and one.text == "question 0"
    assert one.groups["option_a_text"] == "option D of 0" and one.groups["answer"] == "D"
    for column in ("option_a_file", "option_d_file"):
        assert (prepared.corpus.root / one.groups[column]).is_file()
    assert any("as it stands in that row" in note for note in prepared.corpus.notes) and prepared.corpus.synthetic


def test_an_option_that_cannot_be_heard_takes_its_question_out(tmp_path: Path) -> None:
    def spoil(rows: list[Row]) -> None:
        rows[0]["option_c"] = {"bytes": b"not audio", "path": "x.wav"}

    card, path = load_corpus_card("biasinear")
    prepared = prepare(card, path, str(biasinear_layout(tmp_path / "src", spoil)), tmp_path / "out")
    assert len(prepared.corpus.clips) == 2 * 28 - 6 and counted(prepared.left_out) == {"unreadable": 6}
    assert prepared.left_out[0].file.endswith("_option_c.wav")


def test_answers_that_were_not_remapped_are_said(tmp_path: Path) -> None:
    listing = IMPORTERS.get("biasinear").read(biasinear_layout(tmp_path / "src", remap=False), tmp_path / "w", "b")
    assert listing.notes == [
        "answers of reversed rows name the option of the original order: column answer is as published"
    ]


def _edit(index: int, **cells: object) -> Callable[[list[Row]], None]:
    return lambda rows: rows[index].update(cells)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_edit(1, answer="A"), "was moved along with the options, and that of"),
        (_edit(1, answer="B"), "answer B, where the original row has A"),
        (_edit(1, option_a_text="something else"), "its options are not those of the original row in reverse"),
        (_edit(0, answer="E"), "answer 'E' is not A to D"),
        (_edit(0, order="sideways"), "the order is unknown"),
        (_edit(2, accent="American"), "is repeated"),
        (_edit(0, sample_id="q?1"), "sample 'q/1' would have the same file names|sample 'q[?]1' would have the same"),
        (_edit(0, option_b={"bytes": None, "path": None}), "the audio of 'option_b' is missing"),
    ],
)
def test_rows_that_are_not_what_the_benchmark_says(
    tmp_path: Path, change: Callable[[list[Row]], None], said: str
) -> None:
    def english(rows: list[Row]) -> None:
        if rows[0]["accent"] == "American":
            change(rows)

    with pytest.raises(UserError, match=said):
        IMPORTERS.get("biasinear").read(biasinear_layout(tmp_path / "src", english), tmp_path / "w", "b")


def test_streamed_config_by_config(tmp_path: Path) -> None:
    """The real `datasets` reads a folder that is laid out as the hub's, its configurations named in the README."""
    source = biasinear_layout(tmp_path / "src")
    configs = [f"- config_name: {c}\n  data_files: [{{split: test, path: {c}/*.parquet}}]\n" for c in biasinear.CONFIGS]
    (source / "README.md").write_text(f"---\nconfigs:\n{''.join(configs)}---\n", encoding="utf-8")
    listing = biasinear.read_hub(stream(str(source)), tmp_path / "w", "b")
    assert len(listing.clips) == 2 * 28 and (tmp_path / "w" / listing.clips[0].file).is_file()


def test_another_data_set_is_not_taken_for_it(tmp_path: Path) -> None:
    row = HubRow("x/y, config default, row 1 of test", "hf://datasets/x/y", "default", {})
    with pytest.raises(UserError, match="row 1 of test: the configurations of BiasInEar are en_Female"):
        biasinear.read_hub([row], tmp_path, "b")
