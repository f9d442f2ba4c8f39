"""A study of 12 simulated models x 5 tasks x 3 corpora: does it get slower, larger or heavier as it goes on?

    python benchmarks/endurance.py [--quick | --full]

Prints, for a study of the sizes of CREMA-D (7,442 clips), the Speech Accent Archive (406) and L2-ARCTIC (9,600):
- seconds of processor per 1,000 requests asked, from the first tenth of the requests to the last (aim: the last at most
  1.25 times the first);
- memory of the whole process as the cells go by (aim: after scoring, over the last fifth of the cells at most 1.1 times
  that over the first fifth), and its peak;
- bytes of a run folder per request, by file;
- what `run-check` takes (aim: no fault).
Exit status 1 where an aim is missed. By default a twentieth of full size; --quick: a two-hundredth, of two models,
whose pace says nothing and is not judged; --full: over a million requests. The clips are the demo's under other names:
decoding is not what is measured.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from figures import status, tell  # beside this file
from overhead import make_corpus

from vibe_harness.analysis.run_check import check_run
from vibe_harness.progress import Progress
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.studies.study import cells_of, progress_of, read_study
from vibe_harness.studies.study_folder import StudyFolder, run_cells

TASKS = ("story", "advisory", "candidate", "casting", "shopper")
SIZES = (7_442, 406, 9_600)
MODELS = 12
PACE, GROWTH = 1.25, 1.1  # aims


def megabytes() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


class Watch(Progress):
    """Notes when requests were answered, and the memory at the end of each stage."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []  # requests, seconds of processor, of each stage that asks
        self.memory: list[tuple[str, float]] = []

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        begun, done = time.process_time(), 0

        def tick(steps: int) -> None:
            nonlocal done
            done += steps

        yield tick
        if name.startswith("asking"):
            self.asked.append((done, time.process_time() - begun))
        self.memory.append((name.split()[0], megabytes()))


def study(folder: Path, share: float, models: int) -> Path:
    """The study's file, with its corpora beside it."""
    corpora = []
    for size in SIZES:
        corpora.append(make_corpus(folder, max(16, round(size * share))).name)
    named = [
        f"  - {{model: simulated, name: m{number:02}, model_args: {{strength: {number / models:.2f}}}}}"
        for number in range(models)
    ]
    lines = ["study: endurance", "models:", *named, f"tasks: [{', '.join(TASKS)}]", f"corpora: [{', '.join(corpora)}]"]
    path = folder / "endurance.yaml"
    path.write_text("\n".join([*lines, "dimensions: [gender]", "tau: 2", "permutations: 99", ""]), encoding="utf-8")
    return path


def tenths(asked: list[tuple[int, float]]) -> list[float]:
    """Seconds per 1,000 requests in each tenth of all requests, cells standing as they were run.

    A cell counts whole in the tenth in which its middle lies.
    """
    whole, before = sum(number for number, _ in asked), 0
    requests, seconds = [0] * 10, [0.0] * 10
    for number, took in asked:
        tenth = min(9, int(10 * (before + number / 2) / whole))
        requests[tenth] += number
        seconds[tenth] += took
        before += number
    return [1000 * spent / number for spent, number in zip(seconds, requests, strict=True) if number]


def by_fifths(sizes: list[float]) -> tuple[float, float]:
    """Means over the first fifth and over the last."""
    fifth = max(1, len(sizes) // 5)
    return sum(sizes[:fifth]) / fifth, sum(sizes[-fifth:]) / fifth


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a two-hundredth of full size, of two models")
    size.add_argument("--full", action="store_true", help="full size: over a million requests")
    options = parser.parse_args()
    models = 2 if options.quick else MODELS
    share = 1 / 200 if options.quick else 1.0 if options.full else 1 / 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = read_study(study(folder, share, models))
        cells = cells_of(asked, folder / "runs")
        kept, watch = StudyFolder(folder / "runs", asked), Watch()
        begun = time.perf_counter()
        run_cells(cells, kept, watch)
        took = time.perf_counter() - begun
        states = Counter(str(progress_of(cell, kept.failures()).state) for cell in cells)
        if set(states) != {"done"}:
            sys.exit(f"not all cells are done: {dict(states)}: {kept.failures()}")
        requests = sum(number for number, _ in watch.asked)
        print(f"{models} models x {len(TASKS)} tasks x {len(SIZES)} corpora at {share:g} of full size")
        tell("all stages and set-up", took, "s", beside=f"{requests:,} requests in {len(cells)} cells")
        pace = tenths(watch.asked)
        beside = f"s of processor per 1,000 requests by tenths: {' '.join(f'{one:.2f}' for one in pace)}"
        slower, aim = pace[-1] / pace[0], "" if options.quick else f"at most {PACE}"
        tell("asking", slower, "in the last tenth over the first", aim, options.quick or slower <= PACE, beside)
        for stage in ("asking", "extracting", "scoring"):
            first, last = by_fifths([size for what, size in watch.memory if what == stage])
            grown, aim = last / first, f"at most {GROWTH}" if stage == "scoring" else ""
            beside = f"{first:.0f} MB, {last:.0f} MB"
            held = grown <= GROWTH or stage != "scoring"
            tell(f"memory after {stage}", grown, "over the last fifth of cells to the first", aim, held, beside)
        tell("memory at its peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, "MB")
        bytes_of: Counter[str] = Counter()
        for cell in cells:
            bytes_of.update({path.name: path.stat().st_size for path in cell.folder.iterdir()})
        parts = ", ".join(f"{file} {size / requests:.0f}" for file, size in bytes_of.most_common(6))
        tell("on disk", sum(bytes_of.values()) / requests, "bytes a request", beside=parts)
        begun = time.perf_counter()
        faults = [fault for cell in cells for fault in check_run(RunFolder(cell.folder)).faults]
        checked = time.perf_counter() - begun
        tell("run-check", 1000 * checked / requests, "s per 1,000 requests")
        tell("run-check", len(faults), "faults", "0", not faults)
    return status()


if __name__ == "__main__":
    sys.exit(main())
