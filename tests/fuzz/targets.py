"""What is fuzzed: each reader of files or texts from outside, given bytes. It may refuse them, and nothing else.

`python -m tests.fuzz.targets NAME INPUTS SEED` gives one so many inputs of a coverage-guided fuzzer (atheris), starting
from inputs that are right and from what was found before; one that breaks it is kept in tests/fuzz/found/NAME.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

FOUND = Path(__file__).parent / "found"
FOLDER = Path(tempfile.gettempdir()) / f"vibe-fuzz-{os.getpid()}"


def written(name: str, data: bytes) -> Path:
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def card(data: bytes) -> None:
    """The card loader: a task card, with templates and aliases beside it, that somebody wrote."""
    from vibe_harness.cards.loading import CardIndex
    from vibe_harness.errors import UserError

    template, _, rest = data.partition(b"\n====\n")
    written("templates/mine.j2", rest[:2000] or b"words")
    written("templates/read.j2", b"{{ fence }}{{ response }}{{ fence }}")
    written("templates/also.yaml", rest or b"nurse: [nurses]\n")
    path = written("tasks/mine.yaml", template)
    with contextlib.suppress(UserError):
        CardIndex([FOLDER]).load_task(path)


def model_card(data: bytes) -> None:
    """A model card, with its options checked."""
    from vibe_harness.backends.protocol import check_options
    from vibe_harness.errors import UserError

    with contextlib.suppress(UserError):
        check_options(_index().model(str(written("models/mine.yaml", data))))


@lru_cache(maxsize=1)
def _index():
    from vibe_harness.cards.loading import CardIndex

    return CardIndex()


def manifest(data: bytes) -> None:
    """The manifest reader: CSV, or JSON Lines where the bytes begin with an object."""
    from vibe_harness.corpora.manifest import load_manifest
    from vibe_harness.errors import UserError

    name = "m.jsonl" if data[:1] == b"{" else "m.csv"
    with contextlib.suppress(UserError):
        load_manifest(written(name, data))


@lru_cache(maxsize=1)
def _story():
    return _index().tasks(["story"])[0]


def extraction(data: bytes) -> None:
    """The extraction parser, by a model's JSON and by rules: whatever they are given, each attribute has a reading."""
    from vibe_harness.extraction.parse import parse_answer
    from vibe_harness.extraction.rules import read_labelled
    from vibe_harness.records import Outcome, Reading, Response

    task, text = _story(), data.decode("utf-8", "replace")
    for found in (parse_answer(task, "r", text), read_labelled(task, Response("r", Outcome.OK, text))):
        assert set(found.readings) == set(task.card.extraction.attributes)
        for name, reading in found.readings.items():
            assert (name in found.raw) == (reading is Reading.VALUE), (name, reading, found.raw)


def answer(data: bytes) -> None:
    """The reader of choices: a label that was offered, or none."""
    from vibe_harness.extraction.answer_reader import read_choice
    from vibe_harness.records import Option, Reading

    options = [Option(label, text, text) for label, text in zip("ABC", ("Paris", "Rome", "Cannot say"), strict=True)]
    found = read_choice(data.decode("utf-8", "replace"), options)
    assert (found.label in ("A", "B", "C")) == (found.reading is Reading.VALUE)
    assert found.label is None or found.reading is Reading.VALUE


def run_folder(data: bytes) -> None:
    """The run-folder readers: a finished run, one file of which holds other bytes. Byte 0 says which file."""
    from vibe_harness.analysis.run_check import check_run
    from vibe_harness.errors import UserError
    from vibe_harness.store.run_folder import RunFolder
    from vibe_harness.store.run_tables import read_frame

    files = _finished()
    names = sorted(files)
    name = names[(data[0] if data else 0) % len(names)]
    folder = RunFolder(FOLDER / "run")
    if not folder.run_json.exists():
        for other, whole in files.items():
            written(f"run/{other}", whole)
    try:
        written(f"run/{name}", data[1:])
        with contextlib.suppress(UserError):
            check_run(folder)
        if name == folder.observations.name:
            with contextlib.suppress(UserError):
                read_frame(folder.observations, "advisory", "default", "gender")
    finally:
        written(f"run/{name}", files[name])  # writing them all takes as long as checking them


@lru_cache(maxsize=1)
def _finished() -> dict[str, bytes]:
    """The files of a small finished run."""
    from vibe_harness import evaluate

    folder = FOLDER / "whole"
    evaluate("simulated", ["advisory"], "demo", dimensions=["gender"], limit=4, tau=1, permutations=9,
             output_path=folder)  # fmt: skip
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name in ("run.json", "results.json") or path.suffix in (".jsonl", ".parquet")
    }


TARGETS: dict[str, Callable[[bytes], None]] = {
    "card": card,
    "model_card": model_card,
    "manifest": manifest,
    "extraction": extraction,
    "answer": answer,
    "run_folder": run_folder,
}


def seeds(name: str) -> list[bytes]:
    """Inputs that are right, and those that once were not handled."""
    root = Path(__file__).parents[2]
    cards = [path.read_bytes() for path in sorted((root / "tasks").rglob("*.yaml"))]
    given = {
        "card": [one + b"\n====\nnurse: [nurses]\n" for one in cards]
        + [b"task: mine\nversion: 1\ndescription: d\nprompts: {a: mine.j2}\nextraction:\n  template: read.j2\n"
           b"  attributes: {job: {values: open, aliases: also.yaml}}\ndimensions: {gender: [m]}\n====\na: [b, c]\n"],
        "model_card": [path.read_bytes() for path in sorted((root / "models").rglob("*.yaml"))],
        "manifest": [
            b"file,speaker,gender,text,id\na/1.wav,s1,female,\"a, b\",x\nb.wav,s2,male,,y\n",
            b'{"file": "a.wav", "speaker": "s1", "gender": "f", "n": 1.5, "x": null}\n'
            b'{"file": "b.wav", "speaker": "2"}\n',
        ],
        "extraction": [
            json.dumps({"refused": False, "occupation": "nurse", "personality": ["kind", "calm"]}).encode(),
            b"```json\n{\"occupation\": null}\n```",
            b"Occupation: nurse\n**Personality:** kind, calm; shy\nI cannot help.",
        ],
        "answer": [b"Answer: [[B]]", b"**B**", b"(b) Rome", b"A fair answer is C", b"Both", b"The answer is option A."],
        "run_folder": [bytes([i]) + _finished()[file] for i, file in enumerate(sorted(_finished()))]
        if name == "run_folder" else [],
    }  # fmt: skip
    return [*given[name], *(path.read_bytes() for path in sorted((FOUND / name).glob("*")))]


def main(name: str, inputs: int, seed: int) -> None:
    """Fuzz one target under atheris."""
    import atheris

    with atheris.instrument_imports(include=["vibe_harness", "yaml", "jinja2", "csv", "json"]):
        TARGETS[name](seeds(name)[0])
    started, tried = time.monotonic(), 0

    def once(data: bytes) -> None:
        nonlocal tried
        if tried == inputs:
            print(f"{name}: {tried} inputs in {time.monotonic() - started:.1f} s, none unhandled", flush=True)
            os._exit(0)
        tried += 1
        begun = time.process_time()
        try:
            TARGETS[name](data)
            slow = time.process_time() - begun
            assert slow < 5, f"{slow:.1f} s for one input"
        except BaseException:
            path = FOUND / name / hashlib.sha256(data).hexdigest()[:16]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"kept as {path}", flush=True)
            raise

    corpus = FOLDER / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (corpus / str(number)).write_bytes(data)
    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            f"-seed={seed}",
            "-max_len=20000",
            "-rss_limit_mb=4000",
            f"-artifact_prefix={FOLDER}/",
            "-verbosity=0",
        ],
        once,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
