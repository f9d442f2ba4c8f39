"""What the extractor is given."""

import json

from vibe_harness.cards.loading import CardIndex
from vibe_harness.pipeline.extract import pending_extractions
from vibe_harness.records import RequestKey
from vibe_harness.store.extractions import ExtractionKeys
from vibe_harness.store.request_ids import Ids, RequestTable
from vibe_harness.store.responses import FinalResponses

ID = "0f" * 16


def test_a_response_that_stands_twice_is_read_once(tmp_path):
    record = {
        "request": ID, "task": "advisory", "variant": "default", "clip": "c", "outcome": "ok", "text": "words",
        "error": None, "served_model": None,
    }  # fmt: skip
    path = tmp_path / "responses.jsonl"
    path.write_text(f"{json.dumps(record)}\n" * 2, encoding="utf-8")
    keys = ExtractionKeys({}, {"advisory": CardIndex().tasks(["advisory"])[0]})
    finals = FinalResponses(path, RequestTable([(ID, RequestKey("advisory", "default", "c"))]))
    ticks: list[int] = []
    found = list(pending_extractions(finals, Ids([]), keys, ticks.append))
    assert [stored.text for _, stored in found] == ["words"] and ticks == []
    assert list(pending_extractions(finals, Ids([found[0][0]]), keys, ticks.append)) == [] and ticks == [1]
    assert list(pending_extractions(FinalResponses(path, RequestTable([])), Ids([]), keys, ticks.append)) == []
