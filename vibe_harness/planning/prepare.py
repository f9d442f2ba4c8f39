"""Turn the options of a run into a checked plan. Every mistake is reported here, before a model starts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from vibe_harness.backends.executors import opener_of
from vibe_harness.backends.protocol import (
    Opener,
    accepting,
    check_options,
    check_ready,
    open_backend,
    pinned,
    with_overrides,
)
from vibe_harness.backends.remote.started_server import check_ports, check_startable, starting_servers
from vibe_harness.cards.digest import digest
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.corpora.audio.check import check_clips, describe_faults, without_repeats
from vibe_harness.corpora.audio.decode import BadAudio, Fault
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.errors import HarnessError, UserError
from vibe_harness.extraction.opening import extractor_identity, find_extractor
from vibe_harness.kinds.base import TaskKind, kind_of
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.published import known_tests
from vibe_harness.planning.config import RunConfig
from vibe_harness.planning.defaults import choose_corpora, choose_dimensions
from vibe_harness.planning.group_checks import check_groups, without_small_groups
from vibe_harness.planning.plan import Plan
from vibe_harness.planning.preflight_checks import (
    check_accepted,
    check_answer_by,
    check_excludes,
    check_hearing_question,
    check_metrics,
    check_modality,
    check_prices,
    check_rows,
    check_runs_no_code,
)
from vibe_harness.progress import Progress
from vibe_harness.records import CheckedAudio, CheckedClip, Clip, group_in
from vibe_harness.registry import did_you_mean
from vibe_harness.store.fresh_runs import fresh_run, has_fresh_runs, newest_run
from vibe_harness.store.responses import count_answers
from vibe_harness.store.run_folder import RunFolder, RunRecord, TaskRecord, machine
from vibe_harness.store.run_tables import clips_digest, count_requests

DEFAULT_EXTRACTOR = "qwen3-8b"
RUNS = Path("runs")
SHOWN_GROUPS = 5  # of those that lose clips
NOTICE_DAYS = 30
"""So long before its provider ends a model, a run of it warns."""


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A run over one corpus with everything loaded and checked."""

    config: RunConfig
    identity: Mapping[str, Any]  # everything that can change responses or readings: see `run_identity`
    index: CardIndex
    corpus: Corpus
    plan: Plan
    dimensions: Sequence[str]
    extractor: str
    bad_clips: Mapping[str, BadAudio]  # clip id -> why it is left out
    folder: Path
    opener: Opener = open_backend  # starts engines


def prepare(
    config: RunConfig, progress: Progress, *, to_run: bool = False, index: CardIndex | None = None
) -> list[PreparedRun]:
    """Find, load and check everything a run needs, for each corpus that it takes; see `choose_corpora`.

    to_run: it is run next, so that what the engines of the model and of the extractor lack is found before any clip is
    decoded; but for a run that is there already, which may be complete and need neither. index: of config.include_path,
    where several runs share the cards that it has loaded. Raises UserError for whatever
    would fail later, and EngineError where a server cannot be reached.
    """
    settings_of(config)
    check_accepted(config.accept_served_model)
    opener = _opener(config, progress)
    index = index or CardIndex([Path(folder) for folder in config.include_path])
    model = pinned(run_model(config, index))
    warn_of_end(model)
    check_modality(model, config.modality)
    check_prices(model, config.max_cost)
    tasks = index.tasks(config.tasks)
    check_metrics(tasks, trust_remote_code=config.trust_remote_code)
    check_answer_by(model, tasks, config.answer_by)
    for task in tasks:
        _variants(task, config.prompt_variant)
    extractor = default_extractor(model, tasks) if config.extractor is None else config.extractor
    reader = find_extractor(extractor, index)
    engines = [model] if reader is None else [model, reader]
    _check_commands(config, model, engines)
    chosen = choose_corpora(model.corpus if config.corpus is None else config.corpus, tasks, config.dimensions)
    prepared = []
    for corpus, own in chosen:
        output = None if config.output_path is None else Path(config.output_path)
        if output and len(chosen) > 1:
            output = output / corpus.name
        needed = engines if to_run and config.executor == "local" and not _begun(config, model, corpus, output) else []
        prepared.append(_prepare(config, index, model, own, corpus, extractor, output, needed, opener, progress))
        _warn_of_left_out(prepared[-1])
    return prepared


def _check_commands(config: RunConfig, model: ModelCard, engines: Sequence[ModelCard]) -> None:
    """Raise UserError where a card would run code or start a server as the user did not allow."""
    if not config.trust_remote_code:
        for card in engines:
            check_runs_no_code(card, config.model_args if card is model else {})
    if config.allow_serve:
        check_ports(engines)


def run_model(config: RunConfig, index: CardIndex) -> ModelCard:
    """The card of a run's model, with the options of the run that go before it. Raises UserError as `prepare` does."""
    model = with_overrides(index.model(config.model), config.model_args)
    seconds = [limit for limit in (config.max_seconds, model.max_seconds) if limit is not None]
    changes = {"max_seconds": min(seconds, default=None), "long_clips": config.long_clips or model.long_clips}
    changed = model.model_copy(update=changes if model.audio else {})
    check_options(changed)
    return changed


def warn_of_end(model: ModelCard) -> None:
    """Warn of a hosted model that its provider no longer serves, or not for long."""
    if model.available_until is not None:
        days = (date.fromisoformat(model.available_until) - date.today()).days
        if days < NOTICE_DAYS:
            other = f"; its provider names {model.replaced_by} in its place" if model.replaced_by else ""
            when = "was to be served until" if days < 0 else "is to be served until"
            warnings.warn(f"'{model.model}' {when} {model.available_until}{other}", stacklevel=2)


def _warn_of_left_out(prepared: PreparedRun) -> None:
    """Warn, with the groups that lose most, of clips that are left out because they are too long: slow readers."""
    long = {clip for clip, bad in prepared.bad_clips.items() if bad.fault is Fault.TOO_LONG}
    for dimension in prepared.dimensions if long else ():
        groups = [(clip.id in long, group_in(clip.groups, dimension)) for clip in prepared.corpus.clips]
        lost, of = Counter(group for out, group in groups if out), Counter(group for _, group in groups)
        most = sorted(lost, key=lambda group: (-lost[group] / of[group], str(group)))[:SHOWN_GROUPS]
        named = ", ".join(f"{lost[group]} of {of[group]} of {group}" for group in most)
        more = f" and of {len(lost) - len(most)} more groups" if len(lost) > len(most) else ""
        warnings.warn(
            f"{len(long)} clips that are too long for '{prepared.plan.model.model}' are left out, by {dimension}: "
            f"{named}{more}; --long-clips truncate keeps their speakers",
            stacklevel=2,
        )


def _opener(config: RunConfig, progress: Progress) -> Opener:
    """What opens a model's engine. Raises UserError for an executor that does not exist or cannot start servers."""
    opener = opener_of(config.executor, config.executor_args)
    if config.allow_serve and config.executor != "local":
        raise UserError(f"--allow-serve: only with --executor local, not {config.executor}")
    return starting_servers(progress) if config.allow_serve else opener


def _prepare(
    config: RunConfig,
    index: CardIndex,
    model: ModelCard,
    tasks: Sequence[Task],
    corpus: Corpus,
    extractor: str,
    output: Path | None,
    engines: Sequence[ModelCard],
    opener: Opener,
    progress: Progress,
) -> PreparedRun:
    dimensions = choose_dimensions(config.dimensions, corpus, tasks)
    clips = [clip for clip in corpus.clips if not dimensions or any(group_in(clip.groups, name) for name in dimensions)]
    check_excludes(model, corpus, clips)
    clips, few = without_small_groups(corpus, clips, dimensions)
    if config.limit is not None:
        clips = _drawn(tasks, clips, config.limit, dimensions, config.seed)
    sound = config.modality != "transcript"
    check_groups(corpus, tasks, dimensions, clips)
    _check_asking(config, model, corpus, dimensions, clips)
    as_written = _unopened(corpus, clips)
    rows, bad_rows = check_rows(tasks, corpus, model, as_written, {}, config.skip_bad_clips, progress, sound=False)
    check_groups(corpus, tasks, dimensions, [one.clip for one in rows])  # what the table alone shows ends here
    _check_engines(engines, model if config.extractor is None else None, config.allow_serve)
    checked, bad = rows, bad_rows
    if sound:
        checked, bad = _checked(corpus, [one.clip for one in rows], model, tasks, config.skip_bad_clips, progress)
        checked, bad = check_rows(
            tasks, corpus, model, checked, {**bad_rows, **bad}, config.skip_bad_clips, progress, sound=True
        )
        check_groups(corpus, tasks, dimensions, [one.clip for one in checked])
    bad |= {clip: BadAudio(Fault.FEW_SPEAKERS, reason) for clip, reason in few.items()}
    variants = {task.name: _variants(task, config.prompt_variant) for task in tasks}
    plan = Plan(model, tasks, variants, checked, config.seed, config.modality, config.answer_by)
    identity = run_identity(config, plan, corpus, extractor, index)
    return PreparedRun(
        config=config,
        identity=identity,
        index=index,
        corpus=corpus,
        plan=plan,
        dimensions=dimensions,
        extractor=extractor,
        bad_clips=bad,
        opener=accepting(opener, config.accept_served_model),
        folder=_folder(config, model, corpus, output, identity),
    )


def _folder(
    config: RunConfig, model: ModelCard, corpus: Corpus, output: Path | None, identity: Mapping[str, Any]
) -> Path:
    """The folder of a run: the newest of that identity, with `--fresh` a new one. Raises UserError as `fresh_run`."""
    base = output or RUNS / f"{_stem(model, corpus)}{digest(identity, 8)}"
    return fresh_run(base, identity) if config.fresh else newest_run(base, identity)


def _stem(model: ModelCard, corpus: Corpus) -> str:
    """How the name of a run's folder begins."""
    return f"{model.model}-{corpus.name[:40]}-"


def _begun(config: RunConfig, model: ModelCard, corpus: Corpus, output: Path | None) -> bool:
    """Whether a run that is there may be all that is asked for, so that no engine is needed: where its folder is named,
    one that is answered; else any, since which one it is is not known before the clips are decoded."""
    if config.fresh:
        return False
    if output is not None:
        if has_fresh_runs(output):  # which of them is gone on with is not known yet either
            return True
        folder = RunFolder(output)
        planned = count_requests(folder.requests)
        return planned is not None and count_answers(folder.responses) >= planned
    return RUNS.is_dir() and any(entry.name.startswith(_stem(model, corpus)) for entry in RUNS.iterdir())


def _check_engines(engines: Sequence[ModelCard], named: ModelCard | None, allow_serve: bool) -> None:
    """Raise where an engine lacks what it cannot start without; see `check_ready`. A server to be started need not be
    there. named: the only one that the user named, where the other is the default extractor, which its error then
    says."""
    for card in engines:
        try:
            if allow_serve and card.serve:
                check_startable(card)
            else:
                check_ready(card)
        except HarnessError as error:
            if named is None or card is named:
                raise
            raise type(error)(f"{error}. '{card.model}' is the default extractor; another: --extractor NAME") from None


def run_identity(config: RunConfig, plan: Plan, corpus: Corpus, extractor: str, index: CardIndex) -> dict[str, Any]:
    """Everything that can change responses or readings. Runs with different identities are different runs."""
    return {
        "model": {"name": plan.model.model, **plan.model.identity()},
        "tasks": {task.name: {"version": task.card.version, "digest": task.prompt_digest} for task in plan.tasks},
        "variants": {name: list(names) for name, names in plan.variants.items()},
        "corpus": corpus.name,
        "clips": clips_digest((checked.clip.id, checked.waveform, checked.clip.groups) for checked in plan.clips),
        "extractor": dict(extractor_identity(extractor, index)),
        **config.identity(),
    }


def _drawn(
    tasks: Sequence[Task], clips: Sequence[Clip], limit: int, dimensions: Sequence[str], seed: int
) -> list[Clip]:
    """Draw `limit` clips as the tasks' kind does. A kind that draws whole items takes precedence."""
    kinds = {kind: [task.card for task in tasks if kind_of(task.card) is kind] for kind in map(_kind, tasks)}
    kind, cards = min(kinds.items(), key=lambda item: item[0].free_text)
    return kind.draw(cards, clips, limit, dimensions, seed)


def _kind(task: Task) -> TaskKind:
    return kind_of(task.card)


def default_extractor(model: ModelCard, tasks: Sequence[Task]) -> str:
    """The default extractor: rules for letters, a text model for free text. Raises UserError for both in one run."""
    free = {kind_of(task.card).free_text for task in tasks}
    if len(free) > 1:
        raise UserError("choice tasks are read by rules, open-ended ones by a model: start a run for each kind")
    return (model.extractor or DEFAULT_EXTRACTOR) if free == {True} else "rules"


def record_of(prepared: PreparedRun, requests: str) -> RunRecord:
    """The record of a run in its folder, from which it can be scored again. requests: digest of the requests."""
    plan, corpus = prepared.plan, prepared.corpus
    tasks = [
        TaskRecord(
            card=task.card,
            digest=task.digest,
            prompts={name: task.prompt_source(name) for name in variants},
            variants=variants,
            sources=task.sources,
            aliases=task.aliases,
        )
        for task in plan.tasks
        for variants in [plan.variants[task.name]]
    ]
    return RunRecord(
        model=plan.model,
        tasks=tasks,
        corpus=corpus.name,
        corpus_synthetic=corpus.synthetic,
        corpus_licence=corpus.licence,
        dimensions=prepared.dimensions,
        speaker_strata={name: list(columns) for name, columns in corpus.speaker_strata.items()},
        strata=list(corpus.strata),
        named_groups={name: list(groups) for name, groups in corpus.named_groups.items()},
        extractor=prepared.extractor,
        modality=plan.modality,
        answer_by=plan.answer_by,
        seed=prepared.config.seed,
        bad_clips={clip: bad.reason for clip, bad in prepared.bad_clips.items()},
        long_clips=_long_clips(prepared),
        machine=machine(),
        corpus_folder=str(corpus.root.resolve()),
        requests=requests,
        label=prepared.config.label,
        config=prepared.config.given(),
    )


def _long_clips(prepared: PreparedRun) -> dict[str, int]:
    """Number of clips longer than the model accepts, by what was done to them."""
    model, clips = prepared.plan.model, prepared.plan.clips
    limit = model.max_seconds
    over = 0 if limit is None else sum(clip.seconds > limit for clip in clips)
    refused = sum(bad.fault is Fault.TOO_LONG for bad in prepared.bad_clips.values())
    counts = {"split" if model.long_clips == "split" else "truncated": over, "refused": refused}
    return {done: count for done, count in counts.items() if count}


def settings_of(config: RunConfig) -> Settings:
    """The scoring settings of a run."""
    return Settings(
        tau=config.tau,
        permutations=config.permutations,
        seed=config.seed,
        also_test=known_tests(config.also_test),
        trust_remote_code=config.trust_remote_code,
    )


def _variants(task: Task, wanted: str | None) -> tuple[str, ...]:
    names = tuple(task.card.prompts)
    if wanted is None:
        return names[:1]
    if wanted == "all":
        return names
    if wanted not in names:
        raise UserError(
            f"--prompt-variant {wanted}: the task '{task.name}' has no such prompt. {did_you_mean(wanted, names)}"
        )
    return (wanted,)


def _checked(
    corpus: Corpus, clips: Sequence[Clip], model: ModelCard, tasks: Sequence[Task], skip: bool, progress: Progress
) -> tuple[list[CheckedClip], dict[str, BadAudio]]:
    """Check every clip. Raises UserError, listing all bad ones, if they must not be skipped or none is left."""
    with progress.stage("checking clips", len(clips)) as tick:
        results = [(clip, _within_limit(result, model)) for clip, result in check_clips(corpus, clips, tick)]
    if not corpus.silence and any(kind_of(task.card).free_text for task in tasks):
        results = without_repeats(results)
    faults = describe_faults(corpus, results)
    bad = {clip.id: result for clip, result in results if isinstance(result, BadAudio)}
    if bad and (not skip or len(bad) == len(results)):
        cut = any(one.fault is Fault.TOO_LONG for one in bad.values())
        todo = f"Correct them, {'cut long ones with --long-clips truncate, ' if cut else ''}or leave them out with"
        raise UserError(f"{faults}\n{todo} --skip-bad-clips" if not skip else faults)
    paths = _paths(corpus, clips)
    checked = [
        CheckedClip(clip, paths[clip.file], result.sha256, result.duration_s, audio=result)
        for clip, result in results
        if isinstance(result, CheckedAudio)
    ]
    return checked, bad


def _check_asking(
    config: RunConfig, model: ModelCard, corpus: Corpus, dimensions: Sequence[str], clips: Sequence[Clip]
) -> None:
    """Raise UserError where clips cannot be asked with as the run asks: by their words, or after a hearing check."""
    if config.modality == "transcript":
        _check_words(corpus, clips)
    elif config.hearing_check:
        check_hearing_question(model, dimensions, clips)


def _check_words(corpus: Corpus, clips: Sequence[Clip]) -> None:
    """Raise UserError where clips lack the words that are asked with in their place."""
    wordless = [clip for clip in clips if not clip.text]
    if wordless:
        raise UserError(
            f"--modality transcript: {len(wordless)} clips of '{corpus.name}' have no text in its manifest, "
            f"{wordless[0].file} for one: add a column 'text', or ask the model itself with --modality cascade"
        )


def _unopened(corpus: Corpus, clips: Sequence[Clip]) -> list[CheckedClip]:
    """Clips whose words are asked with: their files are not opened, and need not be there."""
    paths = _paths(corpus, clips)
    return [CheckedClip(clip, paths[clip.file], "", 0.0) for clip in clips]


def _paths(corpus: Corpus, clips: Sequence[Clip]) -> dict[str, Path]:
    """File name -> path. Clips of the same file share one path object."""
    return {clip.file: corpus.root / clip.file for clip in clips}


def _within_limit(result: CheckedAudio | BadAudio, model: ModelCard) -> CheckedAudio | BadAudio:
    """The result of the check, or BadAudio if the clip is longer than the model accepts."""
    limit = model.max_seconds
    if isinstance(result, BadAudio) or limit is None or result.duration_s <= limit or model.long_clips != "refuse":
        return result
    return BadAudio(Fault.TOO_LONG, f"{result.duration_s:.1f} s long, and the model '{model.model}' takes {limit:g} s")
