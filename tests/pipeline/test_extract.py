"""What the extractor is given."""

import json

from vibe_harness.cards.loading import CardIndex
from vibe_harness.pipeline.extract import ExtractionKeys, unread
from vibe_harness.pipeline.ids import Ids, Planned

ID = "0f" * 16


def test_a_response_that_stands_twice_is_read_once(tmp_path):
    record = {
        "request": ID, "task": "advisory", "variant": "default", "clip": "c", "outcome": "ok", "text": "words",
        "error": None, "served_model": None,
    }  # fmt: skip
    path = tmp_path / "responses.jsonl"
    path.write_text(f"{json.dumps(record)}\n" * 2, encoding="utf-8")
    keys = ExtractionKeys({}, {"advisory": CardIndex().tasks(["advisory"])[0]})
    planned = Planned([(ID, ("advisory", "default", "c"))])
    found = list(unread(path, planned, Ids([]), keys))
    assert [response.text for _, _, response in found] == ["words"]
    assert list(unread(path, planned, Ids([found[0][0]]), keys)) == []
    assert list(unread(path, Planned([]), Ids([]), keys)) == []
