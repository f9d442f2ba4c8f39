"""A finished run of the simulated model over a small corpus, and ways to damage it."""

import json
import shutil

import pandas as pd
import pytest

from tests.command_line import QuickCommand, tone

RUN = ("--model", "simulated", "--tasks", "advisory", "--tau", "3", "--permutations", "19", "--corpus", "m.csv")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a corpus, m.csv, and a finished run of it, out."""
    folder = tmp_path_factory.mktemp("finished")
    rows = ["file,speaker,gender"]
    for speaker in range(6):
        for take in range(2):
            tone(folder / f"s{speaker}" / f"{take}.wav", (110, 200)[speaker % 2] + 3 * speaker + take)
            rows.append(f"s{speaker}/{take}.wav,s{speaker},{('male', 'female')[speaker % 2]}")
    (folder / "m.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert QuickCommand(folder)(*RUN, "--output-path", "out").returncode in (0, 1)
    return folder


@pytest.fixture
def ran(finished, tmp_path):
    """The command in a copy of that folder."""
    shutil.copytree(finished, tmp_path / "copy")
    return QuickCommand(tmp_path / "copy")


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def rewrite(path, change):
    records = [json.loads(line) for line in lines(path)]
    path.write_text("".join(json.dumps(record) + "\n" for record in change(records)), encoding="utf-8")


def without(name):
    def change(records):
        del records[0][name]
        return records

    return change


def with_field(name, value):
    def change(records):
        records[0][name] = value
        return records

    return change


def stored(folder):
    """Everything a run folder stores, sorted, times aside."""
    found = {}
    for name in ("responses.jsonl", "extractions.jsonl"):
        records = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for record in records:
            record.pop("time")
            record.pop("seconds", None)
        found[name] = sorted(records, key=lambda record: record["request"])
    observations = pd.read_parquet(folder / "observations.parquet").sort_values(["request", "attribute"])
    found["observations"] = observations.astype(str).to_dict("records")
    found["results"] = (folder / "results.json").read_text(encoding="utf-8")
    return found
