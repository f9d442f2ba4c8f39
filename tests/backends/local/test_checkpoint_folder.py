"""Weights in a folder of one's own: pinned by the digest of their files, refused where they are not whole."""

import json
from pathlib import Path

import pytest

from vibe_harness.backends.local.checkpoint import checkpoint, checkpoint_digest
from vibe_harness.backends.protocol import pinned, with_overrides
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.planning.config import RunConfig
from vibe_harness.planning.prepare import prepare
from vibe_harness.progress import Progress

WHOLE = {
    "config.json": "{}", "model.safetensors": "weights", "tokenizer.json": "{}", "preprocessor_config.json": "{}",
    "training_args.yaml": "not hashed", ".cache.json": "not hashed",
}  # fmt: skip


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    return write(tmp_path / "run 3" / "checkpoint-500", WHOLE)


@pytest.mark.parametrize("engine", ["hf", "vllm"])
def test_a_folder_is_a_model_with_the_digest_of_its_files_for_a_revision(tuned: Path, engine: str) -> None:
    card = pinned(CardIndex().model(f"{engine}:{tuned}"))
    assert card.model == "run-3--checkpoint-500" and card.revision == checkpoint_digest(tuned)
    assert checkpoint(card) == {"id": str(tuned), "revision": None}
    again = with_overrides(CardIndex().model(f"{engine}:org/name"), {"id": str(tuned)})
    assert pinned(again).revision == card.revision
    assert pinned(CardIndex().model(f"{engine}:org/name")).revision is None


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("model.safetensors", True), ("chat_template.jinja", True), ("speech-lora/adapter_model.safetensors", True),
        ("modeling_own.py", True), ("training_args.yaml", False), ("README.md", False),
    ],
)  # fmt: skip
def test_what_changes_the_model_changes_the_revision(tuned: Path, name: str, counts: bool) -> None:
    before = pinned(CardIndex().model(f"hf:{tuned}")).revision
    write(tuned, {name: "changed"})
    assert (pinned(CardIndex().model(f"hf:{tuned}")).revision != before) is counts


def test_a_checkpoint_below_it_is_another_model(tuned: Path) -> None:
    before = checkpoint_digest(tuned)
    write(tuned / "checkpoint-100", WHOLE)
    assert checkpoint_digest(tuned) == before


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"notes.txt": "x"}, r"it has no config\.json$"),
        ({"checkpoint-5/config.json": "{}"}, "its folder checkpoint-5 has one"),
        ({"adapter_config.json": "{}", "adapter_model.safetensors": "x"}, "an adapter alone: merge it into its base"),
        ({"config.json": "{}", "tokenizer.json": "{}"}, "it has no weights"),
        ({"config.json": "{}", "model.safetensors": "x"}, "it has no tokenizer or processor"),
        (
            {**WHOLE, "model.safetensors.index.json": json.dumps({"weight_map": {"a": "model-2-of-2.safetensors"}})},
            "it lacks model-2-of-2",
        ),
        ({**WHOLE, "model.safetensors.index.json": "[]"}, "not an index of weights"),
    ],
)
def test_a_folder_that_is_no_whole_checkpoint_is_refused_in_one_line(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    folder = write(tmp_path / "own", files)
    with pytest.raises(UserError, match=said) as refused:
        pinned(CardIndex().model(f"hf:{folder}"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["/no/such/folder", "./none", "~/none-of-that-name", "a/b/c"])
def test_a_path_to_nothing_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"there is no folder {name}"):
        pinned(CardIndex().model(f"hf:{name}"))


def test_a_digest_on_the_card_is_kept_to(tuned: Path) -> None:
    card = ModelCard(model="m", backend="hf", id=str(tuned), revision=checkpoint_digest(tuned))
    assert pinned(card) == card
    write(tuned, {"model.safetensors": "others"})
    with pytest.raises(UserError, match=r"have the digest [0-9a-f]{32}, and its card says"):
        pinned(card)


def test_two_trainings_in_one_folder_are_two_runs(
    tuned: Path, tones: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = RunConfig(f"hf:{tuned}", ["advisory"], str(tones), extractor="rules")
    [first] = prepare(config, Progress())
    assert first.folder.name.startswith("run-3--checkpoint-500-")
    write(tuned, {"model.safetensors": "after another epoch"})
    [second] = prepare(config, Progress())
    assert first.folder != second.folder
    assert next(first.plan.requests()).id != next(second.plan.requests()).id
