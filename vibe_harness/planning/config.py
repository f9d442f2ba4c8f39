"""The options of a run, each declared once.

The command line, `vibe_harness.evaluate`, run.json, study files and the reference all follow from `RunConfig`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from vibe_harness.errors import UserError, check_number
from vibe_harness.modality import Modality
from vibe_harness.progress import Progress
from vibe_harness.records import AnswerBy, LongClips
from vibe_harness.registry import did_you_mean

Kind = Literal["text", "texts", "path", "paths", "mapping", "choice", "flag", "integer", "number"]
ASKED, SCORED, LIMITS, PLACES = "What is asked", "How it is scored", "Checks and limits", "Where it runs"
GROUPS = (ASKED, SCORED, LIMITS, PLACES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOption:
    """One option of a run: its name on the command line, help, group and allowed values."""

    name: str  # of the field
    help: str
    group: str
    flag: str  # as typed on the command line: "--dimension"
    kind: Kind
    default: Any
    required: bool
    choices: tuple[str, ...] = ()
    least: int | None = None
    above: float | None = None
    metavar: str | None = None
    identity: bool = False
    """Whether it changes responses. A run with another value is then another run."""
    study: bool = True
    """Whether a study file can set it for all its runs."""

    def check(self, value: Any) -> None:
        """Raise UserError, with the option's name on the command line, if the value is not allowed."""
        if value is None:
            return
        if self.kind == "integer" and self.least is not None:
            check_number(self.flag, value, least=self.least)
        elif self.kind == "number" and self.above is not None and not self.above < value < math.inf:
            raise UserError(f"{self.flag}: a number above {self.above:g} is needed, not {value:g}")
        elif self.kind == "choice" and value not in self.choices:
            raise UserError(f"{self.flag} {value}: unknown value. {did_you_mean(str(value), self.choices)}")


def _option(help: str, group: str, *, default: Any = None, **more: Any) -> Any:
    """A field of `RunConfig`. more: fields of `RunOption` that do not follow from the field itself."""
    metadata = {"help": help, "group": group, **more}
    if more.get("required"):
        return field(metadata=metadata)
    if isinstance(default, Mapping):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class RunConfig:
    """All options of a run. Where a list is expected, a single string or path is accepted too.

    Raises UserError if a value is not allowed.
    """

    model: str = _option("Model card: a name, or a YAML file.", ASKED, required=True, study=False)
    tasks: Sequence[str] = _option(
        "Tasks: names, globs or YAML files, separated by commas.", ASKED, required=True, study=False
    )
    corpus: str | None = _option(
        "A name, or a manifest (CSV, JSONL, Parquet). Default: the model card's, else all the tasks are meant for.",
        ASKED, study=False,
    )  # fmt: skip
    _: KW_ONLY
    dimensions: Sequence[str] = _option(
        "Compare the groups of these columns. Default: those of the tasks that the corpus has.",
        ASKED, flag="--dimension", default=(),
    )  # fmt: skip
    model_args: Mapping[str, Any] = _option("Overrides for the model: name=value,...", ASKED, default={}, study=False)
    prompt_variant: str | None = _option("A prompt's name, or 'all'. Default: the first of each task.", ASKED)
    limit: int | None = _option("So many clips, drawn evenly over groups and speakers.", ASKED, least=1, identity=True)
    modality: Modality = _option(
        "What the model is given: the clip, the corpus's words, or its own transcription.",
        ASKED, default="audio", identity=True,
    )  # fmt: skip
    answer_by: AnswerBy = _option(
        "Choice tasks: by what the model writes, or by its likeliest option letter (hf, vllm).",
        ASKED, default="generate", identity=True,
    )  # fmt: skip
    extractor: str | None = _option("Reads attributes from answers: 'rules' or a model card.", SCORED)
    seed: int = _option("Of all that is drawn.", SCORED, default=0, least=0, identity=True)
    tau: int = _option("A value counts when seen at least so often.", SCORED, default=10, least=1)
    permutations: int = _option("Of the permutation tests.", SCORED, default=10_000, least=1)
    also_test: Sequence[str] = _option(
        "Published tests to show beside the default: version-1 (utterances), version-2 (speakers, no strata).",
        SCORED, default=(),
    )  # fmt: skip
    accept_served_model: Sequence[str] = _option(
        "Go on where a server answers with this model instead of the card's; the results say so.",
        LIMITS, default=(), metavar="NAME", study=False,
    )  # fmt: skip
    long_clips: LongClips | None = _option(
        "What is done with clips longer than the model takes, over what its card says.", LIMITS
    )
    max_seconds: float | None = _option(
        "Clips longer than this are long ones, for models that take longer ones too.", LIMITS, above=0.0
    )
    skip_bad_clips: bool = _option("Leave out clips that cannot be used, and say so.", LIMITS, default=False)
    hearing_check: bool = _option(
        "Do not ask the model what was said before the run; recorded in the results.",
        LIMITS, default=True, flag="--no-hearing-check",
    )  # fmt: skip
    check_batch_invariance: int = _option(
        "Ask N answered requests again, one by one; the results say how many answers differ.",
        LIMITS, default=0, least=0, metavar="N",
    )  # fmt: skip
    max_requests: int | None = _option("Ask the model no more than this, this time.", LIMITS, least=1, study=False)
    max_cost: float | None = _option(
        "Spend no more than this, this time, by the prices of the model card.", LIMITS, above=0.0, study=False
    )
    executor: str = _option("Where engines run: local or ray.", PLACES, default="local", study=False)
    executor_args: Mapping[str, Any] = _option(
        "For ray: workers=8,gpus=1,address=auto", PLACES, default={}, study=False
    )
    trust_remote_code: bool = _option(
        "Run Python code that a card names: a metric's, a model's.", PLACES, default=False, study=False
    )
    allow_serve: bool = _option(
        "Run the command by which a card starts its own server.", PLACES, default=False, study=False
    )
    include_path: Sequence[str | Path] = _option(
        "Folder with your own tasks/, models/ and templates/.", PLACES, default=()
    )
    fresh: bool = _option(
        "Ask all anew, in a run folder beside the last one; the same command without it then goes on with that.",
        PLACES, default=False, study=False,
    )  # fmt: skip
    same_model: bool = _option(
        "A server at another address has the same model as before: keep the answers of an unpinned revision.",
        PLACES, default=False, study=False,
    )  # fmt: skip
    output_path: str | Path | None = _option("Run folder. Default: one below runs/.", PLACES, study=False)
    label: str | None = field(default=None, compare=False)
    """From a study: what it calls the model, which a leaderboard then shows."""
    progress: Progress | None = field(default=None, compare=False, repr=False)
    """From Python only: receives the progress of the run."""

    def __post_init__(self) -> None:
        for option in options():
            value = getattr(self, option.name)
            object.__setattr__(self, option.name, _as_kind(option.kind, value))
            option.check(value)

    def identity(self) -> dict[str, Any]:
        """The options that change responses, for run.json.

        Options added in later versions are left out at their default, so that older run folders can be resumed.
        """
        return {
            option.name: getattr(self, option.name)
            for option in options()
            if option.identity and (option.name != "answer_by" or getattr(self, option.name) != option.default)
        }

    def given(self) -> dict[str, Any]:
        """The options that differ from their default, as plain data for JSON."""
        values = {option.name: getattr(self, option.name) for option in options()}
        defaults = {option.name: _as_kind(option.kind, option.default) for option in options()}
        return {name: _plain(value) for name, value in values.items() if value != defaults[name]}


def _as_kind(kind: Kind, value: Any) -> Any:
    """Accept a single string where a list is expected, and do not split it into characters; paths may be strings."""
    if value is None:
        return None
    if kind == "texts":
        return [value] if isinstance(value, str) else [str(item) for item in value]
    if kind == "paths":
        return [Path(value)] if isinstance(value, str | Path) else [Path(item) for item in value]
    if kind == "path":
        return Path(value)
    if kind == "text":
        return str(value)
    return dict(value) if kind == "mapping" else value


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


@cache
def options() -> tuple[RunOption, ...]:
    """Every option of a run, in the order of the reference."""
    hints = get_type_hints(RunConfig)
    found = []
    for one in fields(RunConfig):
        if "help" not in one.metadata:
            continue
        more = {"required": False, **one.metadata}
        more.setdefault("flag", f"--{one.name.replace('_', '-')}")
        kind, choices = _kind_of(hints[one.name])
        default = {} if kind == "mapping" else None if more["required"] else one.default
        found.append(RunOption(name=one.name, kind=kind, choices=choices, default=default, **more))
    return tuple(found)


def option_named(name: str) -> RunOption:
    """The option with this name, a field of `RunConfig`."""
    return next(option for option in options() if option.name == name)


_KINDS: dict[Any, Kind] = {str: "text", bool: "flag", int: "integer", float: "number"}


def _kind_of(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    """The kind of value that an annotation of `RunConfig` describes, and the choices if it is a Literal."""
    if get_origin(annotation) is Literal:
        return "choice", get_args(annotation)
    if get_origin(annotation) is Mapping or annotation == Mapping[str, Any]:
        return "mapping", ()
    members = set(get_args(annotation)) - {type(None)} or {annotation}
    if len(members) == 1 and get_origin(only := next(iter(members))) is Literal:
        return "choice", get_args(only)
    if get_origin(annotation) is not None and annotation == Sequence[str]:
        return "texts", ()
    if annotation == Sequence[str | Path]:
        return "paths", ()
    return ("path", ()) if Path in members else (_KINDS[members.pop()], ())
