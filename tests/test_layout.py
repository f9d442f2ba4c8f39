"""Imports run downward only, as the contract in pyproject.toml draws it, and starting up stays light."""

import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
HEAVY = ("numpy", "pandas", "pyarrow", "scipy", "datasets", "torch", "matplotlib", "jinja2", "pydantic", "aiohttp")


def test_imports_run_downward_only():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_imports_itself_through_others():
    """The contract compares siblings, and misses a package and its own module that import each other."""
    graph = grimp.build_graph("vibe_harness", cache_dir=None)
    assert "vibe_harness.cli.main" in graph.modules
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_help_imports_nothing_heavy():
    program = (
        "import sys, contextlib\n"
        "from vibe_harness.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_test_module_imports_another():
    """What tests share stands in a conftest or in a module beside them."""
    guilty = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*(from tests\.(\w+\.)*test_\w+ import|import tests\.(\w+\.)*test_)", line)
    ]
    assert guilty == []
