"""Power analysis before a run: the smallest shift that a corpus can detect for a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vibe_harness.cards.loading import Task
from vibe_harness.corpora.manifest import Corpus
from vibe_harness.corpora.sampling import check_dimension, groups_of
from vibe_harness.errors import UserError
from vibe_harness.kinds.base import kind_of
from vibe_harness.metrics.frame_counts import attributes_of, speakers_of, value_counts
from vibe_harness.metrics.metric import strata_for
from vibe_harness.planning.group_checks import check_groups, varies_within_speakers, without_small_groups
from vibe_harness.records import Clip
from vibe_harness.stats.assignments import Design
from vibe_harness.stats.power import Power, Simulator, detectable_shift, from_design, from_pilot
from vibe_harness.stats.simulation import zipf
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.store.run_tables import read_frame

OPEN_VALUES = 20  # distinct values assumed for an open attribute, with shares by Zipf's law


def task_power(
    task: Task,
    corpus: Corpus,
    dimension: str,
    *,
    pilot: Path | None = None,
    habit: float = 0.1,
    tau: int = 10,
    target: float = 0.8,
    simulations: int = 400,
    seed: int = 0,
) -> Power:
    """The smallest nTVD of a task that a corpus detects with the given power, by simulation (`stats.power`).

    Without a pilot, the simulation assumes one answer per clip, equal shares for the values of closed attributes,
    OPEN_VALUES values for open ones, and `habit` as the share of the variance between speakers. With a pilot (a run
    folder of this task), answers are drawn from its speakers, as many a speaker as the pilot has. The test is the
    default one: speakers are permuted within the strata of the corpus. Raises UserError for groups that a run would
    reject, or if the pilot lacks the task.
    """
    if not kind_of(task.card).free_text:
        raise UserError(f"'{task.name}' is a {task.card.kind} task, and this is about nTVD, which it does not have")
    known = {name for clip in corpus.clips for name in clip.groups}
    check_dimension(dimension, known, f"the corpus '{corpus.name}'")
    clips_asked, _ = without_small_groups(corpus, corpus.clips, [dimension])
    check_groups(corpus, [task], [dimension], clips_asked)
    groups = groups_of(clips_asked, dimension)
    if varies_within_speakers(groups):
        raise UserError(
            f"--dimension {dimension}: every speaker has clips in several of its groups, and power is worked out for "
            "groups of speakers alone"
        )
    sizes, clips, strata = _speakers(groups, strata_for(dimension, corpus.speaker_strata))
    simulator = _from_pilot(task, pilot, dimension, sizes) if pilot else _from_design(task, sizes, clips, habit)
    return detectable_shift(simulator, strata, tau=tau, target=target, simulations=simulations, seed=seed)


def smallest_p(clips: Sequence[Clip], corpus: Corpus, dimension: str, permutations: int) -> float:
    """The smallest p that the test of a dimension can reach over these clips of a corpus, however large the shift."""
    sizes, _, strata = _speakers(groups_of(clips, dimension), strata_for(dimension, corpus.speaker_strata))
    return Design.of(np.repeat(np.arange(len(sizes)), sizes), strata).smallest_p(permutations)


def _speakers(groups: Mapping[str, Sequence[Clip]], columns: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """Speakers of each group, and group by group the clips and the stratum of each speaker.

    columns: within which speakers are exchanged.
    """
    sizes, clips = [], []
    strata: list[tuple[str | None, ...]] = []
    for name in sorted(groups):
        speakers: dict[str, int] = {}
        own: dict[str, tuple[str | None, ...]] = {}
        for clip in groups[name]:
            speakers[clip.speaker] = speakers.get(clip.speaker, 0) + 1
            own[clip.speaker] = tuple(clip.groups.get(column) for column in columns)
        sizes.append(len(speakers))
        clips += [speakers[speaker] for speaker in sorted(speakers)]
        strata += [own[speaker] for speaker in sorted(speakers)]
    kinds = {kind: code for code, kind in enumerate(dict.fromkeys(strata))}
    return sizes, clips, [kinds[kind] for kind in strata]


def _from_design(task: Task, sizes: Sequence[int], clips: Sequence[int], habit: float) -> Simulator:
    bases = [
        zipf(OPEN_VALUES) if spec.values == "open" else np.full(len(spec.values), 1 / len(spec.values))
        for spec in task.card.extraction.attributes.values()
    ]
    return from_design(sizes, np.array(clips), bases, habit=habit)


def _from_pilot(task: Task, pilot: Path, dimension: str, sizes: Sequence[int]) -> Simulator:
    folder = RunFolder(pilot)
    asked = {record.card.task: record for record in folder.record().tasks}
    if task.name not in asked:
        raise UserError(f"{pilot}: this run does not have the task '{task.name}' (it has {', '.join(asked)})")
    frame = read_frame(folder.observations, task.name, asked[task.name].variants[0], dimension)
    speakers = speakers_of(frame)
    tables = [value_counts(frame[frame["attribute"] == name], speakers)[1] for name in attributes_of(frame)]
    return from_pilot(tables, sizes)
