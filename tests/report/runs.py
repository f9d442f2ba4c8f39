"""Runs for the tests of pages: a corpus of clips with awkward names, and answers that are out to break a page."""

import csv
import json
import shutil
from pathlib import Path

from tests.support import ROOT
from vibe_harness import evaluate
from vibe_harness.store.run_folder import RunFolder

HOSTILE = (
    '<script>document.title = "taken over"</script><img src=x onerror="document.title=1">',
    "</script><!-- <style>* { display: none }</style>",
    "A" * 200_000,
    "\u202eright to left\u202c and مرحبا and שלום",
    "NUL \x00, escape \x1b[31m, bell \x07",
    "👩🏽‍🚀 emoji 🏳️‍🌈 and a lone half \ud83d",
    "{{ 7 * 7 }} ${7 * 7} <%= 7 %> &amp; &lt;b&gt;",
    "",
)
NAMES = ('it\'s "one"', "two & <b>two<b>", "three #3", "100 % four?", "fünf 五", "six; seven", "a+b=c", "plain")


def awkward_corpus(folder: Path) -> Path:
    """Eight clips of eight speakers of two genders, whose files have quotes, blanks and marks in their names."""
    with (ROOT / "corpora/demo/manifest.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["sentence_id"] == "s1"]
    chosen = [
        *[row for row in rows if row["gender"] == "female"][:4],
        *[row for row in rows if row["gender"] == "male"][:4],
    ]
    folder.mkdir(parents=True)
    manifest = folder / "manifest.csv"
    with manifest.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "speaker", "gender", "text", "licence"])
        for row, name in zip(chosen, NAMES, strict=True):
            shutil.copyfile(ROOT / "corpora/demo" / row["file"], folder / f"{name}.ogg")
            writer.writerow([f"{name}.ogg", name, row["gender"], row["text"], "Apache-2.0"])
    return manifest


def hostile_run(folder: Path) -> RunFolder:
    """A run over the awkward corpus whose model wrote HOSTILE, and whose values are hostile too."""
    manifest = awkward_corpus(folder / 'corp "us')
    run = RunFolder(folder / "run")

    def ask() -> None:
        evaluate(
            "simulated", ["advisory"], manifest, dimensions=["gender"], tau=1, permutations=9, output_path=run.path
        )

    ask()
    records = [json.loads(line) for line in run.responses.read_text(encoding="utf-8").splitlines()]
    for number, record in enumerate(sorted(records, key=lambda one: one["clip"])):
        text = HOSTILE[number % len(HOSTILE)]
        record["text"] = f"{text}\n- Activities: {text[:200]}, chess" if text else ""
        record["outcome"] = "ok" if text else "empty"
    lines = [json.dumps(record) for record in records]
    run.responses.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ask()  # reads and scores what stands there now
    return run
