"""What the extractor is given."""

import json

from vibe_harness.cards.loading import CardIndex
from vibe_harness.store.extractions import ExtractionKeys, pending_extractions
from vibe_harness.store.request_ids import Ids, Planned

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
    found = list(pending_extractions(path, planned, Ids([]), keys))
    assert [response.text for _, _, response in found] == ["words"]
    assert list(pending_extractions(path, planned, Ids([found[0][0]]), keys)) == []
    assert list(pending_extractions(path, Planned([]), Ids([]), keys)) == []
