"""Find cards by name, check them, and load their templates and alias files."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from vibe_harness.cards.aliases import read_aliases
from vibe_harness.cards.digest import digest
from vibe_harness.cards.faults import CardError, Faults
from vibe_harness.cards.paths import find_file
from vibe_harness.cards.schema import ModelCard, TaskCard
from vibe_harness.cards.task_kinds import KINDS
from vibe_harness.cards.templates import TemplateSet
from vibe_harness.cards.validating import named_card, without_unknown_fields
from vibe_harness.cards.yaml_file import CardSource, read_card
from vibe_harness.errors import UserError
from vibe_harness.library import library_root, package_roots
from vibe_harness.records import Option
from vibe_harness.registry import did_you_mean

PROMPT_VARIABLES = frozenset({"text"})
EXTRACTION_VARIABLES = frozenset({"response", "fence", "attributes"})

ENGINES = ("hf", "vllm")
"""Engines that run a model without a card of its own: hf:ORG/NAME."""
LIST_TASKS, LIST_MODELS = "vibe-harness tasks list", "vibe-harness models list"


@dataclass(frozen=True, slots=True)
class AttributeText:
    """The fields of an attribute that extraction templates can use; see `schema.Attribute`."""

    values: Literal["open"] | list[str]
    up_to: int
    label: str | None
    description: str | None


@dataclass(frozen=True, eq=False)
class Task:
    """A task card with its templates and aliases, ready to use."""

    card: TaskCard
    path: Path
    templates: TemplateSet
    sources: Mapping[str, str]  # name -> text of every template that the prompts and the extraction use
    aliases: Mapping[str, Mapping[str, str]]  # attribute -> spelling -> canonical value, both as written
    digest: str  # of the card, its templates and its alias files
    prompt_digest: str  # of the card and its templates: everything that can change an answer
    offered: tuple[Option, ...] = ()  # options of the request that a choice task is bound to
    context: Mapping[str, Any] = field(default_factory=dict)  # template variables of the task's kind

    @property
    def name(self) -> str:
        return self.card.task

    def prompt(self, variant: str, text: str | None, context: Mapping[str, Any] | None = None) -> str:
        """Render a prompt of the task.

        variant: name of the prompt. text: transcript of the clip. If None, the variable `text` is undefined and a
        prompt that uses it raises UserError. context: template variables of the task's kind (default: placeholders).
        """
        values: dict[str, Any] = {} if text is None else {"text": text}
        return self.templates.render(self.card.prompts[variant], {**values, **(context or self.context)})

    def prompt_source(self, variant: str) -> str:
        """The template text of a prompt."""
        name = self.card.prompts[variant]
        return self.templates.sources(name)[name]

    def extraction_prompt(self, response: str) -> str:
        """Render the extractor's prompt for one response.

        Templates put the response between two lines that contain `fence`. It is a digest of the response, so a response
        cannot contain its own closing line. Chat markers ("<|...|>") are broken up, because a tokeniser would
        interpret them.
        """
        values: dict[str, Any] = {
            "response": response.replace("<|", "< |"),
            "fence": digest(response, length=16),
            "attributes": self._attributes,
        }
        return self.templates.render(self.card.extraction.template, {**values, **self.context})

    @cached_property
    def _attributes(self) -> Mapping[str, AttributeText]:
        """The attributes as plain data. Templates get no pydantic models, whose methods can read files."""
        return {
            name: AttributeText(spec.values, spec.up_to, spec.label, spec.description)
            for name, spec in self.card.extraction.attributes.items()
        }


def _name_of(hub_id: str) -> str:
    """The name of the card of a model on the hub, "org--name", or in a folder, "run-3--checkpoint-500"."""
    path = Path(hub_id).expanduser()
    parts = path.resolve().parts[-2:] if path.is_dir() else hub_id.strip("/").split("/")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "--".join(parts)).strip("-._")[-100:] or "model"


def _check_kind(card: TaskCard) -> None:
    """Raise UserError if the card's kind is unknown or does not accept the card."""
    try:
        KINDS.get(card.kind).check_card(card)
    except ValueError as error:
        raise UserError(str(error)) from None


def task_digests(
    card: Mapping[str, Any], sources: Mapping[str, str], aliases: Mapping[str, Mapping[str, str]]
) -> tuple[str, str]:
    """Two digests (32 hex digits) of a task: of everything, and of everything except the aliases.

    The second covers what can change an answer. card: its fields without the notes. sources: template -> text.
    """
    question = {
        "card": dict(card),
        "order": [list(card["prompts"]), list(card["extraction"]["attributes"])],  # the first prompt is the default
        "templates": dict(sources),
    }
    return digest({**question, "aliases": {name: dict(own) for name, own in aliases.items()}}), digest(question)


class CardIndex:
    """Finds cards by name, in the built-in library, in installed packages and in the user's folders.

    Each folder contains tasks/, models/ and templates/. A card is named after its file.
    """

    def __init__(self, include_paths: Sequence[Path] = ()) -> None:
        for folder in include_paths:
            if not folder.is_dir():
                raise UserError(f"--include-path {folder}: no such folder")
        self.roots = (*include_paths, *package_roots(), library_root())
        self._hint = "" if include_paths else " Cards of your own: --include-path FOLDER."
        self._templates: dict[tuple[Path, ...], TemplateSet] = {}  # one for each list of folders
        self._tasks: dict[Path, Task] = {}  # those without errors, by resolved path

    def task_files(self) -> dict[str, Path]:
        """Task name -> card file, sorted by name."""
        return dict(sorted(self._files("tasks").items()))

    def model_names(self) -> list[str]:
        return sorted(self._files("models"))

    def tasks(self, patterns: Sequence[str]) -> list[Task]:
        """Load the tasks that match names, globs or card files. Each task is loaded once, in the order given."""
        files = self._files("tasks")
        paths: dict[Path, Path] = {}  # resolved path -> path as given
        for pattern in patterns:
            if pattern.endswith((".yaml", ".yml")):
                paths.setdefault(Path(pattern).resolve(), Path(pattern))
                continue
            for path in self.matching(pattern):
                paths.setdefault(path.resolve(), path)
        if not paths:
            raise UserError(f"no task was given. {did_you_mean('', files, LIST_TASKS)}")
        tasks = [self.load_task(path) for path in paths.values()]
        names = [task.name for task in tasks]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"two of the task cards are named '{name}': rename one")
        return tasks

    def matching(self, pattern: str) -> list[Path]:
        """The task cards that match a name or a glob, sorted by name. Raises UserError if none does."""
        files = self._files("tasks")
        matches = fnmatch.filter(sorted(files), pattern)
        if not matches:
            raise UserError(f"unknown task '{pattern}'. {did_you_mean(pattern, files, LIST_TASKS)}{self._hint}")
        return [files[name] for name in matches]

    def load_task(self, path: Path) -> Task:
        """Load and check one task card, its templates and alias files, once. Raises CardError with all errors."""
        known = self._tasks.get(path.resolve())
        if known is not None:
            return known
        task, faults = self.examine_task(path)
        if task is None or faults:
            raise CardError(faults)
        return self._tasks.setdefault(path.resolve(), task)

    def examine_task(self, path: Path) -> tuple[Task | None, list[str]]:
        """Load a task card and collect its errors.

        Returns the task and the errors. The task is None if the card's fields are invalid. A task with errors can be
        inspected but must not be run.
        """
        faults = Faults()
        with faults.at():
            source = read_card(path, self.root_of(path))
        if faults.found:
            return None, faults.found
        card: TaskCard | None = None
        with faults.at():
            card = named_card(source, TaskCard, "task")
        if faults.found:
            card = without_unknown_fields(source.data, TaskCard)
        if card is None:
            return None, faults.found
        known = len(faults.found)
        with faults.at(source.location(["kind"])):
            _check_kind(card)
        if len(faults.found) > known:  # templates cannot be checked without the kind
            return None, faults.found
        return self._bind(source, card, faults), faults.found

    def _bind(self, source: CardSource, card: TaskCard, faults: Faults) -> Task:
        """Load the templates and alias files of a card."""
        roots = self._template_roots(source.path)
        templates = self._templates.setdefault(roots, TemplateSet(roots))
        texts: dict[str, str] = {}
        kind = KINDS.get(card.kind)
        for variant, name in card.prompts.items():
            with faults.at(source.location(["prompts", variant])):
                texts |= templates.check(name, PROMPT_VARIABLES | kind.variables)
        with faults.at(source.location(["extraction", "template"])):
            texts |= templates.check(card.extraction.template, EXTRACTION_VARIABLES | kind.variables)
        with faults.at(source.location([card.kind])):
            texts |= kind.sources(templates.roots, card)
        aliases: dict[str, Mapping[str, str]] = {}
        for attribute, spec in card.extraction.attributes.items():
            if spec.aliases:
                with faults.at(source.location(["extraction", "attributes", attribute, "aliases"])):
                    aliases[attribute] = read_aliases(find_file(templates.roots, spec.aliases), spec)
        # A card without settings keeps the digest that it had before this field was added.
        left_out = {"notes"} if card.settings is not None else {"notes", "settings"}
        fields = card.model_dump(mode="json", exclude=left_out)
        digests = task_digests(fields, texts, aliases)
        task = Task(card, source.path, templates, texts, aliases, *digests, context=kind.context(card))
        if not faults.found:  # some errors only show in rendering: find them before a model starts
            for variant in card.prompts:
                with faults.at(source.location(["prompts", variant])):
                    task.prompt(variant, "words")
            with faults.at(source.location(["extraction", "template"])):
                task.extraction_prompt("words")
        return task

    def model(self, name: str) -> ModelCard:
        """Load the model card with this name, or from this file.

        'hf:ORG/NAME' and 'vllm:ORG/NAME' create a card without a layout: the model's chat template formats the prompt.
        So do 'hf:FOLDER' and 'vllm:FOLDER', whose model is named after the folder and the one that it is in.
        """
        engine, _, hub_id = name.partition(":")
        if engine in ENGINES and hub_id.strip("/"):
            return ModelCard(model=_name_of(hub_id), backend=engine, id=hub_id)
        if name.endswith((".yaml", ".yml")):
            path = Path(name)
        else:
            files = self._files("models")
            if name not in files and engine in ENGINES:
                raise UserError(
                    f"'{name}' is an engine, not a model. To run a model of the hub or of a folder with it: "
                    f"{engine}:ORG/NAME, as in {engine}:Qwen/Qwen2-Audio-7B-Instruct"
                )
            if name not in files:
                raise UserError(f"unknown model '{name}'. {did_you_mean(name, files, LIST_MODELS)}{self._hint}")
            path = files[name]
        return named_card(read_card(path, self.root_of(path)), ModelCard, "model")

    def _files(self, folder: str) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for root in self.roots:
            for path in sorted((root / folder).rglob("*.y*ml")):
                if path.stem in found:
                    raise UserError(f"two cards are named '{path.stem}': {found[path.stem]} and {path}: rename one")
                found[path.stem] = path
        return found

    def root_of(self, path: Path) -> Path:
        """The folder that a card may include files from: its root folder, or its own folder if it is in no root."""
        for root in self.roots:
            if any(path.resolve().is_relative_to((root / folder).resolve()) for folder in ("tasks", "models")):
                return root
        return path.parent

    def _template_roots(self, path: Path) -> tuple[Path, ...]:
        root = self.root_of(path)
        if root not in self.roots:  # a single card: its templates are beside it, or in templates/ beside tasks/
            own = path.parent.parent / "templates" if path.parent.name == "tasks" else path.parent
        else:
            own = root / "templates"
        return tuple(dict.fromkeys([own, library_root() / "templates"]))
