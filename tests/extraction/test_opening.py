"""Finding an extractor by its name, and one whole way through a server."""

import json
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest

from tests.loopback import Loopback
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.errors import UserError
from vibe_harness.extraction.answer_schema import answer_schema
from vibe_harness.extraction.opening import find_extractor, open_extractor
from vibe_harness.extraction.protocol import EXTRACTORS
from vibe_harness.library import library_root
from vibe_harness.records import Outcome, Reading, Response


@pytest.fixture
def index(tmp_path: Path) -> CardIndex:
    models = tmp_path / "models"
    models.mkdir()
    for name, audio, args in (("texty", "false", "{}"), ("hears", "true", "{}"), ("typo", "false", "{temprature: 1}")):
        (models / f"{name}.yaml").write_text(
            f"model: {name}\nbackend: openai\nid: org/x\naudio: {audio}\nargs: {args}\n", encoding="utf-8"
        )
    return CardIndex([tmp_path])


def test_a_registered_extractor_needs_no_card(index: CardIndex) -> None:
    assert "rules" in EXTRACTORS.names()
    assert find_extractor("rules", index) is None


def test_a_name_that_is_neither_gets_a_suggestion(index: CardIndex) -> None:
    with pytest.raises(UserError, match=r"unknown extractor 'rulse'. Did you mean 'rules'\?"):
        find_extractor("rulse", index)
    with pytest.raises(UserError, match=r"Did you mean 'qwen3-8b' or"):
        find_extractor("qwen3-8B-", index)


def test_a_model_that_hears_recordings_is_no_extractor(index: CardIndex) -> None:
    with pytest.raises(UserError, match="'hears' takes recordings"):
        find_extractor("hears", index)


def test_a_wrong_argument_is_told_before_anything_is_opened(index: CardIndex) -> None:
    with pytest.raises(UserError, match=r"model 'typo': args\.temprature: the backend 'openai' takes no such argument"):
        find_extractor("typo", index)
    card = find_extractor("texty", index)
    assert card is not None and card.model == "texty"


def test_the_default_extractor_against_a_server(index: CardIndex, story: Task, tmp_path: Path) -> None:
    with Loopback(models=["Qwen/Qwen3-8B"]) as server:
        (tmp_path / "models" / "here.yaml").write_text(
            f"include: base.yml\nmodel: here\nconnection: {{base_url: '{server.url}'}}\n", encoding="utf-8"
        )
        base = (library_root() / "models" / "qwen3-8b.yaml").read_text(encoding="utf-8")
        (tmp_path / "models" / "base.yml").write_text(base, encoding="utf-8")
        with closing(open_extractor("here", CardIndex([tmp_path]), [story])) as extractor:
            given = ((story, Response(f"r{number}", Outcome.OK, f"Story {number}.")) for number in range(40))
            found = list(extractor.extract(given))
        sent = server.seen()["last"]
    assert sorted(one.request for one in found) == sorted(f"r{number}" for number in range(40))
    schema = answer_schema(story.card.extraction.attributes)
    for one in found:
        jsonschema.validate(json.loads(one.text), schema)
        assert set(one.readings) == set(story.card.extraction.attributes)
        assert Reading.UNPARSED not in one.readings.values() and one.error is None
    assert any(one.raw for one in found)
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("Qwen/Qwen3-8B", 0.0, 512)
    form = {"name": "answer", "strict": True, "schema": schema}
    assert sent["response_format"] == {"type": "json_schema", "json_schema": form}


LOST = {"length": Reading.UNPARSED, "empty": Reading.UNPARSED, "refused": Reading.UNPARSED,
        "filtered": Reading.UNPARSED, "bad_request": Reading.ERROR, "no_choices": Reading.ERROR}  # fmt: skip


def test_what_goes_wrong_at_a_server_is_no_value(tmp_path: Path, story: Task) -> None:
    with Loopback(rates=dict.fromkeys(LOST, 0.12), seed=7) as server:  # well for the proof that the schema acts
        (tmp_path / "x.yaml").write_text(
            f"model: x\nbackend: openai\nid: loopback\naudio: false\nconnection: {{base_url: '{server.url}'}}\n",
            encoding="utf-8",
        )
        with closing(open_extractor(str(tmp_path / "x.yaml"), CardIndex(), [story])) as extractor:
            found = list(extractor.extract((story, Response(f"r{n}", Outcome.OK, f"Story {n}.")) for n in range(80)))
        played = server.seen()["played"]
    lost = [one for one in found if one.error]
    assert all(len(set(one.readings.values())) == 1 and not one.raw and not one.refused for one in lost)
    assert set(played) == {*LOST, "well"}
    for reading in (Reading.UNPARSED, Reading.ERROR):
        expected = sum(count for ending, count in played.items() if LOST.get(ending) is reading)
        assert sum(reading in one.readings.values() for one in found) == expected
