"""Studies: models, tasks and corpora in one file. Each combination is a cell; cells can run on several machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from vibe_harness.backends.protocol import with_overrides
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import Card, Lax, ModelCard, Name
from vibe_harness.cards.validating import named_card
from vibe_harness.cards.yaml_file import read_yaml
from vibe_harness.corpora.registry import SUFFIXES, find_corpus
from vibe_harness.errors import UserError
from vibe_harness.extraction.opening import find_extractor
from vibe_harness.planning.config import RunConfig, RunOption, options
from vibe_harness.planning.prepare import default_extractor, run_model
from vibe_harness.records import Reading
from vibe_harness.store.responses import count_answers
from vibe_harness.store.results import Results, read_verified_results
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.store.run_tables import count_requests


class StudyModel(Card):
    """A model of a study, with its own arguments."""

    model: str = Field(min_length=1, description="model card: a name, or a YAML file")
    name: Name | None = Field(None, description="name of its folder, by default that of the card")
    model_args: dict[str, Any] = Field({}, description="as --model-args")

    @property
    def label(self) -> str:
        path = Path(self.model)
        own = path.stem if path.suffix in (".yaml", ".yml") else path.name  # qwen2.5-omni-3b is a name to its end
        return self.name or own.replace(":", "-")


class Study(Card):
    """A study. Every model runs every task over every corpus."""

    study: Name
    description: str = ""
    models: list[str | StudyModel] = Field(min_length=1)
    tasks: list[str] = Field(min_length=1, description="names, globs or YAML files")
    corpora: list[str] = Field(min_length=1, description="names or manifests")

    def options(self) -> dict[str, Any]:
        """The options of a run that the study sets for all of its runs."""
        return {option.name: getattr(self, option.name) for option in _OPTIONS}

    def settings(self) -> dict[str, Any]:
        """The settings that all cells share. They must be the same in all shards of a study."""
        return self.model_dump(mode="json", exclude={"description", "models", "tasks", "corpora", "include_path"})


def _field_of(option: RunOption) -> tuple[Any, Any]:
    """Type and default of the field of a study file that sets an option of a run."""
    bounds = {"ge": option.least} if option.kind == "integer" else {"gt": option.above} if option.above else {}
    kinds: dict[str, Any] = {
        "text": str, "texts": list[str], "path": Annotated[Path, Lax], "paths": list[Annotated[Path, Lax]],
        "mapping": dict[str, Any], "choice": Literal[option.choices], "flag": bool, "integer": int, "number": float,
    }  # fmt: skip
    kind = kinds[option.kind]
    if option.kind in ("texts", "paths"):
        return kind, Field(default_factory=list, description=f"as {option.flag}")
    kind = kind | None if option.default is None else kind
    return kind, Field(option.default, description=f"as {option.flag}", **bounds)


_OPTIONS = tuple(option for option in options() if option.study)
_FIELDS: dict[str, Any] = {option.name: _field_of(option) for option in _OPTIONS}
_STUDY_FILE = create_model("Study", __base__=Study, **_FIELDS)
"""The schema of a study file: the fields of `Study`, and every run option that applies to all runs."""


@dataclass(frozen=True)
class StudyCell:
    """One model, one task, one corpus: a run folder of its own."""

    study: Study
    model: StudyModel
    task: str  # name of the task card
    task_card: str  # as the study names it
    corpus: str
    folder: Path

    @property
    def name(self) -> str:
        return "/".join(self.folder.parts[-3:])

    def config(self) -> RunConfig:
        return RunConfig(
            self.model.model, [self.task_card], self.corpus, model_args=self.model.model_args,
            output_path=self.folder, label=self.model.name, **self.study.options(),
        )  # fmt: skip


class CellState(StrEnum):
    """State of a cell."""

    DONE = "done"
    RUNNING = "running"  # another process has locked its folder
    FAILED = "failed"
    LEFT = "left"


@dataclass(frozen=True)
class CellProgress:
    """Progress of a cell. why: the reason of a failure."""

    cell: StudyCell
    state: CellState
    answered: int
    planned: int | None  # None if it was never started
    why: str | None = None
    reliable: bool = True  # False where it is done and a score of it is not reliable


def read_study(path: Path) -> Study:
    """Read a study file. Paths in it are relative to it. Raises UserError with file and line of each error."""
    source = read_yaml(path)
    study = named_card(source, _STUDY_FILE, "study")

    def beside(name: str) -> str:
        return str(path.parent / name) if Path(name).suffix and (path.parent / name).is_file() else name

    models = [StudyModel(model=one) if isinstance(one, str) else one for one in study.models]
    return study.model_copy(
        update={
            "models": [one.model_copy(update={"model": beside(one.model)}) for one in models],
            "tasks": [beside(name) for name in study.tasks],
            "corpora": [beside(name) for name in study.corpora],
            "include_path": [path.parent / folder for folder in study.options()["include_path"]],
        }
    )


def cells_of(study: Study, output: Path) -> list[StudyCell]:
    """All cells, sorted by model (so that each model is loaded once) and then by corpus.

    Raises UserError for an unknown model, argument or task, and if two models or two corpora have the same name.
    """
    index = CardIndex(study.options()["include_path"])
    models = [one for one in study.models if isinstance(one, StudyModel)]
    for one in models:
        with_overrides(index.model(one.model), one.model_args)
    corpora = {_corpus_label(name): name for name in study.corpora}
    for what, labels, given in (
        ("models", {one.label for one in models}, models),
        ("corpora", set(corpora), study.corpora),
    ):
        if len(labels) < len(given):
            raise UserError(f"study '{study.study}': two of its {what} have one name: rename one of them")
    tasks = index.tasks(study.tasks)
    return [
        StudyCell(study, model, task.name, str(task.path), corpus, output / model.label / label / task.name)
        for model in models
        for label, corpus in corpora.items()
        for task in tasks
    ]


def engine_cards(cells: Sequence[StudyCell]) -> list[ModelCard]:
    """The cards of the models and the extractors of some cells, each once."""
    if not cells:
        return []
    asked = cells[0].study.options()
    index = CardIndex(asked["include_path"])
    kinds = {task.card.kind: task for task in index.tasks(sorted({cell.task_card for cell in cells}))}
    models = [run_model(cell.config(), index) for cell in {cell.model.label: cell for cell in cells}.values()]
    extractors = {asked["extractor"] or default_extractor(model, [task]) for model in models for task in kinds.values()}
    readers = [find_extractor(name, index) for name in sorted(extractors)]
    return [*models, *(card for card in readers if card is not None)]


def _corpus_label(name: str) -> str:
    path = Path(name)
    if path.suffix.lower() not in SUFFIXES:
        return path.name
    return path.resolve().parent.name if path.stem == "manifest" else path.stem


def shard_of(cells: Sequence[StudyCell], number: int, count: int) -> list[StudyCell]:
    """The cells of shard `number` (from 1) of `count`.

    Shards have about equal numbers of clips, and consecutive cells, so that few models are loaded. The result depends
    only on the study and its corpora, so machines need not communicate.
    """
    sizes = {corpus: len(find_corpus(corpus).clips) for corpus in {cell.corpus for cell in cells}}
    whole, before, found = sum(sizes[cell.corpus] for cell in cells), 0, []
    for cell in cells:
        middle = before + sizes[cell.corpus] / 2
        if int(middle * count / whole) + 1 == number:
            found.append(cell)
        before += sizes[cell.corpus]
    return found


def progress_of(cell: StudyCell, failures: Mapping[str, str]) -> CellProgress:
    """The progress of a cell, read from its folder."""
    folder = RunFolder(cell.folder)
    planned = count_requests(folder.requests)
    try:
        answered = count_answers(folder.responses)
    except UserError as error:  # for example, a file has the name of the folder
        return CellProgress(cell, CellState.FAILED, 0, planned, str(error))
    results = _results(cell, folder)
    if planned is not None and answered >= planned and results is not None:
        return CellProgress(cell, CellState.DONE, answered, planned, reliable=results.reliable)
    if folder.is_locked():
        return CellProgress(cell, CellState.RUNNING, answered, planned)
    why = failures.get(cell.name)
    return CellProgress(cell, CellState.FAILED if why else CellState.LEFT, answered, planned, why)


def _results(cell: StudyCell, folder: RunFolder) -> Results | None:
    """The folder's results if they are current, use the study's settings and have no failed extraction; else None."""
    try:
        results = read_verified_results(folder)
    except UserError:
        return None
    unread = sum(
        readings[Reading.ERROR]
        for task in results.tasks
        for group in task.groups.values()
        for readings in group.readings.values()
    )
    asked = cell.study.options()
    alike = (results.tau, results.permutations) == (asked["tau"], asked["permutations"])
    return results if alike and not unread else None
