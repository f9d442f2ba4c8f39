"""Compute agreement from judgments: by task, attribute and group, between judges, and between extractors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

from vibe_harness.errors import UserError
from vibe_harness.stats.judgment_agreement import cohen_kappa, paired_difference, share_right
from vibe_harness.store.checksums import run_digest
from vibe_harness.store.run_folder import RunFolder
from vibe_harness.validation.judgments import Judgment, Verdict
from vibe_harness.validation.results import (
    FORMAT,
    AgreementRate,
    ExtractorAgreement,
    ExtractorComparison,
    JudgedReading,
    JudgePair,
    RunValidation,
    Validation,
    write_run_validation,
)
from vibe_harness.validation.sample import Claim, Sample, SampledResponse, SampledRun, claims_of

Judgments = Mapping[str, Mapping[str, Judgment]]  # judge -> item -> judgment


@dataclass(frozen=True, slots=True)
class _Read:
    """One extractor's reading of one attribute of one response, with its judgments."""

    response: SampledResponse
    attribute: str
    claim: Claim
    judgments: Sequence[Judgment]

    @property
    def right(self) -> float:
        """Share of the judges who say that it is right."""
        return fmean(judgment.verdict is Verdict.RIGHT for judgment in self.judgments)


@dataclass(frozen=True, slots=True)
class _Resampling:
    resamples: int
    seed: int


def validate(sample: Sample, judgments: Judgments, *, resamples: int = 10_000, seed: int = 0) -> Validation:
    """Agreement of judges with every extractor of the sample.

    judgments: the current judgments of each judge. Raises UserError if there are none.
    """
    if not any(judgments.values()):
        raise UserError(f"the sample {sample.id} has no judgments yet: start with validate-extraction judge")
    how = _Resampling(resamples, seed)
    items = [item for item, *_ in sample.items()]
    anybody = set().union(*judgments.values())
    return Validation(
        format=FORMAT,
        sample=sample.id,
        simulated=any(sample.runs[response.run].simulated for response in sample.responses),
        complete=anybody >= set(items),
        judges={judge: len(found) for judge, found in judgments.items()},
        readings=len(items),
        resamples=resamples,
        seed=seed,
        extractors=[_extractor(name, _reads(sample.responses, name, judgments), how) for name in sample.extractors],
        pairs=[_pair(one, other, judgments) for one, other in combinations(judgments, 2)],
        comparisons=[_compare(sample, pair, judgments, how) for pair in combinations(sample.extractors, 2)],
    )


def keep_beside_runs(folder: Path, sample: Sample, judgments: Judgments, validation: Validation) -> list[str]:
    """Write the judgments into every run folder of the sample. Returns a message for each run where this failed.

    A page of the run that lacks them is removed.
    """
    missing = []
    for number, sampled in enumerate(sample.runs):
        run = RunFolder((folder / sampled.path).resolve())
        try:
            same = run_digest(run) == sampled.digest
        except UserError as error:
            missing.append(f"not written to a run folder: {error}")
            continue
        if not same:
            missing.append(f"not written to a run folder: {run.path}: the run changed since the sample was drawn")
            continue
        write_run_validation(run, _of_run(number, sampled, sample, judgments, validation))
        if run.page.is_file():
            run.page.unlink()
    return missing


def _of_run(
    number: int, sampled: SampledRun, sample: Sample, judgments: Judgments, validation: Validation
) -> RunValidation:
    own = [response for response in sample.responses if response.run == number]
    reads = _reads(own, sampled.extractor, judgments)
    return RunValidation(
        format=FORMAT,
        run=sampled.digest,
        models=sorted({run.model for run in sample.runs}),
        validation=validation,
        own=_extractor(sampled.extractor, reads, _Resampling(validation.resamples, validation.seed)),
        judged=[
            JudgedReading(
                request=response.request,
                attribute=attribute,
                extractors=claim.extractors,
                reading=str(claim.reading),
                values=claim.values,
                verdicts={judge: str(found[item].verdict) for judge, found in judgments.items() if item in found},
                wrong_items={
                    judge: found[item].wrong_items
                    for judge, found in judgments.items()
                    if item in found and found[item].wrong_items
                },
            )
            for response in own
            for item, attribute, claim in claims_of(response)
            if any(item in found for found in judgments.values())
        ],
    )


def _reads(responses: Iterable[SampledResponse], extractor: str, judgments: Judgments) -> list[_Read]:
    return [
        _Read(response, attribute, claim, [found[item] for found in judgments.values() if item in found])
        for response in responses
        for item, attribute, claim in claims_of(response)
        if extractor in claim.extractors
    ]


def _extractor(name: str, reads: Sequence[_Read], how: _Resampling) -> ExtractorAgreement:
    def by(key: Callable[[_Read], str], chosen: Iterable[_Read] = reads) -> dict[str, AgreementRate]:
        return {value: _agreement(own, how) for value, own in sorted(_split(chosen, key).items())}

    lists = [read for read in reads if len(read.claim.values) > 1]
    items = [count for read in lists for judgment in read.judgments for count in [_items(read.claim, judgment)]]
    tasks = sorted(_split(reads, lambda read: read.response.task).items())
    dimensions = sorted(_split(reads, lambda read: read.response.dimension).items())
    return ExtractorAgreement(
        extractor=name,
        overall=_agreement(reads, how),
        tasks=by(lambda read: read.response.task),
        attributes={task: by(lambda read: read.attribute, own) for task, own in tasks},
        groups={dimension: by(lambda read: read.response.group, own) for dimension, own in dimensions},
        items=sum(number for number, _ in items),
        wrong_items=sum(wrong for _, wrong in items),
    )


def _split(reads: Iterable[_Read], key: Callable[[_Read], str]) -> dict[str, list[_Read]]:
    parts: dict[str, list[_Read]] = defaultdict(list)
    for read in reads:
        parts[key(read)].append(read)
    return parts


def _items(claim: Claim, judgment: Judgment) -> tuple[int, int]:
    """Number of list values that were judged one by one, and number of those marked wrong.

    If a list is judged wrong without a marked value, it is unknown which value is wrong or missing.
    """
    known = judgment.verdict is Verdict.RIGHT or judgment.wrong_items
    return (len(claim.values), len(judgment.wrong_items)) if known else (0, 0)


def _agreement(reads: Sequence[_Read], how: _Resampling) -> AgreementRate:
    judged = [read for read in reads if read.judgments]
    sums = list(_by_response((read.response.id, read.right) for read in judged))
    share = share_right(
        [right for right, _ in sums], [number for _, number in sums], resamples=how.resamples, seed=how.seed
    )
    return AgreementRate(
        share=share.value,
        interval=share.interval,
        exact=share.exact,
        right=sum(right for right, _ in sums),
        judged=len(judged),
        responses=len(sums),
        waiting=sum(read.claim.judged and not read.judgments for read in reads),
        not_read=sum(not read.claim.judged for read in reads),
    )


def _by_response(found: Iterable[tuple[str, float]]) -> Iterator[tuple[float, int]]:
    """Sum and number of the judgments of each response, in order of first appearance."""
    sums: dict[str, list[float]] = defaultdict(list)
    for response, right in found:
        sums[response].append(right)
    return ((sum(rights), len(rights)) for rights in sums.values())


def _pair(one: str, other: str, judgments: Judgments) -> JudgePair:
    both = [item for item in judgments[one] if item in judgments[other]]
    verdicts = [[judgments[judge][item].verdict is Verdict.RIGHT for item in both] for judge in (one, other)]
    found = cohen_kappa(*verdicts)
    return JudgePair(
        judges=(one, other), judged=len(both), same=found.same, kappa=found.kappa, undefined=found.undefined
    )


def _compare(sample: Sample, pair: tuple[str, str], judgments: Judgments, how: _Resampling) -> ExtractorComparison:
    """Compare two extractors on the attributes that both read and that were judged for both.

    Attributes that only one extractor could read are counted.
    """
    pairs = list(_paired_reads(sample, pair, judgments))
    both = [(first, second) for first, second in pairs if first.judgments and second.judgments]
    sums = [list(_by_response((reads[side].response.id, reads[side].right) for reads in both)) for side in (0, 1)]
    numbers = [number for _, number in sums[0]]
    rights = [[right for right, _ in side] for side in sums]
    found = paired_difference(rights[0], rights[1], numbers, resamples=how.resamples, seed=how.seed)
    return ExtractorComparison(
        first=pair[0],
        second=pair[1],
        judged=len(both),
        responses=len(numbers),
        first_share=sum(rights[0]) / len(both) if both else None,
        second_share=sum(rights[1]) / len(both) if both else None,
        difference=found.value,
        interval=found.interval,
        p_value=found.p_value,
        permutations=how.resamples,
        first_not_read=sum(not first.claim.judged and second.claim.judged for first, second in pairs),
        second_not_read=sum(first.claim.judged and not second.claim.judged for first, second in pairs),
    )


def _paired_reads(sample: Sample, pair: tuple[str, str], judgments: Judgments) -> Iterator[tuple[_Read, _Read]]:
    """What two extractors read for the same attribute of the same response."""
    first, second = (
        {(read.response.id, read.attribute): read for read in _reads(sample.responses, name, judgments)}
        for name in pair
    )
    yield from ((first[key], second[key]) for key in first if key in second)
