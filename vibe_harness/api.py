"""The Python interface: the commands of the command line as functions with typed results."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import UserError
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.published import known_tests
from vibe_harness.pipeline.run import run_all
from vibe_harness.planning.config import RunConfig
from vibe_harness.planning.prepare import prepare
from vibe_harness.progress import Progress
from vibe_harness.scoring.score import recorded_settings, score_run
from vibe_harness.store.results import Results, read_verified_results, write_results
from vibe_harness.store.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from vibe_harness.analysis.compare import RunComparison
    from vibe_harness.analysis.run_check import RunCheck
    from vibe_harness.authoring.checking import CheckedTask
    from vibe_harness.authoring.values import RunValues
    from vibe_harness.corpora.audio.decode import BadAudio
    from vibe_harness.corpora.manifest import Corpus
    from vibe_harness.records import CheckedAudio, Clip
    from vibe_harness.speech_sets.building import BuiltSpeechSet
    from vibe_harness.stats.power import Power
    from vibe_harness.studies.study import CellProgress
    from vibe_harness.validation.results import Validation
    from vibe_harness.validation.sample import Sample

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def _with_parameters_of(
    config: Callable[Parameters, RunConfig],
) -> Callable[[Callable[[RunConfig], Returned]], Callable[Parameters, Returned]]:
    """Decorator: the function takes the parameters of RunConfig, with types and defaults, instead of a RunConfig."""

    def decorate(function: Callable[[RunConfig], Returned]) -> Callable[Parameters, Returned]:
        @functools.wraps(function)
        def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
            return function(config(*args, **kwargs))

        parameters = inspect.signature(config).parameters.values()
        called.__signature__ = inspect.signature(function).replace(parameters=list(parameters))  # type: ignore[attr-defined]
        return called

    return decorate


@_with_parameters_of(RunConfig)
def evaluate(config: RunConfig) -> list[Results]:
    """Run tasks on a model and score its answers. Resumes an earlier run in the same folder.

    The arguments are the options of `vibe-harness run`, under the same names, and `progress`; see `RunConfig`. Returns
    one result for each corpus: one if `corpus` is given or set in the model card, otherwise one for each available
    corpus that the task cards list.

    Raises UserError for invalid arguments, and EngineError if an engine fails.
    """
    progress = config.progress or Progress()
    return list(run_all(prepare(config, progress, to_run=True), progress))


def run_study(
    study: str | Path, output_path: str | Path | None = None, progress: Progress | None = None
) -> list[CellProgress]:
    """Run the unfinished cells of a study file, as `vibe-harness study` does. Returns the progress of each cell."""
    from vibe_harness.studies.study import cells_of, progress_of, read_study
    from vibe_harness.studies.study_folder import StudyFolder, run_cells

    card = read_study(Path(study))
    output = Path(output_path) if output_path else Path("runs") / card.study
    folder = StudyFolder(output, card)
    cells = cells_of(card, output)
    run_cells(cells, folder, progress or Progress())
    failures = folder.failures()
    return [progress_of(cell, failures) for cell in cells]


def score(
    run: str | Path,
    *,
    dimensions: Sequence[str] = (),
    seed: int | None = None,
    tau: int | None = None,
    also_test: Sequence[str] | None = None,
    permutations: int | None = None,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Score a run folder again, without a model. Replaces results.json, and the page if there is one.

    The arguments are the options of `vibe-harness score`. None means the setting of the previous scoring. Raises
    UserError if `run` is not a finished run.
    """
    folder = RunFolder(Path(run))
    folder.record()  # a folder that is no run is told first
    own = recorded_settings(folder)
    settings = Settings(
        tau=own.tau if tau is None else tau,
        permutations=own.permutations if permutations is None else permutations,
        seed=own.seed if seed is None else seed,
        also_test=own.also_test if also_test is None else known_tests(_several(also_test)),
        trust_remote_code=trust_remote_code,
    )
    shown = folder.page.is_file()
    with folder.locked():
        results = score_run(folder, settings, _several(dimensions), progress or Progress())
        write_results(folder, results)
    if shown:
        write_report(run, progress=progress)
    return results


def results(run: str | Path) -> Results:
    """The results of a finished run, as results.json holds them.

    Raises UserError where there are none, or where a file of the run changed since it was scored.
    """
    return read_verified_results(RunFolder(Path(run)))


def observations(run: str | Path) -> pd.DataFrame:
    """The observations of a run: one row for each response and attribute, with groups in columns group_NAME."""
    import pandas as pd

    folder = RunFolder(Path(run))
    folder.record()  # raises UserError where it is no run
    if not folder.observations.is_file():
        raise UserError(f"{run}: no observations yet: finish the run with the command that started it")
    return pd.read_parquet(folder.observations)


def values(run: str | Path, attribute: str, task: str | None = None, dimension: str | None = None) -> RunValues:
    """The values of an attribute in a run, with proposed aliases; see `vibe_harness.authoring.values.run_values`."""
    from vibe_harness.authoring.values import run_values

    return run_values(Path(run), attribute, task, dimension)


def write_report(
    run: str | Path,
    output: str | Path | None = None,
    figures: str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the page of a run (default: report.html in its folder), and figures into a folder. Returns the page."""
    from vibe_harness.report.run_page import write_run_page

    folder = RunFolder(Path(run))
    path = Path(output) if output else folder.page
    write_run_page(folder, path, progress)
    if figures:
        from vibe_harness.report.run_figures import write_run_figures

        write_run_figures(folder, Path(figures), progress or Progress())
    return path


def export_run(
    run: str | Path,
    form: str,
    output: str | Path,
    *,
    organization: str | None = None,
    benchmark: str | None = None,
) -> tuple[Path, Sequence[str]]:
    """Write a finished run in the format of others. Returns what was written, and a line for each score left out.

    form: "every-eval-ever", which needs `organization`; "eval-results", which needs `benchmark`; or "dataset". The
    arguments are the options of `vibe-harness export`. Raises UserError if one is missing, or nothing can be exported.
    """
    from vibe_harness.report.dataset_folder import write_dataset
    from vibe_harness.report.eval_results import write_eval_results
    from vibe_harness.report.every_eval_ever import write_every_eval_ever

    folder = RunFolder(Path(run))
    match form:
        case "every-eval-ever" if organization:
            return write_every_eval_ever(folder, Path(output), organization)
        case "every-eval-ever":
            raise UserError("every-eval-ever: say who ran the evaluation with --organization NAME")
        case "eval-results" if benchmark:
            return write_eval_results(folder, Path(output), benchmark)
        case "eval-results":
            raise UserError("eval-results: name the data set that has the leaderboard with --benchmark ORG/NAME")
        case "dataset":
            return write_dataset(folder, Path(output)), []
    raise UserError(f"there is no format '{form}': write every-eval-ever, eval-results or dataset")


def push_run(run: str | Path, target: str, *, public: bool = False) -> str:
    """Upload a finished run to "hub:ORG/NAME"; see `vibe_harness.report.hub_upload.push_run`."""
    from vibe_harness.report import hub_upload

    return hub_upload.push_run(RunFolder(Path(run)), target, public=public)


def write_leaderboard(
    runs: Sequence[str | Path],
    output: str | Path,
    *,
    include_simulated: bool = False,
    include_published: bool = False,
    figures: bool = False,
    include_answers: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write a leaderboard of run folders as a folder of pages. Returns the first page.

    The arguments are the options of `vibe-harness leaderboard`. Runs that cannot be shown are left out and listed on
    the pages. Raises UserError if no run can be shown.
    """
    from vibe_harness.report.leaderboard import make_leaderboard

    page, _ = make_leaderboard(
        _paths(runs), Path(output), progress or Progress(), include_simulated=include_simulated,
        include_published=include_published, figures=figures, include_answers=include_answers,
    )  # fmt: skip
    return page


def cite(run: str | Path) -> str:
    """A Methods paragraph of a run in LaTeX and the BibTeX of what it cites; see `vibe_harness.report.methods`."""
    from vibe_harness.report.methods import citation

    return citation(RunFolder(Path(run)))


def compare(
    before: str | Path, after: str | Path, *, tau: int | None = None, permutations: int | None = None
) -> RunComparison:
    """Compare two finished runs; see `vibe_harness.analysis.compare.compare_runs`."""
    from vibe_harness.analysis.compare import compare_runs

    return compare_runs(Path(before), Path(after), tau=tau, permutations=permutations)


def check_run(run: str | Path, *, trust_remote_code: bool = False, progress: Progress | None = None) -> RunCheck:
    """Check that a run folder is complete and unchanged; see `vibe_harness.analysis.run_check.check_run`."""
    from vibe_harness.analysis import run_check

    return run_check.check_run(RunFolder(Path(run)), progress, trust_remote_code=trust_remote_code)


def power(
    tasks: Sequence[str],
    corpus: str | Path | Corpus,
    dimension: str,
    *,
    pilot: str | Path | None = None,
    habit: float = 0.1,
    tau: int = 10,
    target: float = 0.8,
    simulations: int = 400,
    seed: int = 0,
    include_path: Sequence[str | Path] = (),
) -> dict[str, Power]:
    """Task -> smallest nTVD that a corpus can detect; the arguments are the options of `vibe-harness power`."""
    from vibe_harness.corpora.manifest import Corpus
    from vibe_harness.planning.power import task_power

    found = corpus if isinstance(corpus, Corpus) else load_corpus(corpus)
    return {
        task.name: task_power(
            task, found, dimension, pilot=Path(pilot) if pilot else None, habit=habit, tau=tau, target=target,
            simulations=simulations, seed=seed,
        )
        for task in _index(include_path).tasks(_several(tasks))
    }  # fmt: skip


def check_tasks(asked: Sequence[str | Path], include_path: Sequence[str | Path] = ()) -> list[CheckedTask]:
    """Check task cards; see `vibe_harness.authoring.checking.check_tasks`."""
    from vibe_harness.authoring import checking

    return checking.check_tasks(
        [str(name) for name in ([asked] if isinstance(asked, str | Path) else asked)], _paths(include_path)
    )


def list_tasks(patterns: Sequence[str] = ("*",), include_path: Sequence[str | Path] = ()) -> list[Task]:
    """The tasks that match names, globs or card files; all tasks by default."""
    return _index(include_path).tasks(_several(patterns))


def list_models(include_path: Sequence[str | Path] = ()) -> list[ModelCard]:
    """The cards of all models."""
    index = _index(include_path)
    return [index.model(name) for name in index.model_names()]


def list_corpora() -> list[str]:
    """Names of the available corpora: prepared ones and built-in ones."""
    from vibe_harness.corpora.registry import corpus_manifests

    return sorted(corpus_manifests())


def load_corpus(name_or_path: str | Path) -> Corpus:
    """Load a corpus by name, manifest or folder: its clips with speakers and groups."""
    from vibe_harness.corpora.registry import find_corpus

    return find_corpus(str(name_or_path))


def prepare_corpus(name: str, source: str | Path | None = None, output: str | Path | None = None) -> Corpus:
    """Import the corpus of a card, as `vibe-harness corpus prepare` does. Returns it."""
    from vibe_harness.corpora.card import load_corpus_card
    from vibe_harness.corpora.folders import own_corpora
    from vibe_harness.corpora.prepare.prepare import prepare as prepare_from

    card, path = load_corpus_card(name)
    folder = Path(output) if output else own_corpora() / card.corpus
    source = None if source is None else str(source)
    return prepare_from(card, path, source, folder).corpus


def check_corpus(name_or_path: str | Path) -> list[tuple[Clip, CheckedAudio | BadAudio]]:
    """Decode every clip of a corpus, a manifest or a folder of audio. Returns each clip with the result."""
    from vibe_harness.corpora.audio.check import check_clips
    from vibe_harness.corpora.registry import find_audio

    corpus = find_audio(str(name_or_path))
    return check_clips(corpus, corpus.clips)


def new_card(kind: str, name: str | Path, folder: str | Path = ".") -> list[Path]:
    """Write a skeleton to fill in; never overwrites a file. kind: "task", "model" or "corpus" (name is its folder)."""
    from vibe_harness.authoring import skeletons

    if kind == "corpus":
        return list(skeletons.new_corpus(Path(name)))
    makers = {"task": skeletons.new_task, "model": skeletons.new_model}
    if kind not in makers:
        raise UserError(f"there is no card of kind '{kind}': write task, model or corpus")
    return list(makers[kind](str(name), Path(folder)))


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file: "task", "model", "corpus" or "results"."""
    from vibe_harness.cards.schema import Card, TaskCard, card_schema
    from vibe_harness.corpora.card import CorpusCard
    from vibe_harness.store.results import json_schema

    cards: dict[str, type[Card]] = {"task": TaskCard, "model": ModelCard, "corpus": CorpusCard}
    if kind not in (*cards, "results"):
        raise UserError(f"there is no schema of '{kind}': write task, model, corpus or results")
    return card_schema(cards[kind]) if kind in cards else json_schema()


def sample_responses(
    runs: Sequence[str | Path],
    output: str | Path,
    *,
    per_cell: int = 5,
    seed: int = 0,
    extractors: Sequence[str] = (),
    include_path: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> tuple[Sample, Sequence[str]]:
    """Draw responses of finished runs for people to judge. Writes them into a folder, with a spreadsheet.

    The arguments are the options of `vibe-harness validate-extraction sample`. Returns the sample and notes on it.
    `vibe-harness validate-extraction judge` serves the page for judging.
    """
    from vibe_harness.validation.drawing import draw
    from vibe_harness.validation.sample import write_sample
    from vibe_harness.validation.sheet import write_sheet

    drawn, notes = draw(
        _paths(runs), Path(output), per_cell=per_cell, seed=seed,
        extractors=list(dict.fromkeys(_several(extractors))), include_path=_paths(include_path),
        progress=progress or Progress(),
    )  # fmt: skip
    write_sample(Path(output), drawn)
    sheet = Path(output) / "sheet.csv"
    if not sheet.exists():  # it may have been filled in
        write_sheet(sheet, drawn)
    return drawn, notes


def score_judgments(
    folder: str | Path, *, judges: Sequence[str] = (), resamples: int = 10_000, seed: int = 0
) -> tuple[Validation, Sequence[str]]:
    """Compute how often judges agree with the extractor. Writes it into the sample's folder and its run folders.

    Pages of these runs are written again. Returns the agreement, and messages about what could not be written. The
    arguments are the options of `vibe-harness validate-extraction score`.
    """
    from vibe_harness.registry import did_you_mean
    from vibe_harness.validation.judgments import judges_of
    from vibe_harness.validation.results import write_validation
    from vibe_harness.validation.sample import read_sample
    from vibe_harness.validation.scoring import keep_beside_runs, validate

    folder = Path(folder)
    drawn = read_sample(folder)
    people = {person.name: person for person in judges_of(folder, drawn)}
    judges = _several(judges)
    for name in judges:
        if name not in people:
            raise UserError(f"--judge {name}: has not judged this sample. {did_you_mean(name, people)}")
    judgments = {name: people[name].judgments() for name in (judges or people)}
    found = validate(drawn, judgments, resamples=resamples, seed=seed)
    write_validation(folder, found)
    shown = [run for run in (RunFolder((folder / one.path).resolve()) for one in drawn.runs) if run.page.is_file()]
    told = keep_beside_runs(folder, drawn, judgments, found)
    for run in (run for run in shown if not run.page.is_file()):
        try:
            write_report(run.path)
        except UserError as error:
            told.append(f"no page: {error}")
    return found, told


def make_speech_set(
    card: str | Path, output: str | Path, include_path: Sequence[str | Path] = (), progress: Progress | None = None
) -> BuiltSpeechSet:
    """Make a spoken question set from text, as `vibe-harness speech-set` does. Resumes what is in `output`."""
    from vibe_harness.speech_sets.building import build
    from vibe_harness.speech_sets.card import load_speech_set

    return build(load_speech_set(Path(card)), Path(output), _index(include_path), (progress or Progress()).stage)


def _index(include_path: Sequence[str | Path]) -> CardIndex:
    return CardIndex(_paths(include_path))


def _paths(given: Sequence[str | Path] | Path) -> list[Path]:
    return [Path(given)] if isinstance(given, str | Path) else [Path(one) for one in given]


def _several(given: Sequence[str]) -> list[str]:
    """Accept a single string where a list is expected, and do not split it into characters."""
    return [given] if isinstance(given, str) else list(given)
