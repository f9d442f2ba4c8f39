"""Short, stable digests of structured data."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(data: Any, length: int = 32) -> str:
    """The first `length` hexadecimal digits of the SHA-256 of the data as canonical JSON (sorted keys, no spaces).

    Lone surrogates, which some servers send, are accepted.
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
