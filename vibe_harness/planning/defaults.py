"""Defaults of a run: which corpora to use, with which tasks, and which dimensions to compare."""

from __future__ import annotations

from collections.abc import Sequence

from vibe_harness.cards.loading import Task
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.registry import corpus_manifests, find_corpus
from vibe_harness.corpora.sampling import check_dimension
from vibe_harness.errors import UserError


def choose_corpora(
    named: str | None, tasks: Sequence[Task], dimensions: Sequence[str]
) -> list[tuple[Corpus, Sequence[Task]]]:
    """The corpora of a run, each with its tasks.

    named: corpus given by the user or the model card; it is used for all tasks. If None, each task uses the available
    corpora that its card lists, for `dimensions` only if any are given. Raises UserError if a task has no corpus.
    """
    if named is not None:
        return [(find_corpus(named), tasks)]
    at_hand = corpus_manifests()
    found: dict[str, list[Task]] = {}
    for task in tasks:
        meant = _meant_for(task, dimensions)
        ready = [name for name in meant if name in at_hand]
        if not ready:
            raise UserError(_how_to_get_one(task, meant, dimensions))
        for name in ready:
            found.setdefault(name, []).append(task)
    return [(find_corpus(name), own) for name, own in found.items()]


def choose_dimensions(asked: Sequence[str], corpus: Corpus, tasks: Sequence[Task]) -> list[str]:
    """The dimensions to compare.

    They are the ones given by the user. By default they are the dimensions for which a task card lists this corpus, or
    else all dimensions of the tasks, in which the corpus has two groups or more. The result may be empty. Raises
    UserError if the corpus lacks a dimension that the user gave.
    """
    columns = sorted({name for clip in corpus.clips for name in clip.groups})
    for dimension in asked:
        check_dimension(dimension, columns, f"the corpus '{corpus.name}'")
    if asked:
        return list(dict.fromkeys(asked))
    meant = {name: corpora for task in tasks for name, corpora in task.card.dimensions.items()}
    usable = [name for name in meant if len({clip.groups.get(name) for clip in corpus.clips} - {None}) > 1]
    own = [name for name in usable if any(corpus.name in task.card.dimensions.get(name, ()) for task in tasks)]
    return own or usable


def _meant_for(task: Task, dimensions: Sequence[str]) -> list[str]:
    """Names of the corpora that a task card lists, in its order."""
    return list(
        dict.fromkeys(
            name
            for dimension, corpora in task.card.dimensions.items()
            if not dimensions or dimension in dimensions
            for name in corpora
        )
    )


def _how_to_get_one(task: Task, meant: Sequence[str], dimensions: Sequence[str]) -> str:
    if not meant:
        return (
            f"no corpus was named, and the task '{task.name}' names none for {' or '.join(dimensions)}: give --corpus "
            "a name or a manifest (CSV, JSONL or Parquet)"
        )
    others = f", or one of {', '.join(meant[1:])} likewise" if len(meant) > 1 else ""
    return (
        f"no corpus was named, and none that the task '{task.name}' is meant for is prepared: type "
        f"`vibe-harness corpus prepare {meant[0]} --source DIR`, DIR being the folder that holds it{others}; or give "
        "--corpus a manifest (CSV, JSONL or Parquet)"
    )
