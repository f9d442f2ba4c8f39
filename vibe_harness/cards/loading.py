"""Finding cards by name, checking them, and binding them to their templates and alias files."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from vibe_harness.cards.digest import digest
from vibe_harness.cards.orders import LETTERS
from vibe_harness.cards.paths import find_file
from vibe_harness.cards.schema import Attribute, Card, ChoicePart, ModelCard, TaskCard
from vibe_harness.cards.spelling import fold
from vibe_harness.cards.templates import TemplateSet
from vibe_harness.cards.yaml_file import CardSource, read_card, read_yaml
from vibe_harness.errors import UserError
from vibe_harness.library import library_root, package_roots
from vibe_harness.records import Option
from vibe_harness.registry import did_you_mean

PROMPT_VARIABLES = frozenset({"text"})
EXTRACTION_VARIABLES = frozenset({"response", "fence", "attributes"})
CHOICE_VARIABLES = frozenset({"options", "spoken"})  # further ones, of choice tasks; `spoken` is the prompt's alone

T = TypeVar("T")
AnyCard = TypeVar("AnyCard", bound=Card)


@dataclass(frozen=True, slots=True)
class AttributeText:
    """What an extraction template is given of an attribute; see `schema.Attribute`."""

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
    aliases: Mapping[str, Mapping[str, str]]  # attribute -> spelling -> canonical value, both as written
    digest: str  # of the card, its templates and its alias files
    offered: tuple[Option, ...] = ()  # of a choice task: placeholders, or those of one request

    @property
    def name(self) -> str:
        return self.card.task

    def prompt(
        self, variant: str, text: str | None, options: Sequence[Option] | None = None, spoken: bool = False
    ) -> str:
        """The words of the task, rendered.

        text: what the clip says, for prompts that quote it. Without it the name is undefined, so that a prompt which
        quotes it is a UserError and never holds the word "None". options: of a choice task, in the order in which they
        are offered; by default placeholders. spoken: they are heard, so that the prompt need not hold them.
        """
        values: dict[str, Any] = {} if text is None else {"text": text}
        if self.card.choice:
            values |= {"options": _lettered(self.offered if options is None else options), "spoken": spoken}
        return self.templates.render(self.card.prompts[variant], values)

    def prompt_source(self, variant: str) -> str:
        """The template of a prompt, as written."""
        name = self.card.prompts[variant]
        return self.templates.sources(name)[name]

    def extraction_prompt(self, response: str) -> str:
        """The extractor's prompt for one response.

        Templates put the response between two lines that hold `fence`, a digest of the response itself, so that no
        response can hold its own end. Markers of a chat ("<|...|>") are taken apart: a tokeniser would obey them.
        """
        values: dict[str, Any] = {
            "response": response.replace("<|", "< |"),
            "fence": digest(response, length=16),
            "attributes": self._attributes,
        }
        if self.card.choice:
            values["options"] = _lettered(self.offered)
        return self.templates.render(self.card.extraction.template, values)

    @cached_property
    def _attributes(self) -> Mapping[str, AttributeText]:
        """The attributes as plain data: a card's own methods can read files and load pickles."""
        return {
            name: AttributeText(spec.values, spec.up_to, spec.label, spec.description)
            for name, spec in self.card.extraction.attributes.items()
        }


def _lettered(options: Sequence[Option]) -> list[dict[str, str]]:
    """What a template is told of options: letter and text, and not what they stand for."""
    return [{"label": option.label, "text": option.text} for option in options]


class CardIndex:
    """The cards of the library and of the user's own folders, found by name.

    A folder holds tasks/, models/ and templates/. A card's name is its file's name.
    """

    def __init__(self, include_paths: Sequence[Path] = ()) -> None:
        for folder in include_paths:
            if not folder.is_dir():
                raise UserError(f"--include-path {folder}: no such folder")
        self.roots = (*include_paths, *package_roots(), library_root())
        self._templates: dict[tuple[Path, ...], TemplateSet] = {}  # one for each list of folders

    def task_files(self) -> dict[str, Path]:
        """Task name -> card file, sorted by name."""
        return dict(sorted(self._files("tasks").items()))

    def model_names(self) -> list[str]:
        return sorted(self._files("models"))

    def tasks(self, patterns: Sequence[str]) -> list[Task]:
        """The tasks that names, globs or card files stand for, each once, in the order given."""
        files = self._files("tasks")
        paths: dict[Path, Path] = {}  # the file itself -> as it was named
        for pattern in patterns:
            if pattern.endswith((".yaml", ".yml")):
                paths.setdefault(Path(pattern).resolve(), Path(pattern))
                continue
            matches = fnmatch.filter(sorted(files), pattern)
            if not matches:
                raise UserError(f"unknown task '{pattern}'. {did_you_mean(pattern, files)}")
            for name in matches:
                paths.setdefault(files[name].resolve(), files[name])
        if not paths:
            raise UserError(f"no task was named. {did_you_mean('', files)}")
        tasks = [self.load_task(path) for path in paths.values()]
        names = [task.name for task in tasks]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"two of the cards asked for are named '{name}': rename one")
        return tasks

    def load_task(self, path: Path) -> Task:
        """Load and check one task card, its templates and alias files."""
        source, card = _load(path, TaskCard, "task", self._root_of(path))
        roots = self._template_roots(path)
        templates = self._templates.setdefault(roots, TemplateSet(roots))
        texts: dict[str, str] = {}
        further = CHOICE_VARIABLES if card.choice else frozenset()
        for variant, name in card.prompts.items():
            known = PROMPT_VARIABLES | further
            texts |= _with_place(source, ["prompts", variant], partial(templates.check, name, known))
        template = card.extraction.template
        texts |= _with_place(
            source, ["extraction", "template"], partial(templates.check, template, EXTRACTION_VARIABLES | further)
        )
        aliases: dict[str, Mapping[str, str]] = {}
        for attribute, spec in card.extraction.attributes.items():
            if spec.aliases:
                place = ["extraction", "attributes", attribute, "aliases"]
                file = _with_place(source, place, partial(find_file, templates.roots, spec.aliases))
                aliases[attribute] = _read_aliases(file, spec)
        if card.choice:
            place = ["choice", "speech"]
            texts |= _with_place(source, place, partial(_label_digests, templates.roots, card.choice))
        content = {
            "card": card.model_dump(mode="json", exclude={"notes"}),
            "order": [list(card.prompts), list(card.extraction.attributes)],  # the first prompt is the default
            "templates": texts,
            "aliases": aliases,
        }
        task = Task(card, path, templates, aliases, digest(content), _sample_options(card.choice))
        for variant in card.prompts:  # what only shows when rendered is told now, before any model starts
            _with_place(source, ["prompts", variant], partial(task.prompt, variant, "words"))
        _with_place(source, ["extraction", "template"], partial(task.extraction_prompt, "words"))
        return task

    def model(self, name: str) -> ModelCard:
        """The model card of that name, or in that file; or, for 'hf:ORG/NAME' and 'vllm:ORG/NAME', one made up.

        A card that is made up has no layout: the prompt is what the model's own chat template makes of it.
        """
        engine, colon, hub_id = name.partition(":")
        if colon and engine in ("hf", "vllm"):
            return ModelCard(model=hub_id.strip("/").replace("/", "--"), backend=engine, id=hub_id)
        if name.endswith((".yaml", ".yml")):
            path = Path(name)
        else:
            files = self._files("models")
            if name not in files:
                raise UserError(f"unknown model '{name}'. {did_you_mean(name, files)}")
            path = files[name]
        return _load(path, ModelCard, "model", self._root_of(path))[1]

    def _files(self, folder: str) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for root in self.roots:
            for path in sorted((root / folder).rglob("*.y*ml")):
                if path.stem in found:
                    raise UserError(
                        f"two cards claim the name '{path.stem}': {found[path.stem]} and {path}: rename one"
                    )
                found[path.stem] = path
        return found

    def _root_of(self, path: Path) -> Path:
        """The folder that a card may include from: its root's, or its own where it lies in none."""
        for root in self.roots:
            if any(path.resolve().is_relative_to((root / folder).resolve()) for folder in ("tasks", "models")):
                return root
        return path.parent

    def _template_roots(self, path: Path) -> tuple[Path, ...]:
        root = self._root_of(path)
        if root not in self.roots:  # a card of its own: templates beside it, or in templates/ beside tasks/
            own = path.parent.parent / "templates" if path.parent.name == "tasks" else path.parent
        else:
            own = root / "templates"
        return tuple(dict.fromkeys([own, library_root() / "templates"]))


def _load(path: Path, model: type[AnyCard], kind: str, within: Path) -> tuple[CardSource, AnyCard]:
    source = read_card(path, within)
    try:
        card = model.model_validate(source.data)
    except ValidationError as error:
        raise UserError("\n".join(_explain(source, model, error))) from None
    name = getattr(card, kind)
    if name != path.stem:
        raise UserError(f"{source.place([kind])}: the card says '{kind}: {name}' but its file is named '{path.stem}'")
    return source, card


def _explain(source: CardSource, model: type[Card], error: ValidationError) -> Iterator[str]:
    """One line a fault: file, line, field, what is wrong."""
    for fault in error.errors():
        keys = [key for key in fault["loc"] if key != "[key]"]
        field = ".".join(str(key) for key in keys)
        place = source.place(keys)
        if fault["type"] == "extra_forbidden":
            known = model.model_fields if len(keys) == 1 else ()
            hint = did_you_mean(str(keys[-1]), known) if known else "Remove it, or mend its spelling."
            yield f"{place}: unknown field '{field}'. {hint}"
        elif fault["type"] == "missing":
            yield f"{place}: the field '{field}' is missing"
        else:
            yield f"{place}: {field}: {fault['msg'].removeprefix('Value error, ')}"


def _sample_options(choice: ChoicePart | None) -> tuple[Option, ...]:
    """Options to render a prompt with where no clip is at hand."""
    names = choice.options if choice else ()
    return tuple(Option(LETTERS[place], name, f"[{name}]") for place, name in enumerate(names))


def label_files(roots: Sequence[Path], choice: ChoicePart) -> dict[str, Path]:
    """Audio file of each spoken letter, and of the word ahead of the question under "". Raises UserError."""
    if choice.speech is None:
        return {}
    names = dict(zip(LETTERS, choice.speech.letters, strict=False))
    if choice.speech.question_label:
        names[""] = choice.speech.question_label
    return {letter: find_file(roots, name) for letter, name in names.items()}


def _label_digests(roots: Sequence[Path], choice: ChoicePart) -> dict[str, str]:
    """A digest of each label's audio file: another voice there makes another task."""
    files = label_files(roots, choice)
    return {f"audio {letter}": hashlib.sha256(path.read_bytes()).hexdigest() for letter, path in files.items()}


def _with_place(source: CardSource, keys: Sequence[str], check: Callable[[], T]) -> T:
    try:
        return check()
    except UserError as error:
        raise UserError(f"{source.place(keys)}: {error}") from None


def _read_aliases(path: Path, attribute: Attribute) -> dict[str, str]:
    """Spelling -> canonical value, both as written.

    Raises UserError where one spelling has two values, or aliases chain, once case, punctuation and number are folded;
    and where a canonical value is not on a closed attribute's list.
    """
    source = read_yaml(path)
    taken: dict[str, str] = {}  # folded spelling -> canonical value
    for canonical, spellings in source.data.items():
        if not isinstance(spellings, list) or not all(isinstance(s, str) for s in [canonical, *spellings]):
            raise UserError(f"{source.place([str(canonical)])}: write it as 'canonical value: [spelling, spelling]'")
        if attribute.values != "open" and canonical not in attribute.values:
            raise UserError(
                f"{source.place([canonical])}: '{canonical}' is not one of the card's values: "
                f"{', '.join(attribute.values)}"
            )
        _claim(source, taken, canonical, canonical)
    aliases: dict[str, str] = {}
    for canonical, spellings in source.data.items():
        for spelling in spellings:
            _claim(source, taken, spelling, canonical)
            aliases[spelling] = canonical
    return aliases


def _claim(source: CardSource, taken: dict[str, str], spelling: str, canonical: str) -> None:
    folded = fold(spelling)
    if not folded:
        raise UserError(f"{source.place([canonical])}: '{spelling}' holds no letter or digit: remove it")
    if folded in taken:
        other = taken[folded]
        what = "is itself the canonical value" if fold(other) == folded else "already stands for"
        raise UserError(
            f"{source.place([canonical])}: '{spelling}' {what} '{other}' (case, punctuation and number make no "
            "difference): remove it here or there"
        )
    taken[folded] = canonical
