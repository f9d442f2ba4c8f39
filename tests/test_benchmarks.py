"""Every benchmark has a quick form, prints a line a figure, and fails where an aim is missed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import figures
from tests.support import ROOT

PARTS = ("figures.py", "level_designs.py", "value_parts.py")
NEED_TORCH = ("engines", "planted")
BENCHMARKS = sorted(path for path in (ROOT / "benchmarks").glob("[a-z]*.py") if path.name not in PARTS)


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_it_is_quick_on_request_and_fails_where_an_aim_is_missed(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert {"tell", "status"} <= called
    assert "--quick" in {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert ast.unparse(tree.body[-1]) == "if __name__ == '__main__':\n    sys.exit(main())"


@pytest.mark.slow
@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_its_quick_form_runs(path: Path, tmp_path: Path) -> None:
    """A missed aim is no fault here, for other work may be going on; a broken benchmark is."""
    if path.stem in NEED_TORCH:
        pytest.importorskip("torch", reason="torch is not installed: .ci/engines has it, and this environment not")
    done = subprocess.run(
        [sys.executable, path, "--quick"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        timeout=400,
    )  # fmt: skip
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert any(": " in line for line in done.stdout.splitlines())


def test_a_line_a_figure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "missed", [])
    figures.tell("start", 0.25, "s", "at most 1", beside="on a quiet machine")
    figures.tell("all", 12_345.6, "MB")
    assert figures.status() == 0
    figures.tell("pages", 7, "MB", "at most 5", held=False)
    assert figures.status() == 1
    said = ["start: 0.25 s, aim at most 1 (on a quiet machine)", "all: 12,346 MB", "pages: 7 MB, aim at most 5  MISSED"]
    assert capsys.readouterr().out.splitlines() == said
