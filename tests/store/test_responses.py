"""Responses are typed on disk, and a run reads them and renders its prompts as seldom as it says."""

import json
from collections import Counter
from collections.abc import Mapping

import pytest

import vibe_harness
from vibe_harness.cards.templates import TemplateSet
from vibe_harness.records import Outcome, RequestKey, Response
from vibe_harness.store import responses
from vibe_harness.store.request_ids import RequestTable
from vibe_harness.store.responses import FinalResponses, StoredResponse, decode_response

IDS = [f"{number:032x}" for number in range(3)]
KEYS = [RequestKey("story", "default", f"c{number}") for number in range(3)]


def line(number: int, outcome: Outcome, words: str = "", edits: Mapping[str, object] | None = None) -> bytes:
    stored = StoredResponse.of(KEYS[number], Response(IDS[number], outcome, words), 1.5)
    return json.dumps({**stored.fields(), **(edits or {})}).encode() + b"\n"


def test_a_line_gives_back_what_was_stored():
    response = Response(IDS[0], Outcome.OK, "a text", "stop", 3, 2, 1, 0.5, "served", None, {"A": -0.1, "B": -2.0})
    stored = StoredResponse.of(KEYS[0], response, 12.0)
    again = decode_response(json.dumps(stored.fields()).encode())
    assert again == stored and again.response() == response and again.key == KEYS[0]
    assert stored.fields().keys().isdisjoint({"repeat", "turn"})
    later = StoredResponse.of(KEYS[0]._replace(turn=1), response, 12.0)
    assert decode_response(json.dumps(later.fields()).encode()).key.turn == 1


@pytest.mark.parametrize("wrong", [{"outcome": "fine"}, {"text": 3}, {"likelihoods": {"A": 0.7}}, {"clip": None}])
def test_a_line_of_another_kind_is_refused(wrong):
    with pytest.raises(ValueError):
        decode_response(line(0, Outcome.OK, edits=wrong))


def test_half_of_a_surrogate_pair_is_read_as_a_question_mark():
    assert decode_response(line(0, Outcome.OK, edits={"text": "a\ud800 \U0001f600"})).text == "a? \U0001f600"


def test_the_first_answer_is_final_and_an_error_only_where_there_is_none(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_bytes(
        line(0, Outcome.ERROR) + line(1, Outcome.ERROR) + line(0, Outcome.OK, "first") + line(0, Outcome.OK, "second")
    )
    finals = FinalResponses(path, RequestTable(zip(IDS, KEYS, strict=True)))
    assert [(one.request, one.outcome, one.text) for one in finals] == [
        (IDS[1], Outcome.ERROR, ""), (IDS[0], Outcome.OK, "first"),
    ]  # fmt: skip
    assert len(finals.answered) == 1 and finals.readable == 1 and IDS[2] not in finals.answered


def test_a_run_reads_its_responses_and_renders_its_prompts_as_seldom_as_it_can(tmp_path, monkeypatch):
    """Going on: once to see what is there, once to extract, once to observe, and once more for the page. Each prompt is
    rendered once for asking."""
    read, rendered = Counter[str](), Counter[str]()
    decode, render = responses.decode_response, TemplateSet.render

    def decoding(line: bytes) -> StoredResponse:
        read["lines"] += 1
        return decode(line)

    def rendering(self: TemplateSet, name: str, values: dict[str, object]) -> str:
        rendered[name] += 1
        return render(self, name, values)

    asked = {"model": "simulated", "tasks": ["advisory"], "limit": 24, "tau": 1, "output_path": tmp_path / "run"}
    vibe_harness.evaluate(**asked, permutations=9)
    monkeypatch.setattr(responses, "decode_response", decoding)
    monkeypatch.setattr(TemplateSet, "render", rendering)
    path = tmp_path / "run" / "responses.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:20]))
    vibe_harness.evaluate(**asked, permutations=9)
    vibe_harness.write_report(tmp_path / "run")
    assert 20 + 24 + 24 <= read["lines"] <= 4 * 24
    assert rendered["advisory/default.j2"] == 24 + 1  # and once as the check of its card
