"""What `vibe-harness study --dry-run` shows: requests, hours of audio, price and time of each model and extractor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from vibe_harness.cli.output import echo

if TYPE_CHECKING:
    from vibe_harness.studies.estimating import ModelEstimate


def show_study_estimate(found: Sequence[ModelEstimate], speed: float, as_json: bool) -> None:
    """One table: a row for each model and extractor."""
    from vibe_harness.cli.terminal import print_json, print_table

    if as_json:
        print_json([{"models": [_plain_estimate(one, speed) for one in found]}])
        return
    rows = [
        [
            one.name, one.card.backend, f"{one.estimate.requests:,}",
            f"{one.estimate.audio_seconds / 3600:.1f}" if one.card.audio else "",
            _longest(one), _price(one), _rounded(one.minutes(speed)),
        ]
        for one in found
    ]  # fmt: skip
    headings = ["model", "back end", "requests", "hours of audio", "clips", "at most", f"minutes at {speed:g}/s"]
    print_table(headings, rows)
    models = [one for one in found if not one.extracts]
    total = sum(one.estimate.requests for one in models)
    hours = sum(one.estimate.audio_seconds for one in models) / 3600
    echo(f"{total:,} requests to {len(models)} models over {hours:,.1f} hours of audio; in all {_total_price(found)}")
    for line in _notes(found):
        echo(line)


def _notes(found: Sequence[ModelEstimate]) -> Iterator[str]:
    """What makes scores incomparable, and which figures hold on a day only."""
    models = [one for one in found if not one.extracts]
    if len({(one.card.max_seconds, one.card.long_clips) for one in models}) > 1:
        yield "Long clips are not treated alike by all models: set long_clips and max_seconds in the study"
    if len(extractors := [one.name for one in found if one.extracts]) > 1:
        yield f"Read by several extractors, {', '.join(extractors)}, so that scores do not compare: set extractor"
    for one in found:
        if one.card.prices is not None:
            yield f"{one.name}: prices read on {one.card.prices.read_on}{_from(one.card.prices.source)}"
        if one.card.available_until is not None:
            other = f", then {one.card.replaced_by}" if one.card.replaced_by else ""
            yield f"{one.name}: served until {one.card.available_until}{other}"


def _rounded(minutes: float) -> str:
    return f"{minutes:,.0f}" if minutes >= 10 else f"{minutes:.1f}"


def _longest(one: ModelEstimate) -> str:
    """How long clips are treated."""
    if not one.card.audio:
        return ""
    return "whole" if one.card.max_seconds is None else f"{one.card.long_clips} over {one.card.max_seconds:g} s"


def _price(one: ModelEstimate) -> str:
    if one.card.prices is None:
        return "no price"
    cost = one.estimate.most_cost
    return "not known" if cost is None else f"{cost:,.2f} {one.card.prices.currency}"


def _total_price(found: Sequence[ModelEstimate]) -> str:
    """The sum of the prices that are known, by currency."""
    sums: dict[str, float] = {}
    for one in found:
        if one.card.prices is not None and one.estimate.most_cost is not None:
            currency = one.card.prices.currency
            sums[currency] = sums.get(currency, 0) + one.estimate.most_cost
    return " and ".join(f"at most {cost:,.2f} {currency}" for currency, cost in sorted(sums.items())) or "no price"


def _from(source: str | None) -> str:
    return f" ({source})" if source else ""


def _plain_estimate(one: ModelEstimate, speed: float) -> dict[str, object]:
    return {
        "name": one.name, "extracts": one.extracts, **asdict(one.estimate),
        "minutes": one.minutes(speed), "max_seconds": one.card.max_seconds, "long_clips": one.card.long_clips,
        "available_until": one.card.available_until, "replaced_by": one.card.replaced_by,
    }  # fmt: skip
