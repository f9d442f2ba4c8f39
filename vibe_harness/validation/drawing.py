"""Draw a sample: a number of responses for each model, task and dimension, as in VIBE (arXiv 2604.17248)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vibe_harness.analysis.model_labels import disambiguate
from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.errors import EngineError, UserError
from vibe_harness.extraction.observe import observations
from vibe_harness.extraction.opening import find_extractor, open_extractor
from vibe_harness.progress import Progress
from vibe_harness.records import GROUP_PREFIX, Clip, Outcome, Reading, RequestKey, Response
from vibe_harness.store.checksums import check_sums, run_digest
from vibe_harness.store.request_ids import RequestTable
from vibe_harness.store.responses import FinalResponses
from vibe_harness.store.run_folder import RunFolder, RunRecord
from vibe_harness.validation.sample import FORMAT, Claim, Sample, SampledResponse, SampledRun, SampledTask

if TYPE_CHECKING:
    import pyarrow as pa

PER_CELL = 5
Said = tuple[Reading, tuple[str, ...], tuple[str, ...]]  # reading, raw, canonical values


class SampleCell(NamedTuple):
    """What so many responses are drawn for. model: its name; identity: of the model with all its arguments."""

    model: str
    identity: str
    task: str
    dimension: str


@dataclass(frozen=True)
class _Run:
    folder: RunFolder
    record: RunRecord
    model: Mapping[str, Any]  # what makes it another model than others of its name
    keys: Mapping[str, RequestKey]  # request -> task, variant, clip; those with a text that was read
    groups: Mapping[str, Mapping[str, str]]  # dimension -> request -> group


@dataclass(frozen=True)
class _Picked:
    """A response that was drawn, on its way to `SampledResponse`."""

    run: int
    request: str
    cell: SampleCell
    text: str
    said: Mapping[str, Mapping[str, Said]]  # attribute -> extractor -> what it says


def draw(
    runs: Sequence[Path],
    folder: Path,
    *,
    per_cell: int = PER_CELL,
    seed: int = 0,
    extractors: Sequence[str] = (),
    include_path: Sequence[Path] = (),
    progress: Progress | None = None,
) -> tuple[Sample, list[str]]:
    """Draw `per_cell` responses for each model, task and dimension of finished runs. Also returns notes for the user.

    Only responses with text are drawn, each at most once. The draw depends only on the seed, the cell and the
    responses. folder: where the sample will be written. extractors: also read the drawn responses, for comparison with
    the run's own; they need the unchanged task cards of the runs. include_path: folders of the user's cards.

    Raises UserError if a folder is not a finished run, if a task differs between runs, or if an extractor or card is
    not available; EngineError if an extractor's engine fails.
    """
    if not runs:
        raise UserError("name at least one run folder")
    index = CardIndex(include_path)
    for name in extractors:
        find_extractor(name, index)
    progress = progress or Progress()
    opened = []
    with progress.stage("reading runs", len(runs)) as tick:
        for path in runs:
            opened.append(_open(path))
            tick(1)
    tasks = _tasks(opened)
    cards = _cards(index, tasks) if extractors else {}
    drawn, short = _choose(opened, per_cell, seed)
    if not drawn:
        raise UserError("none of these runs has a response that holds text and was read")
    picked = [one for number, run in enumerate(opened) for one in _details(number, run, drawn)]
    for name in extractors:
        picked = _read_by(name, index, opened, picked, cards, progress)
    picked.sort(key=lambda one: digest([seed, "order", one.request]))
    labels = _labels(opened)
    width = max(3, len(str(len(picked))))
    sample = Sample(
        format=FORMAT,
        id="",
        seed=seed,
        per_cell=per_cell,
        runs=[_sampled(run, folder, labels[digest(run.model)]) for run in opened],
        tasks=tasks,
        extractors=list(dict.fromkeys(map(_label, [*(run.record.extractor for run in opened), *extractors]))),
        responses=[_finished(f"r{number:0{width}}", one, opened, seed) for number, one in enumerate(picked, 1)],
    )
    if not any(sample.items()):
        raise UserError("the extractor could not be read for any of the drawn responses: there is nothing to judge")
    return sample.sealed(), short + _unread(sample)


def _open(path: Path) -> _Run:
    """Open a finished run and find the responses that can be drawn."""
    folder = RunFolder(path)
    record = folder.record()
    columns = [GROUP_PREFIX + name for name in record.dimensions]
    table = _read(folder, ["request", "task", "variant", "clip", *columns])
    check_sums(folder)
    rows = table.to_pandas().drop_duplicates("request").astype(object)
    asked = {
        row[0]: RequestKey(*row[1:])
        for row in rows[["request", "task", "variant", "clip"]].itertuples(index=False, name=None)
    }
    finals = FinalResponses(folder.responses, RequestTable(asked.items()))
    held = {stored.request for stored in finals if stored.readable}
    groups = {
        name: dict(rows.loc[rows[GROUP_PREFIX + name].notna(), ["request", GROUP_PREFIX + name]].to_numpy())
        for name in record.dimensions
    }
    model = folder.identity()["model"]
    return _Run(folder, record, model, {request: place for request, place in asked.items() if request in held}, groups)


def _read(folder: RunFolder, columns: list[str], requests: Collection[str] | None = None) -> pa.Table:
    """Columns of the observations, of some requests or of all."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    path = folder.observations
    if not path.is_file():
        raise UserError(f"{folder.path}: not finished: run the command that started it again")
    chosen = None if requests is None else pc.field("request").isin(pa.array(sorted(requests), pa.string()))
    try:
        return pq.read_table(path, columns=columns, filters=chosen, use_threads=False)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError):
        raise UserError(f"{path}: not the observations of a run, or damaged: run its command again") from None


def _tasks(runs: Sequence[_Run]) -> dict[str, SampledTask]:
    tasks: dict[str, SampledTask] = {}
    for run in runs:
        for asked in run.record.tasks:
            name = asked.card.task
            known = tasks.setdefault(name, SampledTask(
                digest=asked.digest, prompts={}, attributes=asked.card.extraction.attributes,
            ))  # fmt: skip
            if known.digest != asked.digest:
                raise UserError(
                    f"{run.folder.path}: asked another version of the task '{name}' than the runs before it: sample "
                    "them apart"
                )
            tasks[name] = replace(known, prompts={**known.prompts, **asked.prompts})
    return tasks


def _cards(index: CardIndex, tasks: Mapping[str, SampledTask]) -> dict[str, Task]:
    """The task cards for further extractors. Raises UserError if a card is missing or changed since the runs."""
    files = index.task_files()
    cards = {}
    for name, asked in tasks.items():
        card = index.load_task(files[name]) if name in files else None
        if card is None or card.digest != asked.digest:
            raise UserError(
                f"the card of the task '{name}' is not at hand as the runs had it, and another extractor needs it: "
                "name its folder with --include-path"
            )
        cards[name] = card
    return cards


def _choose(runs: Sequence[_Run], per_cell: int, seed: int) -> tuple[dict[str, SampleCell], list[str]]:
    """Request -> the cell it was drawn for, and a note for each cell with too few responses."""
    cells: dict[SampleCell, list[str]] = defaultdict(list)
    labels = _labels(runs)
    for run in runs:
        model = run.record.model.model, digest(run.model)
        for dimension in run.record.dimensions:
            for asked in run.record.tasks:
                cells.setdefault(SampleCell(*model, asked.card.task, dimension), [])  # an empty cell is one too
            for request in run.groups[dimension]:
                if request in run.keys:
                    cells[SampleCell(*model, run.keys[request].task, dimension)].append(request)
    drawn: dict[str, SampleCell] = {}
    short = []
    for cell, requests in sorted(cells.items()):
        free = sorted(set(requests) - drawn.keys(), key=partial(_drawn_by, seed, cell))
        drawn |= dict.fromkeys(free[:per_cell], cell)
        if len(free) < per_cell:
            what = f"{labels[cell.identity]}, {cell.task} by {cell.dimension}"
            short.append(f"{what}: {len(free)} responses to draw from instead of {per_cell}")
    return drawn, short


def _drawn_by(seed: int, cell: SampleCell, request: str) -> str:
    """Sort key for drawing the responses of a cell. Request ids already differ between models of the same name."""
    return digest([seed, cell.model, cell.task, cell.dimension, request])


def _labels(runs: Sequence[_Run]) -> dict[str, str]:
    """Label of each model, by the digest of its identity."""
    return disambiguate({digest(run.model): (run.record.model.model, run.model) for run in runs})


def _details(number: int, run: _Run, drawn: dict[str, SampleCell]) -> Iterator[_Picked]:
    """The drawn responses of one run. Removes them from `drawn`, so that a response in two runs counts once."""
    own = {request: drawn.pop(request) for request in run.keys if request in drawn}
    said: dict[str, dict[str, dict[str, Said]]] = {request: {} for request in own}
    columns = ["request", "attribute", "reading", "raw", "values"]
    for row in _read(run.folder, columns, own).to_pylist():
        words = (Reading(row["reading"]), tuple(row["raw"]), tuple(row["values"]))
        said[row["request"]][row["attribute"]] = {_label(run.record.extractor): words}
    planned = RequestTable((request, run.keys[request]) for request in own)
    for stored in FinalResponses(run.folder.responses, planned):
        yield _Picked(number, stored.request, own[stored.request], stored.response().text, said[stored.request])


def _read_by(
    name: str,
    index: CardIndex,
    runs: Sequence[_Run],
    picked: Sequence[_Picked],
    cards: Mapping[str, Task],
    progress: Progress,
) -> list[_Picked]:
    """Add the readings of another extractor to the responses, except to those that it has read in its own runs."""
    label = _label(name)
    found = {one.request: one for one in picked}
    waiting = {one.request: one for one in picked if _label(runs[one.run].record.extractor) != label}
    if not waiting:
        raise UserError(f"--extractor {name}: it is the one that read these runs: name another to compare it with")
    responses = {request: Response(request, Outcome.OK, one.text) for request, one in waiting.items()}
    stage = progress.stage(f"reading by {label}", len(waiting))
    with closing(open_extractor(name, index, list(cards.values()))) as extractor, stage as tick:
        asked = [(cards[one.cell.task], responses[request]) for request, one in waiting.items()]
        for extraction in extractor.extract(asked):
            one = waiting.pop(extraction.request, None)
            if one is None:
                raise EngineError(f"the extractor read response {extraction.request} twice, or without being asked")
            said = {attribute: dict(by) for attribute, by in one.said.items()}
            task, response = cards[one.cell.task], responses[one.request]
            for seen in observations(task, "", Clip("", "", "", {}), response, extraction):
                said.setdefault(seen.attribute, {})[label] = (seen.reading, seen.raw, seen.values)
            found[one.request] = replace(one, said=said)
            tick(1)
    if waiting:
        raise EngineError(f"the extractor '{label}' left {len(waiting)} responses unread: run the same command again")
    return [found[one.request] for one in picked]


def _label(extractor: str) -> str:
    """An extractor by its name, also where its card was named by its file."""
    return Path(extractor).stem if extractor.endswith((".yaml", ".yml")) else extractor


def _unread(sample: Sample) -> list[str]:
    """A note for each extractor with failed readings."""
    claims = [claim for response in sample.responses for own in response.claims.values() for claim in own]
    counts = {name: sum(name in one.extractors and not one.judged for one in claims) for name in sample.extractors}
    return [f"{name}: {count} readings failed, and cannot be judged" for name, count in counts.items() if count]


def _finished(id: str, one: _Picked, runs: Sequence[_Run], seed: int) -> SampledResponse:
    run = runs[one.run]
    task, dimension = one.cell.task, one.cell.dimension
    asked = next(asked for asked in run.record.tasks if asked.card.task == task)
    return SampledResponse(
        id=id,
        run=one.run,
        request=one.request,
        task=task,
        variant=run.keys[one.request][1],
        dimension=dimension,
        group=run.groups[dimension][one.request],
        text=one.text,
        claims={
            name: _claims(one.said[name], asked.aliases.get(name, {}), [seed, one.request, name])
            for name in asked.card.extraction.attributes
        },
    )


def _claims(said: Mapping[str, Said], aliases: Mapping[str, str], salt: Sequence[object]) -> list[Claim]:
    """The claims of the extractors on one attribute, in an order that does not reveal the extractor."""
    alike: dict[tuple[Reading, frozenset[str]], list[str]] = defaultdict(list)
    for extractor, (reading, _, values) in said.items():
        alike[reading, frozenset(values)].append(extractor)
    claims = []
    for extractors in alike.values():
        reading, raw, values = said[extractors[0]]
        spellings = [spelling for spelling, value in aliases.items() if value in values]
        claims.append(
            Claim(extractors=extractors, reading=reading, raw=list(raw), values=list(values), spellings=spellings)
        )
    return sorted(claims, key=lambda claim: digest([*salt, str(claim.reading), sorted(claim.values)]))


def _sampled(run: _Run, folder: Path, label: str) -> SampledRun:
    path, base = run.folder.path.resolve(), folder.resolve()
    return SampledRun(
        path=relpath(path, base) if path.anchor == base.anchor else str(path),  # Windows has drives
        digest=run_digest(run.folder),
        model=label,
        corpus=run.record.corpus,
        simulated=run.record.model.simulated,
        extractor=_label(run.record.extractor),
    )
