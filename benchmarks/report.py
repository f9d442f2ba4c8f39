"""What reports cost: the leaderboard of 100 models, and the page of a run with 100,000 readings.

    python benchmarks/report.py [--models 100] [--readings 100000] [--quick]

Exit status 1 where an aim is missed. Prints, each beside its aim, with Debian's Chromium for what a person waits for:
- leaderboard: 100 models x 5 tasks x 3 corpora, time to build, size of the site, time to the first view of its index;
- run page: time to write, size, time to the first view and until its answers can be filtered.
The figures in it are made up: runs are drawn at random in the shape that real ones have.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import status, tell

from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder

CORPORA = {
    "crema-d": ("gender", ("female", "male")),
    "l2-arctic": ("accent", ("arabic", "hindi", "korean", "mandarin", "spanish", "vietnamese")),
    "speech-accent-archive": ("accent", ("arabic", "english", "french", "korean", "mandarin", "spanish")),
}
TASKS = ("story", "advisory", "candidate", "casting", "shopper")
OPEN_VALUES = 40  # kept values of an open attribute
USUAL_READINGS = 1_900  # of 500 answers: 19 attributes of five tasks
PERMUTATIONS = 100_000  # a family of 1,500 tests needs 30,000


def demo_run(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """run.json and results.json of a real run of all tasks."""
    command = [
        sys.executable,
        "-m",
        "vibe_harness",
        "--model",
        "simulated",
        "--tasks",
        ",".join(TASKS),
        "--permutations",
        "99",
    ]
    subprocess.run([*command, "--output-path", str(folder)], check=False, capture_output=True)
    read = [json.loads((folder / name).read_text(encoding="utf-8")) for name in ("run.json", "results.json")]
    return read[0], read[1]


def score(draw: random.Random, base: dict[str, Any], value: float) -> dict[str, Any]:
    p_value = max(1 / (PERMUTATIONS + 1), draw.random() ** 6)
    return base | {
        "value": value, "p_value": p_value, "null_mean": value / 3, "null_p95": value / 2, "at_least": value * 0.8,
        "at_most": value, "interval": [value * 0.7, value * 1.2], "permuted": "speakers",
        "permutations": PERMUTATIONS, "exact": False,
    }  # fmt: skip


def attribute_detail(draw: random.Random, values: list[str], groups: tuple[str, ...]) -> dict[str, Any]:
    shares = {group: {value: draw.random() for value in values} for group in groups}
    for row in shares.values():
        total = sum(row.values())
        row.update({value: share / total for value, share in row.items()})
    return {
        "distinct_values": 3 * len(values), "kept_values": len(values), "items": 5000, "kept_share": 0.8,
        "kept_share_by_group": dict.fromkeys(groups, 0.8), "distribution": shares,
        "contributions": [
            {
                "value": value, "adds": draw.random(),
                "by_group": {group: {"difference": draw.uniform(-9, 9), "interval": [-1.0, 1.0]} for group in groups},
            }
            for value in values
        ],
    }  # fmt: skip


def task_result(draw: random.Random, task: Task, dimension: str, groups: tuple[str, ...]) -> dict[str, Any]:
    blank: dict[str, Any] = {"undefined": None, "attribute": None, "detail": {}}
    whole = score(draw, {**blank, "metric": "ntvd"}, draw.uniform(1, 40))
    whole["detail"] = {
        "attributes_left_out": {},
        "by_tau": {str(t): whole["value"] for t in (1, 2, 5, 10, 15, 20, 30, 50)},
    }
    scores = [whole]
    attributes = task.card.extraction.attributes
    for name, attribute in attributes.items():
        values = attribute.values if isinstance(attribute.values, list) else [f"{name} {n}" for n in range(OPEN_VALUES)]
        part = score(draw, {**blank, "metric": "ntvd", "attribute": name}, draw.uniform(1, 40))
        scores.append(part | {"detail": attribute_detail(draw, values, groups)})
        detail = {"distinct_raw": 90, "distinct_canonical": 60, "commonest_share": draw.random(), "evenness": 0.8}
        scores.append({**blank, "metric": "diversity", "attribute": name, "value": 3.0, "detail": detail})
    scores.append(score(draw, {**blank, "metric": "refusal_ntvd"}, draw.uniform(0, 4)))
    readings = {name: {"value": 950, "unknown": 20, "none": 20, "unparsed": 10, "error": 0} for name in attributes}
    outcomes = {"ok": 980, "truncated": 10, "empty": 0, "refused": 10, "blocked": 0, "error": 0}
    coverage = {
        "speakers": 45, "clips": 1000, "requests": 1000, "outcomes": outcomes, "readings": readings,
        "items_per_response": dict.fromkeys(attributes, 1.2),
    }  # fmt: skip
    return {
        "task": task.name, "task_digest": task.digest, "variant": "default", "dimension": dimension,
        "groups": dict.fromkeys(groups, coverage), "without_value": 0.05, "reliable": draw.random() > 0.1,
        "warnings": [], "scores": scores,
    }  # fmt: skip


def made_up_runs(folder: Path, models: int, asked: dict[str, Any], results: dict[str, Any]) -> list[Path]:
    draw = random.Random(0)
    tasks = CardIndex().tasks(TASKS)
    paths = []
    for number in range(models):
        for corpus, (dimension, groups) in CORPORA.items():
            path = folder / f"model-{number:03}-{corpus}"
            path.mkdir(parents=True)
            run = copy.deepcopy(asked)
            run["asked"]["model"]["name"] = run["record"]["model"]["model"] = f"model-{number:03}"
            run["asked"]["corpus"] = run["record"]["corpus"] = corpus
            run["asked"]["clips"] = corpus
            found = results | {
                "model": f"model-{number:03}", "corpus": corpus, "simulated": False, "corpus_synthetic": False,
                "hearing_check": "passed", "permutations": PERMUTATIONS,
                "tasks": [task_result(draw, task, dimension, groups) for task in tasks], "variants": [],
            }  # fmt: skip
            (path / "run.json").write_text(json.dumps(run), encoding="utf-8")
            (path / "results.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
            write_sums(RunFolder(path))
            paths.append(path)
    return paths


def first_view(page: Path, ready: str) -> tuple[float, float]:
    """Seconds from opening a page in Chromium to its first contentful paint, and until `ready` is there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto("about:blank")
        tab.goto(page.resolve().as_uri(), wait_until="commit")
        tab.wait_for_selector(ready, timeout=120_000)
        usable = tab.evaluate("performance.now()") / 1000
        painted = tab.evaluate(
            """() => new Promise((done) => new PerformanceObserver((list) =>
                list.getEntriesByName("first-contentful-paint").forEach((entry) => done(entry.startTime)))
                .observe({ type: "paint", buffered: true }))"""
        )
        browser.close()
    return float(painted) / 1000, float(usable)


def timed(*arguments: str | Path) -> tuple[float, float]:
    """How long a command of the harness takes: seconds on the clock, and of the processor where it is busy."""
    begun, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "vibe_harness", *map(str, arguments)], check=False, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return time.perf_counter() - begun, processor


def leaderboard(folder: Path, models: int, asked: dict[str, Any], results: dict[str, Any]) -> None:
    runs = made_up_runs(folder / "runs", models, asked, results)
    took = timed("leaderboard", *runs, "--output", folder / "site")
    files = [path for path in (folder / "site").rglob("*") if path.is_file()]
    whole = sum(path.stat().st_size for path in files) / 1e6
    index = (folder / "site" / "index.html").stat().st_size / 1e6
    model = max(path.stat().st_size for path in (folder / "site" / "models").iterdir()) / 1e6
    painted, usable = first_view(folder / "site" / "index.html", "thead button")
    of = f"leaderboard of {models} models x 5 tasks x 3 corpora"
    tell(f"{of}: built in", took[0], "s", "at most 20", took[0] <= 20, f"{took[1]:.1f} s of processor")
    tell(f"{of}: its first page", index, "MB", "at most 2", index <= 2, f"all files {whole:.2f} MB")
    tell(f"{of}: page of a model", model, "MB", "at most 0.2", model <= 0.2, "the largest")
    tell(f"{of}: first view", painted, "s", "at most 1", painted <= 1, f"can be sorted after {usable:.2f} s")


def run_page(folder: Path, run: RunFolder, readings: int, first: float, most_megabytes: float | None = None) -> None:
    """Write and open the page of a run with so many readings. first: seconds until something is seen, at most."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = random.Random(1)
    words = [" ".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=5)).replace(" ", "") for _ in range(5000)]
    table = pq.read_table(run.observations)
    rows = table.to_pylist()
    requests = list(dict.fromkeys(row["request"] for row in rows))
    answers = {json.loads(line)["request"]: line for line in run.responses.open(encoding="utf-8")}
    many: list[dict[str, Any]] = []
    with run.responses.open("w", encoding="utf-8") as file:
        copies = -(-readings // len(rows))
        for number in range(copies):
            for request in requests:
                answer = json.loads(answers[request]) | {"request": f"{number:08}{request[8:]}"}
                answer["text"] += "\n" + " ".join(draw.choices(words, k=150))
                file.write(json.dumps(answer) + "\n")
            many += [row | {"request": f"{number:08}{row['request'][8:]}"} for row in rows]
    answered = len({row["request"] for row in many[:readings]})
    pq.write_table(pa.Table.from_pylist(many[:readings], schema=table.schema), run.observations)
    write_sums(run)
    output = folder / "report.html"
    took = timed("report", run.path, "--output", output)
    painted, usable = first_view(output, "#list [role=option]")
    of = f"page of a run with {readings:,} readings in {answered:,} answers"
    megabytes = output.stat().st_size / 1e6
    tell(f"{of}: written in", took[0], "s", beside=f"{took[1]:.1f} s of processor, {megabytes:.1f} MB")
    tell(
        f"{of}: first view",
        painted,
        "s",
        f"at most {first:g}",
        painted <= first,
        f"can be filtered after {usable:.2f} s",
    )
    if most_megabytes is not None:
        tell(f"{of}: page", megabytes, "MB", f"at most {most_megabytes:g}", megabytes <= most_megabytes)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--readings", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="10 models and 10,000 readings")
    options = parser.parse_args()
    if options.quick:
        options.models, options.readings = 10, 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked, results = demo_run(folder / "demo")
        leaderboard(folder, options.models, asked, results)
        shutil.copytree(folder / "demo", folder / "usual")
        run_page(folder, RunFolder(folder / "usual"), USUAL_READINGS, 0.3, 1)
        run_page(folder, RunFolder(folder / "demo"), options.readings, 1)
    return status()


if __name__ == "__main__":
    sys.exit(main())
