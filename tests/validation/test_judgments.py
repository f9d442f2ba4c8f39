"""Judgments on disk: each stored before it counts, none lost, none taken for another sample's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validation.conftest import claim, drawn, made_sample
from vibe_harness.errors import UserError
from vibe_harness.records import Reading
from vibe_harness.validation.judgments import Judge, Judgment, Verdict, judges_of
from vibe_harness.validation.sample import Sample, write_sample

LISTED = "r001/hobby/1"
ITEMS = [LISTED, "r001/occupation/1", "r002/occupation/1"]
RIGHT, WRONG = Verdict


def small() -> Sample:
    return made_sample([
        drawn(1, "a nurse who reads and swims", {
            "hobby": [claim(["reading", "swimming"])], "occupation": [claim(["nurse"])],
        }),
        drawn(2, "a farmer", {"hobby": [claim(reading=Reading.UNPARSED)], "occupation": [claim(["farmer"])]}),
    ])  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sample(tmp_path, small())
    return tmp_path


def test_what_an_extractor_could_not_say_is_nothing_to_judge() -> None:
    assert [item for item, *_ in small().items()] == ITEMS


def test_a_judgment_is_on_the_disk_and_replaces_the_one_before(folder: Path) -> None:
    judge = Judge(folder, small(), "ann")
    judge.add([Judgment(LISTED, RIGHT), Judgment(ITEMS[1], RIGHT)])
    judge.add([Judgment(LISTED, WRONG, ("swimming",))])
    assert Judge(folder, small(), "ann").judgments() == {
        LISTED: Judgment(LISTED, WRONG, ("swimming",)),
        ITEMS[1]: Judgment(ITEMS[1], RIGHT),
    }
    assert judge.undo() == LISTED
    assert judge.judgments()[LISTED] == Judgment(LISTED, RIGHT)
    assert [judge.undo(), judge.undo(), judge.undo()] == [ITEMS[1], LISTED, None]
    assert judge.judgments() == {}
    assert len(judge.path.read_text(encoding="utf-8").splitlines()) == 6  # nothing is ever rewritten


steps = st.lists(st.one_of(st.none(), st.tuples(st.sampled_from(ITEMS), st.sampled_from(Verdict))), max_size=12)


@given(steps=steps)
def test_undo_takes_back_one_step_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, Verdict] | None]
) -> None:
    judge = Judge(tmp_path_factory.mktemp("judged"), small(), "ann")
    history: list[dict[str, Judgment]] = [{}]
    for step in steps:
        if step is None:
            judge.undo()
            history = history[:-1] or history
        else:
            judge.add([Judgment(*step)])
            history.append(history[-1] | {step[0]: Judgment(*step)})
        assert judge.judgments() == history[-1]


JUDGING = """
import sys
from pathlib import Path
from vibe_harness.validation.judgments import Judge, Judgment, Verdict
from vibe_harness.validation.sample import read_sample

folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
judge = Judge(folder, read_sample(folder), name)
for number in range(rounds):
    if name == "undoing":
        Judge(folder, read_sample(folder), "ann").undo()
    else:
        judge.add([Judgment(["r001/occupation/1", "r002/occupation/1"][number % 2], Verdict.RIGHT)])
    print(number, flush=True)
"""


def judging(folder: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", JUDGING, str(folder), name, str(rounds)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True)


def test_two_at_once_lose_nothing(folder: Path) -> None:
    at_work = [judging(folder, name, 60) for name in ("ann", "ben", "ann")]
    assert [process.wait(300) for process in at_work] == [0, 0, 0]
    for process in at_work:
        process.stdout.close()
    lengths = {judge.name: len(judge.path.read_bytes().splitlines()) for judge in judges_of(folder, small())}
    assert lengths == {"ann": 120, "ben": 60}
    assert all(judge.judgments() for judge in judges_of(folder, small()))


def test_one_window_may_undo_while_another_judges(folder: Path) -> None:
    at_work = [judging(folder, name, 150) for name in ("ann", "undoing", "undoing")]
    assert [process.wait(300) for process in at_work] == [0, 0, 0]
    for process in at_work:
        process.stdout.close()
    lines = [json.loads(line) for line in Judge(folder, small(), "ann").path.read_bytes().splitlines()]
    made = sum("verdict" in line for line in lines)
    assert made == 150 and len(lines) > made
    Judge(folder, small(), "ann").judgments()  # every undo stands right behind what it takes back


def test_what_was_said_to_be_stored_outlives_a_kill(folder: Path) -> None:
    process = judging(folder, "ann", 100_000)
    said = [process.stdout.readline() for _ in range(30)]
    process.kill()
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    judge = Judge(folder, small(), "ann")
    lines = judge.path.read_bytes().splitlines()
    assert judge.judgments() and len(said) <= len(lines) <= len(said) + 1
    with judge.path.open("ab") as file:
        file.write(lines[-1][:40])  # what a power loss leaves of a line
    judge.add([Judgment(ITEMS[2], RIGHT)])
    assert len(judge.path.read_bytes().splitlines()) == len(lines) + 1 and ITEMS[2] in judge.judgments()


@pytest.mark.parametrize("name", ["Ann", "", "../ann", "a/b", "ann judge", ".", "con:", "é", "a" * 61])
def test_a_judges_name_is_a_files_name_everywhere(folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="small letters"):
        Judge(folder, small(), name)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sample": "s-0"}, "of the sample s-0, and this folder holds s-"),
        ({"judge": "ben"}, "a judgment by 'ben'"),
        ({"item": "r009/occupation/1"}, "was edited"),
        ({"item": ["r001/occupation/1"]}, "was edited"),
        ({"verdict": "perhaps"}, "was edited"),
        ({"wrong_items": ["flying"]}, "was edited"),
        ({"wrong_items": 3}, "was edited"),
        ({"item": "r002/occupation/1", "undone": True}, "takes back a judgment that is not there"),
    ],
)
def test_a_line_of_another_sample_or_make_is_refused_by_its_number(
    folder: Path, change: dict[str, object], told: str
) -> None:
    judge = Judge(folder, small(), "ann")
    judge.add([Judgment(LISTED, RIGHT), Judgment(ITEMS[1], RIGHT)])
    lines = judge.path.read_text(encoding="utf-8").splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    judge.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=told) as refused:
        judge.judgments()
    assert "judge-ann.jsonl:2" in str(refused.value)
    assert judge.path.read_text(encoding="utf-8").splitlines() == lines  # as it was found


def test_a_line_that_is_no_record_is_named(folder: Path) -> None:
    judge = Judge(folder, small(), "ann")
    judge.add([Judgment(LISTED, RIGHT)])
    with judge.path.open("ab") as file:
        file.write(b"right!\n")
    with pytest.raises(UserError, match=r"judge-ann\.jsonl:2: not a judgment"):
        judge.judgments()


def test_a_folder_that_went_away_is_told(folder: Path) -> None:
    judge = Judge(folder / "gone", small(), "ann")
    (folder / "gone").write_bytes(b"")  # a file where the folder was
    with pytest.raises(UserError, match="cannot be"):
        judge.add([Judgment(LISTED, RIGHT)])


def test_a_judgment_of_nothing_is_not_stored(folder: Path) -> None:
    judge = Judge(folder, small(), "ann")
    for wrong in (Judgment("r002/hobby/1", RIGHT), Judgment(LISTED, WRONG, ("flying",))):
        with pytest.raises(UserError):
            judge.add([Judgment(ITEMS[1], RIGHT), wrong])
    assert not judge.path.exists()
