"""A small frame of observations whose scores can be worked out by hand."""

from __future__ import annotations

import pandas as pd

# group, speaker, what each answer gives
ANSWERS = [
    ("a", "a1", ["nurse", "nurse", "judge"]),
    ("a", "a2", ["nurse", "chef", None]),
    ("b", "b1", ["chef", "chef"]),
    ("b", "b2", ["chef", "nurse"]),
]


def frame() -> pd.DataFrame:
    """nurse 3 and chef 1 in group a, nurse 1 and chef 3 in group b; judge once; one answer without a value."""
    rows = []
    for group, speaker, answers in ANSWERS:
        for value in answers:
            values = [] if value is None else [value]
            request = f"r{len(rows)}"
            rows.append(
                {
                    "request": request, "clip": request, "speaker": speaker, "group": group, "attribute": "job",
                    "outcome": "ok", "reading": "value" if values else "unknown",
                    "raw": [word.title() for word in values], "values": values,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)
