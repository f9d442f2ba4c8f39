"""The hub's layout of BiasInEar, with tones in place of speech."""

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import soundfile

from tests.corpora.sounds import speechlike
from vibe_harness.corpora.importers.biasinear import PARTS, REVERSED

Row = dict[str, object]
ACCENTS = {"en": ("American", "British", "Indian"), "zh": ("Beijing", "Northeastern"), "ko": ("Seoul", "Jeolla")}


def _audio(seed: int) -> dict[str, object]:
    data = io.BytesIO()
    soundfile.write(data, speechlike(0.2, 8_000, seed=seed), 8_000, format="WAV")
    return {"bytes": data.getvalue(), "path": f"{seed}.wav"}


def _rows(language: str, samples: int = 2, remap: bool = True, voice: int = 0) -> list[Row]:
    rows: list[Row] = []
    for sample in range(samples):
        for accent in ACCENTS[language]:
            for order in ("original", "reversed"):
                options = [f"option {letter} of {sample}" for letter in "ABCD"]
                answer = "ABCD"[sample % 4]
                if order == "reversed":
                    options.reverse()
                    answer = REVERSED[answer] if remap else answer
                row: Row = {
                    "sample_id": f"q/{sample}", "subject": "history", "subject_category": "humanities", "order": order,
                    "accent": accent, "answer": answer, "cultural_sensitivity_label": "CS" if sample % 2 else "CA",
                }  # fmt: skip
                for index, part in enumerate(PARTS):
                    row[part] = _audio(100_000 * voice + 10 * len(rows) + index)
                    row[f"{part}_text"] = f"question {sample}" if part == "question" else options[index - 1]
                rows.append(row)
    return rows


def biasinear_layout(folder: Path, change: Callable[[list[Row]], None] = lambda rows: None, **how: bool) -> Path:
    for number, language in enumerate(ACCENTS):
        for gender in ("Female", "Male"):
            rows = _rows(language, voice=2 * number + (gender == "Male"), **how)
            change(rows)
            path = folder / f"{language}_{gender}" / "test-00000-of-00001.parquet"
            path.parent.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows), path)
    return folder
