"""The job scripts for Slurm in docs/studies.md, run by bash as Slurm runs them."""

import os
import re
import subprocess
from pathlib import Path

from tests.support import ROOT

SCRIPTS = re.findall(
    r"```bash\n(#!/bin/bash\n.*?)```", (ROOT / "docs/studies.md").read_text(encoding="utf-8"), re.DOTALL
)


def run(folder: Path, script: str, **variables: str) -> str:
    """What the script calls `vibe-harness` with."""
    program = folder / "bin/vibe-harness"
    program.parent.mkdir(exist_ok=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$*"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", **variables}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_task_of_the_array_is_a_shard_with_a_folder_of_its_own(tmp_path: Path) -> None:
    array, _ = SCRIPTS
    assert "#SBATCH --array=1-8" in array
    called = run(tmp_path, array, SLURM_ARRAY_TASK_ID="3", SLURM_ARRAY_TASK_COUNT="8")
    assert called == "study voices.yaml --shard 3/8 --output-path runs/voices-3"


def test_the_folders_of_all_tasks_are_merged(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        (tmp_path / f"runs/voices-{number}").mkdir(parents=True)
    (tmp_path / "runs/voices").mkdir()
    called = run(tmp_path, SCRIPTS[1])
    merges = "--merge runs/voices-1 --merge runs/voices-10 --merge runs/voices-2"
    assert called == f"study voices.yaml --output-path runs/voices {merges}"
