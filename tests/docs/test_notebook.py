"""The notebook runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from jupyter_client.connect import port_names
from nbclient import NotebookClient

from tests.docs.guide import DOCS
from tests.support import PATIENCE_S, held_port

PATH = DOCS / "notebook.ipynb"


def test_it_is_stored_without_outputs() -> None:
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code and not any(cell.outputs or cell.execution_count for cell in code)


@pytest.mark.slow
def test_it_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(PATH, as_version=4)
    with ExitStack() as held:
        ports = {name: held.enter_context(held_port()).getsockname()[1] for name in port_names}
        NotebookClient(
            notebook, AsyncKernelManager(kernel_name="python3", cache_ports=False, **ports),
            timeout=None, startup_timeout=PATIENCE_S, resources={"metadata": {"path": str(tmp_path)}},
        ).execute()  # fmt: skip
    printed = "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
    assert "advisory" in printed or "gender" in printed
    assert (tmp_path / "runs" / "notebook" / "report.html").is_file()
