"""What a study comes to before it starts: for each model its requests, hours of audio and price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import ModelCard
from vibe_harness.extraction.opening import find_extractor
from vibe_harness.planning.estimate import Estimate, estimate_extractor, estimate_model
from vibe_harness.planning.prepare import prepare
from vibe_harness.progress import Progress
from vibe_harness.studies.study import StudyCell


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEstimate:
    """What a model, or an extractor, is asked in a study."""

    name: str  # the study's name of the model; the extractor's name
    card: ModelCard
    extracts: bool
    estimate: Estimate

    def minutes(self, per_second: float) -> float:
        """Minutes that it takes at so many answers a second."""
        return self.estimate.requests / per_second / 60


def estimate_study(
    cells: Sequence[StudyCell], progress: Progress, *, trust_remote_code: bool = False
) -> list[ModelEstimate]:
    """Estimates of all requests, one for each model and then for each extractor.

    Loads and checks what the cells of a model and a corpus need, as a run does. Raises UserError as `prepare` does.
    """
    models: dict[str, list[tuple[ModelCard, Estimate]]] = {}
    extractors: dict[str, list[tuple[ModelCard, Estimate]]] = {}
    index = CardIndex(cells[0].study.options()["include_path"]) if cells else CardIndex()
    together = _together(cells, index)
    with progress.stage("estimating", len(together)) as tick:
        for (label, _, _), own in together.items():
            tasks = [cell.task_card for cell in own]
            config = replace(own[0].config(), tasks=tasks, trust_remote_code=trust_remote_code)
            [prepared] = prepare(config, progress, index=index)
            models.setdefault(label, []).append((prepared.plan.model, estimate_model(prepared.plan, frozenset())))
            reader = find_extractor(prepared.extractor, prepared.index)
            reading = estimate_extractor(prepared.plan, reader)
            if reader is not None and reading is not None:
                extractors.setdefault(prepared.extractor, []).append((reader, reading))
            tick(1)
    return [*_summed(models, extracts=False), *_summed(extractors, extracts=True)]


def _together(cells: Sequence[StudyCell], index: CardIndex) -> dict[tuple[str, str, str], list[StudyCell]]:
    """The cells by model, corpus and kind of task, which one plan can hold."""
    kinds = {task.name: task.card.kind for task in map(index.load_task, {Path(cell.task_card) for cell in cells})}
    found: dict[tuple[str, str, str], list[StudyCell]] = {}
    for cell in cells:
        found.setdefault((cell.model.label, cell.corpus, kinds[cell.task]), []).append(cell)
    return found


def _summed(found: dict[str, list[tuple[ModelCard, Estimate]]], *, extracts: bool) -> list[ModelEstimate]:
    return [
        ModelEstimate(name=name, card=parts[0][0], extracts=extracts, estimate=_sum(one for _, one in parts))
        for name, parts in found.items()
    ]


def _sum(estimates: Iterable[Estimate]) -> Estimate:
    """The sum over cells of one model. What is not known of one is not known of all."""
    first, *others = estimates
    for one in others:
        audio, cost = None, None
        if first.audio_tokens is not None and one.audio_tokens is not None:
            audio = first.audio_tokens + one.audio_tokens
        if first.most_cost is not None and one.most_cost is not None:
            cost = first.most_cost + one.most_cost
        first = replace(
            first,
            requests=first.requests + one.requests,
            audio_seconds=first.audio_seconds + one.audio_seconds,
            text_tokens=first.text_tokens + one.text_tokens,
            audio_tokens=audio,
            most_output_tokens=first.most_output_tokens + one.most_output_tokens,
            most_cost=cost,
        )
    return first
