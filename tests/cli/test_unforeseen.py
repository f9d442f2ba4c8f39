"""An error that nobody foresaw has an exit code of its own, and one line that says where its traceback is."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from vibe_harness.cli import main as command_line
from vibe_harness.cli.schema import command as schema_command


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("0 in 0"), RecursionError("deep"), OSError("no number"), KeyError("k")]
)
def test_one_line_says_where_the_traceback_is(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> None:
        raise error

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(schema_command, "invoke", broken)
    with pytest.raises(SystemExit) as end:
        command_line.main(["schema", "task"])
    said = capsys.readouterr().err
    assert end.value.code == 70
    assert said.count("\n") == 1 and type(error).__name__ in said and "Traceback (most" not in said
    trace = Path(re.search(r"(\S+\.txt)", said)[1])  # type: ignore[index]
    assert trace.parent == tmp_path and trace.stat().st_mode & 0o077 == 0
    kept = trace.read_text(encoding="utf-8")
    assert kept.startswith("Traceback (most recent call last)") and "in broken" in kept


def test_where_no_file_can_be_written_the_traceback_itself_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(schema_command, "invoke", broken)
    with pytest.raises(SystemExit) as end:
        command_line.main(["schema", "task"])
    assert end.value.code == 70 and "in broken" in capsys.readouterr().err
