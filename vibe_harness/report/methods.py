"""A Methods paragraph written from a run, and the BibTeX of what it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from vibe_harness.metrics.registry import presentation_of
from vibe_harness.records import Outcome, Score
from vibe_harness.report.html import counted
from vibe_harness.report.latex import escaped
from vibe_harness.report.stars import family_of, tested
from vibe_harness.store.responses import read_responses
from vibe_harness.store.results import Results, read_verified_results
from vibe_harness.store.run_folder import RunFolder, RunRecord

REFERENCES = Path(__file__).with_name("references.bib")
TOOL, METHOD, ADJUSTMENT = "vibe_harness", "lin2026vibe", "benjamini1995controlling"
NOT_CITED = frozenset({"base_url", "api_key_env"})  # of a model's arguments: where it is, not what it is
TASK_PAPERS = {"spoken_stereoset": "lin2024spoken", "biasinear": "wei2026bias"}
CORPUS_PAPERS = {
    "crema-d": "cao2014crema", "l2-arctic": "zhao2018l2arctic", "speech-accent-archive": "weinberger2015speech",
    "spoken-stereoset": "lin2024spoken", "biasinear": "wei2026bias",
}  # fmt: skip
"""Name that a corpus's name begins with -> its paper: crema-d-pitch-swapped is made of CREMA-D."""


def citation(folder: RunFolder) -> str:
    """The Methods paragraph of a run with its citations as LaTeX has them, and the BibTeX of each.

    Everything in it is what the run recorded. Raises UserError where the run has no scores, or a file of it changed
    since it was scored.
    """
    record = folder.record()
    results = read_verified_results(folder)
    served = sorted({one.served_model for one in read_responses(folder.responses) if one.served_model})
    scores = [score for task in results.tasks for score in tested(task)]
    sentences = [
        *_answers(record, results, served), *_clips(record, results), *_reading(folder, record, results),
        *_measures(scores, results.tau), *_tests(scores),
    ]  # fmt: skip
    paragraph = " ".join(sentences)
    keys = dict.fromkeys(re.findall(r"\\cite\{(\w+)\}", paragraph))
    return "\n\n".join([paragraph, *(bibtex(key) for key in keys)])


def _answers(record: RunRecord, results: Results, served: Sequence[str]) -> Iterator[str]:
    card = record.model
    revision = f", revision {escaped(card.revision)}" if card.revision else ""
    as_served = f", served as {escaped(_listed(served))}" if served and served != [card.id] else ""
    given_args = [
        f"{name} = {value}"
        for name, value in sorted(record.model_args.items())
        if name not in ("base_url", "api_key_env")
    ]
    with_args = f", with {escaped(_listed(given_args))}" if given_args else ""
    tasks = [escaped(task.card.task) + _cited(TASK_PAPERS.get(task.card.task)) for task in record.tasks]
    yield (
        f"We measured {escaped(card.model)} ({escaped(card.id)}{revision}{as_served}{with_args}) with vibe-harness "
        f"{record.made_with} \\cite{{{TOOL}}}, through the back end {escaped(card.backend)}, on the "
        f"{_plural('task', tasks)} {_listed(tasks)}."
    )
    if results.simulated:
        yield "The model is simulated: no real model gave these answers."
    limits = sorted({(task.card.generation.max_tokens, task.card.generation.temperature) for task in record.tasks})
    sampling = [f"at most {tokens:,} tokens at temperature {temperature:g}" for tokens, temperature in limits]
    given = {
        "transcript": "the text of each clip instead of its sound",
        "cascade": "its own transcription of each clip instead of the sound",
    }
    prompts = sorted({variant for task in record.tasks for variant in task.variants})
    yield (
        f"It was given {given.get(results.modality, 'each clip')} and the {_plural('prompt', prompts)} "
        f"{escaped(_listed(prompts))} of each task, and answered in {_listed(sampling)} (seed {record.seed})."
    )
    hearing = {
        "passed": "It passed a check that it hears the clips.",
        "left out": "Whether it hears the clips was not checked.",
    }
    if results.hearing_check in hearing:
        yield hearing[results.hearing_check]


def _clips(record: RunRecord, results: Results) -> Iterator[str]:
    paper = next((key for name, key in CORPUS_PAPERS.items() if record.corpus.startswith(name)), None)
    synthetic = ", which is synthetic speech," if record.corpus_synthetic else ""
    left_out = f"; left out as not usable: {counted(len(record.bad_clips), 'clip')}" if record.bad_clips else ""
    told = []
    for dimension in dict.fromkeys(task.dimension for task in results.tasks):
        groups = next(task.groups for task in results.tasks if task.dimension == dimension)
        counts = [
            f"{escaped(name)}: {counted(group.speakers, 'speaker')}, {counted(group.clips, 'clip')}"
            for name, group in groups.items()
        ]
        told.append(f"{escaped(dimension.replace(':', ' and '))} ({'; '.join(counts)})")
    yield (
        f"The clips are those of the corpus {escaped(record.corpus)}{_cited(paper)}{synthetic} compared by "
        f"{_listed(told)}{left_out}."
    )


def _reading(folder: RunFolder, record: RunRecord, results: Results) -> Iterator[str]:
    model = folder.identity()["extractor"].get("model")
    known = model if isinstance(model, dict) else {}
    facts = [str(known["id"]), *([f"revision {known['revision']}"] if known.get("revision") else [])] if known else []
    which = f" ({escaped(', '.join(facts))})" if facts else ""
    yield f"The attributes of the answers were read by {escaped(record.extractor)}{which}."
    once = {(task.task, task.variant): task.groups for task in reversed(results.tasks)}  # whatever it is compared by
    groups = [group for asked in once.values() for group in asked.values()]
    errors, requests = (sum(found) for found in zip(
        *((group.outcomes.get(Outcome.ERROR, 0), group.requests) for group in groups), strict=True
    ))  # fmt: skip
    if errors:
        yield f"{errors:,} of {requests:,} requests failed."
    if unreliable := [f"{task.task} by {task.dimension}" for task in results.tasks if not task.reliable]:
        yield f"Too few answers were read, or unevenly over the groups, to rely on {escaped(_listed(unreliable))}."


def _measures(scores: Sequence[Score], tau: int) -> Iterator[str]:
    """What was computed of the answers."""
    roles: dict[str, list[str]] = {}
    for metric in dict.fromkeys(score.metric for score in scores):
        shown = presentation_of(metric)
        roles.setdefault(shown.role, []).append(escaped(shown.title))
    if "shift" in roles:
        yield (
            f"Shifts between groups are measured by {_listed(roles['shift'])} \\cite{{{METHOD}}} over values that "
            f"occur at least {tau:,} times (tau), with 95\\,\\% intervals of the true shift."
        )
    if "figure" in roles:
        yield f"We report {_listed(roles['figure'])}."


def _tests(scores: Sequence[Score]) -> Iterator[str]:
    """How it was tested."""
    with_p = [score for score in scores if score.p_value is not None]
    if not with_p:
        return
    tests = dict.fromkeys(f"{s.test} ({s.permuted} permuted)" for s in with_p if s.test and s.permuted)
    most = max(score.permutations or 0 for score in with_p)
    if tests:
        yield f"The test is {escaped(_listed(list(tests)))}, with {most:,} permutations at most."
    family = family_of(scores)
    if family.refused:
        yield f"The p-values are not adjusted: {escaped(family.refused)}."
        return
    yield (
        f"The p-values are adjusted by Benjamini and Hochberg \\cite{{{ADJUSTMENT}}} over the "
        f"{counted(family.tests, 'test')} of the run."
    )


def _listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"


def _plural(word: str, of: Sequence[object]) -> str:
    return word if len(of) == 1 else f"{word}s"


def _cited(key: str | None) -> str:
    return f" \\cite{{{key}}}" if key else ""


def bibtex(key: str) -> str:
    """The BibTeX of a key."""
    if key == TOOL:
        return (
            f"@software{{{TOOL},\n  title = {{vibe-harness}},\n  author = {{{{The vibe-harness contributors}}}},\n"
            f"  version = {{{version('vibe-harness')}}}\n}}"
        )
    entries = REFERENCES.read_text(encoding="utf-8").strip().split("\n\n")
    return next(entry for entry in entries if entry.partition("{")[2].startswith(f"{key},"))
