"""One way to make a short, stable digest of structured data."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(data: Any, length: int = 32) -> str:
    """Hexadecimal SHA-256 of the data's canonical JSON (sorted keys, no blanks), cut to `length` digits.

    Half a surrogate pair, which some servers send, is digested as it stands.
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
