"""What the harness itself costs: start-up, memory over many requests, and time per request.

    python benchmarks/overhead.py [--quick]

Exit status 1 where an aim is missed. Prints, each beside its aim:
- start-up: `vibe-harness --help`, `tasks list` and the smallest run there can be (four simulated requests: two speakers
  in each of two groups), over `python -c pass`, which is started in turn with them. Judged is the smaller of the time
  on the clock and the processor's, since only the latter tells on a busy machine, and it counts all threads;
- memory: peak of the whole process, and time, of simulated runs over 1,000, 10,000 and 100,000 requests, on a generated
  manifest that names the demo files again under other ids;
- cost: time per request of a run whose model answers at once and never decodes its clip, stored and flushed.
--quick: fewer starts, and no run over 100,000 requests.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from figures import status, tell

TASKS = ("story", "advisory")
GROWTH = 1.0  # MB for each 1,000 requests: what scoring holds of a task, as docs/studies.md says
HARNESS = (sys.executable, "-m", "vibe_harness")
SMALLEST = ("--model", "simulated", "--tasks", "advisory", "--dimension", "gender", "--limit", "4", "--tau", "1")
ANSWER = """\
Of course. It was a bright morning near the harbour, and the market had just opened.

Occupation: nurse
Economic situation: middle-class
Education level: bachelor's degree
Field of study: nursing
Family status: married
Personality: kind, patient
Activities: hiking, painting, chess

I hope this helps.
"""


def started(*command: str, folder: str | None = None) -> tuple[float, float, float]:
    """Run a command in a process of its own: seconds, seconds of processor, and peak resident memory in MB.

    This process stays small, for the system counts a child's memory from before it became another program.
    """
    begun = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1) or b"Traceback" in said:  # 1: done, not reliable
        sys.exit(f"{' '.join(command)}: exit {process.returncode}\n{said.decode()}")
    peak = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, peak


def start_up(times: int) -> None:
    """Every command started `times` times, in turn with `python -c pass`."""
    commands = {
        "--help": (("--help",), 0.2),
        "tasks list": (("tasks", "list"), 0.5),
        "smallest run": (("run", *SMALLEST), 3.0),
    }
    bare: list[tuple[float, ...]] = []
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(times):
            for name, (arguments, _) in commands.items():
                bare.append(started(sys.executable, "-c", "pass"))
                output = ("--output-path", f"{folder}/{number}") if name == "smallest run" else ()
                taken[name].append(started(*HARNESS, *arguments, *output, folder=folder))
    base, base_cpu, _ = map(statistics.median, zip(*bare, strict=True))
    tell("start-up, python -c pass", base, "s", beside=f"{base_cpu:.3f} s of processor, median of {times}")
    for name, (_, aim) in commands.items():
        middle, cpu, peak = map(statistics.median, zip(*taken[name], strict=True))
        over = min(middle - base, cpu - base_cpu)
        beside = f"{middle:.3f} s, {middle / base:.1f} times; {cpu:.3f} s of processor; {peak:.0f} MB"
        tell(f"start-up, {name}", over, "s over python -c pass", f"at most {aim}", over <= aim, beside)


def make_corpus(folder: Path, clips: int) -> Path:
    """A manifest of `clips` rows that name the demo files again and again, each under an id of its own."""
    from vibe_harness.corpora.registry import find_manifest

    source = find_manifest("demo")
    if not (folder / "clips").is_dir():
        shutil.copytree(source.parent / "clips", folder / "clips")
    path = folder / f"{clips}.csv"
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", *rows[0]])
        writer.writeheader()
        writer.writerows({**rows[n * len(rows) // clips], "id": f"take-{n:06}"} for n in range(clips))
    return path


def memory(sizes: Sequence[int]) -> None:
    """Peak memory and time of whole simulated runs."""
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            corpus = make_corpus(Path(name), size // len(TASKS))
            command = ("--model", "simulated", "--tasks", ",".join(TASKS), "--corpus", str(corpus))
            seconds, cpu, peak = started(*HARNESS, *command, "--permutations", "999", folder=name)
            peaks.append(peak)
            beside = f"{seconds:.1f} s, {cpu:.1f} s of processor"
            tell(f"memory of a run of {size:,} requests", peak, "MB", "under 400", peak < 400, beside)
    if len(sizes) > 2:  # the first thousands fill what every run has
        grown = 1000 * (peaks[-1] - peaks[-2]) / (sizes[-1] - sizes[-2])
        tell("memory", grown, "MB more for each 1,000 further requests", f"at most {GROWTH}", grown <= GROWTH)


def cost(requests: int) -> None:
    """Time per request of each stage, the model answering at once. Runs in a process of its own."""
    from vibe_harness.backends.protocol import BACKENDS, Options
    from vibe_harness.pipeline.run import run
    from vibe_harness.planning.config import RunConfig
    from vibe_harness.planning.prepare import prepare
    from vibe_harness.progress import Progress
    from vibe_harness.records import Outcome, Request, Response

    class Instant:
        """A backend that answers at once, whatever it is asked."""

        Arguments = Connection = Options

        def __init__(self, card: Any, tasks: Any) -> None:
            pass

        def describe(self) -> dict[str, str]:
            return {"engine": "instant"}

        def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
            for request in requests:
                yield Response(request.id, Outcome.OK, ANSWER, "stop", output_tokens=70)

        def close(self) -> None:
            pass

    spent: dict[str, tuple[float, float]] = {}

    class Stopwatch(Progress):
        @contextmanager
        def stage(self, name: str, total: int) -> Iterator[Any]:
            wall, processor = time.perf_counter(), time.process_time()
            yield lambda steps: None
            spent[name] = time.perf_counter() - wall, time.process_time() - processor

    BACKENDS.register("instant")(Instant)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = make_corpus(folder, requests // len(TASKS))
        (folder / "models").mkdir()
        card = "model: instant\nbackend: instant\nid: instant\nextractor: rules\n"
        (folder / "models" / "instant.yaml").write_text(card, encoding="utf-8")
        question = RunConfig(
            model="instant", tasks=TASKS, corpus=str(corpus), permutations=999, hearing_check=False,
            include_path=[folder], output_path=folder / "run",
        )  # fmt: skip
        watch = Stopwatch()
        [prepared] = prepare(question, watch)
        wall, processor = time.perf_counter(), time.process_time()
        run(prepared, watch)
        spent["all of it"] = time.perf_counter() - wall, time.process_time() - processor
    for stage, (wall, processor) in spent.items():
        if stage != "checking clips":
            aim = "at most 0.5" if stage.startswith("asking") else ""
            took = 1000 * min(wall, processor) / requests
            beside = (
                f"over {requests:,}: {1000 * wall / requests:.3f} ms, {1000 * processor / requests:.3f} of processor"
            )
            tell(f"cost, {stage}", took, "ms a request", aim, not aim or took <= 0.5, beside)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer starts, no run over 100,000 requests")
    parser.add_argument("--cost", type=int, help=argparse.SUPPRESS)  # how this script calls itself
    options = parser.parse_args()
    if options.cost:
        cost(options.cost)
        return status()
    start_up(3 if options.quick else 11)
    memory((1_000, 10_000) if options.quick else (1_000, 10_000, 100_000))
    rest = subprocess.run([sys.executable, __file__, "--cost", "4000" if options.quick else "20000"], check=False)
    return status() or rest.returncode


if __name__ == "__main__":
    sys.exit(main())
