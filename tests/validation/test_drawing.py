"""The sample: five responses for each model, task and dimension, with what was read in them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vibe_harness import evaluate
from vibe_harness.cards.loading import Task
from vibe_harness.errors import UserError
from vibe_harness.extraction.protocol import EXTRACTORS
from vibe_harness.records import Extraction, Reading, Response
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.journal import as_object, read_journal
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.validation.drawing import draw
from vibe_harness.validation.sample import read_sample, write_sample


def requests(runs: Sequence[Path], folder: Path, **how: Any) -> set[str]:
    return {response.request for response in draw(runs, folder, **how)[0].responses}


def test_five_of_each_task_and_dimension_and_none_twice(run: Path, tmp_path: Path) -> None:
    sample, notes = draw([run], tmp_path)
    assert notes == []
    cells = Counter((response.task, response.dimension) for response in sample.responses)
    assert cells == dict.fromkeys([(task, name) for task in ("advisory", "story") for name in ("gender", "accent")], 5)
    assert len({response.request for response in sample.responses}) == 20
    assert [response.id for response in sample.responses] == [f"r{number:03}" for number in range(1, 21)]
    assert len(list(sample.items())) == 10 * 1 + 10 * 6  # activity is a list and one judgment; a story has 6 attributes


def test_a_response_is_drawn_with_its_text_and_all_that_was_read(run: Path, tmp_path: Path) -> None:
    folder = RunFolder(run)
    texts = {record["request"]: record["text"] for record in read_journal(folder.responses, as_object)}
    rows = {(row["request"], row["attribute"]): row for row in pq.read_table(folder.observations).to_pylist()}
    readings = set()
    for response in draw([run], tmp_path, per_cell=12)[0].responses:
        assert response.text == texts[response.request]
        for attribute, claims in response.claims.items():
            [claim], row = claims, rows[response.request, attribute]
            assert claim.extractors == ["rules"]
            said = (str(claim.reading), list(claim.raw), list(claim.values))
            assert said == (row["reading"], row["raw"], row["values"])
            assert response.group == row[f"group_{response.dimension}"]
            readings.add(claim.reading)
    assert {Reading.VALUE, Reading.NONE} <= readings  # what the extractor did not find is judged too


def test_the_seed_and_the_responses_decide_alone(run: Path, finished: Path, tmp_path: Path) -> None:
    one, _ = draw([run], tmp_path)
    assert draw([run], tmp_path)[0].id == one.id
    assert draw([run], tmp_path, seed=1)[0].id != one.id
    other = tmp_path / "other"
    evaluate("simulated", ["advisory"], "demo", limit=48, seed=7, tau=1, permutations=9, output_path=other)
    assert requests([run, other], tmp_path) == requests([other, run], tmp_path)
    fewer = requests([run], tmp_path, per_cell=4)
    assert fewer < {response.request for response in one.responses}


def test_the_order_of_judging_tells_nothing(run: Path, tmp_path: Path) -> None:
    responses = draw([run], tmp_path, per_cell=10)[0].responses
    cells = [(response.task, response.dimension) for response in responses]
    assert cells != sorted(cells) and len(set(cells[:10])) > 1
    arrived = [record["request"] for record in read_journal(RunFolder(run).responses, as_object)]
    places = [arrived.index(response.request) for response in responses]
    assert places != sorted(places)


def test_a_run_named_twice_counts_once(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    sample, _ = draw([run, copy], tmp_path)
    assert len(sample.responses) == 20


def test_two_strengths_of_one_model_are_two_models(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    evaluate("simulated", ["advisory", "story"], "demo", limit=48, tau=1, permutations=9, output_path=other,
             model_args={"strength": 0.9})  # fmt: skip
    sample, notes = draw([run, other], tmp_path)
    first, second = (one.model for one in sample.runs)
    assert first.startswith("simulated (args.breakage_rate 0.3, args.strength ") and second.endswith(" 0.9)")
    counts = Counter((response.run, response.task, response.dimension) for response in sample.responses)
    assert set(counts.values()) == {5} and len(counts) == 8  # two models, two tasks, two dimensions
    assert {one.request for one in sample.responses if one.run == 0} == requests([run], tmp_path)
    _, notes = draw([run, other], tmp_path, per_cell=1000)
    assert len({note for note in notes if "strength 0.9" in note}) == 4


def test_a_cell_that_comes_out_short_is_named(run: Path, tmp_path: Path) -> None:
    _, notes = draw([run], tmp_path, per_cell=1000)
    assert any("simulated, story by gender" in note and "instead of 1000" in note for note in notes)


def test_only_responses_that_hold_text_are_drawn(run: Path, tmp_path: Path) -> None:
    path = RunFolder(run).responses
    records = list(read_journal(path, as_object))
    for record, outcome in zip(records, ["blocked", "error", "empty", "refused", "truncated"], strict=False):
        record["outcome"] = outcome
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    with pytest.raises(UserError, match=r"responses\.jsonl: changed since the run was scored"):
        draw([run], tmp_path)
    write_sums(RunFolder(run))
    drawn = requests([run], tmp_path, per_cell=1000)
    assert drawn == {record["request"] for record in records[4:] if record["text"]}


class Shouting:
    """An extractor that reads the same occupation everywhere and cannot read the rest."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks

    @staticmethod
    def identity() -> Mapping[str, Any]:
        return {"extractor": "shouting"}

    def describe(self) -> Mapping[str, str]:
        return {}

    def extract(self, responses: Iterable[tuple[Task, Response]]) -> Iterator[Extraction]:
        for task, response in list(responses)[::-1]:
            names = task.card.extraction.attributes
            readings = {name: Reading.VALUE if name == "occupation" else Reading.UNPARSED for name in names}
            yield Extraction(response.request, readings, {"occupation": ("NURSES",)} if "occupation" in names else {})

    def close(self) -> None:
        return


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRACTORS._loaded, "shouting", Shouting)


@pytest.mark.usefixtures("shouting")
def test_another_extractor_reads_the_same_responses(run: Path, tmp_path: Path) -> None:
    sample, _ = draw([run], tmp_path, per_cell=24, extractors=["shouting"])
    assert sample.extractors == ["rules", "shouting"]
    first = set()
    for response in sample.responses:
        for attribute, claims in response.claims.items():
            assert sorted(name for claim in claims for name in claim.extractors) == ["rules", "shouting"]
            if attribute == "occupation":
                own = next(claim for claim in claims if "rules" in claim.extractors)
                shared = own.values == ["nurse"]
                assert ("shouting" in own.extractors) == shared and len(claims) == 2 - shared
                if not shared:
                    first.add(claims[0].extractors[0])
            else:
                assert [claim.judged for claim in claims if "shouting" in claim.extractors] == [False]
    assert first == {"rules", "shouting"}  # the order of two claims does not tell whose they are


def test_what_cannot_be_sampled_is_refused_by_name(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        draw([tmp_path], tmp_path)
    with pytest.raises(UserError, match="Did you mean 'rules'"):
        draw([run], tmp_path, extractors=["rulse"])
    with pytest.raises(UserError, match="it is the one that read these runs"):
        draw([run], tmp_path, extractors=["rules"])
    RunFolder(run).observations.write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match="damaged"):
        draw([run], tmp_path)
    RunFolder(run).observations.unlink()
    with pytest.raises(UserError, match="not finished"):
        draw([run], tmp_path)


def changed_card(run: Path) -> None:
    asked = json.loads(RunFolder(run).run_json.read_text(encoding="utf-8"))
    asked["record"]["tasks"][0]["digest"] = "another"
    RunFolder(run).run_json.write_text(json.dumps(asked), encoding="utf-8")
    write_sums(RunFolder(run))


def test_two_versions_of_a_task_are_not_mixed(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    changed_card(copy)
    with pytest.raises(UserError, match="another version of the task 'advisory'"):
        draw([run, copy], tmp_path)


def test_where_nothing_could_be_read_there_is_nothing_to_judge(run: Path, tmp_path: Path) -> None:
    import pyarrow as pa

    path = RunFolder(run).observations
    table = pq.read_table(path)
    readings = pa.array(["unparsed"] * len(table)).dictionary_encode()
    pq.write_table(table.set_column(table.schema.get_field_index("reading"), "reading", readings), path)
    write_sums(RunFolder(run))
    with pytest.raises(UserError, match="nothing to judge"):
        draw([run], tmp_path)


@pytest.mark.usefixtures("shouting")
def test_a_card_that_changed_since_the_run_reads_nothing_anew(run: Path, tmp_path: Path) -> None:
    changed_card(run)
    assert any(claim.spellings for _, _, _, claim in draw([run], tmp_path)[0].items())  # which the run itself keeps
    with pytest.raises(UserError, match="'advisory' is not at hand as the runs had it"):
        draw([run], tmp_path, extractors=["shouting"])


def test_a_sample_is_written_whole_and_never_over_another(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    sample, _ = draw([run], folder)
    write_sample(folder, sample)
    write_sample(folder, sample)  # the same once more
    assert read_sample(folder) == sample
    with pytest.raises(UserError, match="holds another sample"):
        write_sample(folder, draw([run], folder, seed=1)[0])
    path = folder / "sample.json"
    path.write_text(path.read_text(encoding="utf-8").replace("female", "male"), encoding="utf-8")
    with pytest.raises(UserError, match="was edited"):
        read_sample(folder)
    path.unlink()
    with pytest.raises(UserError, match="holds no sample"):
        read_sample(folder)
