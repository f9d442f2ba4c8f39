"""Checks kept on disk: a file that changed is decoded again, however it changed."""

from __future__ import annotations

import os
from pathlib import Path

from tests.command_line import tone
from vibe_harness.corpora.audio.check_cache import check_cached
from vibe_harness.records import CheckedAudio


def test_a_file_moved_in_under_its_name_with_its_size_and_time_is_decoded_again(tmp_path: Path) -> None:
    for name, pitch in (("a.wav", 110), ("b.wav", 220)):
        tone(tmp_path / name, pitch)
        os.utime(tmp_path / name, ns=(10**18, 10**18))
    known = dict(check_cached(tmp_path, ["a.wav"], {}))
    before = known["a.wav"].result
    assert dict(check_cached(tmp_path, ["a.wav"], known))["a.wav"] is known["a.wav"]
    (tmp_path / "b.wav").replace(tmp_path / "a.wav")
    status = (tmp_path / "a.wav").stat()
    assert (status.st_size, status.st_mtime_ns) == (known["a.wav"].size, known["a.wav"].mtime_ns)
    after = dict(check_cached(tmp_path, ["a.wav"], known))["a.wav"].result
    assert isinstance(before, CheckedAudio) and isinstance(after, CheckedAudio) and after.sha256 != before.sha256
