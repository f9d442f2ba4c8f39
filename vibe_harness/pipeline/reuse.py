"""What a run takes over from an earlier start: which answers, from when, and given by which model where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from vibe_harness.backends.protocol import addresses_of
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, UserError
from vibe_harness.extraction.opening import find_extractor
from vibe_harness.planning.prepare import PreparedRun
from vibe_harness.records import Outcome
from vibe_harness.store.engines import EngineStart, engine_starts
from vibe_harness.store.extractions import read_extractions
from vibe_harness.store.responses import FinalResponses, read_responses
from vibe_harness.store.run_folder import RunFolder

ANEW = "--fresh asks all anew beside this run"


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """What is asked of the model and what is reused, at the start of a run."""

    requests: int  # of the run
    answered: int  # of them, before this start
    since: float | None  # when the first and the last of those answers were stored, in seconds since 1970
    until: float | None
    served_model: str | None  # the name of the model that gave them, as its engine reported it
    addresses: Sequence[str]  # of the servers that gave them
    read: bool  # whether extractions were stored before, which are reused for the texts that they belong to


def find_reuse(requests: int, finals: FinalResponses, folder: RunFolder) -> Reuse:
    """What a run folder holds already. requests: of the run."""
    return Reuse(
        requests=requests,
        answered=len(finals.answered),
        since=finals.since,
        until=finals.until,
        served_model=finals.served_model,
        addresses=_addresses(engine_starts(folder.engines, "model")),
        read=_has_content(folder, "extractor"),
    )


def reuse_line(prepared: PreparedRun, reuse: Reuse) -> str:
    """The first line of a run: what is asked anew and what is reused, and which extractor reads the answers."""
    model = prepared.plan.model
    at = "".join(f" at {address}" for address in [", ".join(addresses_of(model))] if address)
    left = reuse.requests - reuse.answered
    if not reuse.answered:
        asked = f"asking {model.model} ({model.id}{at}) {left:,} requests; no answer is reused"
    else:
        given = "".join([*(f" by '{name}'" for name in [reuse.served_model] if name), _at(reuse.addresses)])
        kept = f"answers{_when(reuse)}{given and f', given{given},'} are reused ({ANEW})"
        if left:
            asked = f"asking {model.model} ({model.id}{at}) {left:,} of {reuse.requests:,} requests; "
            asked += f"{reuse.answered:,} {kept}"
        else:
            asked = f"asking nothing: all {reuse.answered:,} {kept}"
    default = ", the default (another: --extractor NAME)" if prepared.config.extractor is None else ""
    before = "; what it read before is reused" if reuse.read else ""
    return f"{prepared.folder}: {asked}. The answers are read by {prepared.extractor}{default}{before}."


def check_addresses(prepared: PreparedRun, folder: RunFolder) -> None:
    """Raise UserError if a server is at another address than the one that gave the stored answers or readings.

    Other weights may answer there. A card with a pinned revision, and --same-model, say that they are the same.
    """
    reader = find_extractor(prepared.extractor, prepared.index)
    cards: list[tuple[Literal["model", "extractor"], ModelCard | None]] = [
        ("model", prepared.plan.model), ("extractor", reader),
    ]  # fmt: skip
    for role, card in cards:
        if card is None or card.revision is not None or prepared.config.same_model:
            continue
        starts = [start for start in engine_starts(folder.engines, role) if start.addresses]
        _check_command(card, starts, folder, role)
        new = [address for address in addresses_of(card) if address not in _addresses(starts)]
        if starts and new and _has_content(folder, role):
            what = "answers" if role == "model" else "readings"
            raise UserError(
                f"{folder.path}: its {what} come from {_addresses(starts)[-1]}{_on(starts[-1].time)}, and "
                f"'{card.model}' is now at {new[0]}, where other weights may answer, for its card pins no revision: "
                f"{ANEW}; --same-model goes on with the {what}, if it is the same model"
            )


def _check_command(
    card: ModelCard, starts: Sequence[EngineStart], folder: RunFolder, role: Literal["model", "extractor"]
) -> None:
    """Raise UserError if the card starts its server by another command than before: it may load other weights."""
    before = [start.command for start in starts if start.command is not None]
    if card.serve and before and before[-1] != card.serve.command and _has_content(folder, role):
        raise UserError(
            f"{folder.path}: the server of '{card.model}' was started by '{before[-1]}' and is now started by "
            f"'{card.serve.command}', which may load other weights: {ANEW}; --same-model goes on, if the model is "
            "the same"
        )


def check_checkpoint(prepared: PreparedRun, folder: RunFolder, checkpoint: str | None) -> None:
    """Raise EngineError if a server that names the checkpoint it has loaded names another one than before."""
    before = [start.checkpoint for start in engine_starts(folder.engines, "model") if start.checkpoint]
    unsaid = prepared.plan.model.revision is None and not prepared.config.same_model
    if unsaid and checkpoint and before and before[-1] != checkpoint and _has_content(folder, "model"):
        raise EngineError(
            f"{folder.path}: its answers come from the checkpoint '{before[-1]}', and the server now has "
            f"'{checkpoint}' under the same name: {ANEW}; --same-model goes on with the answers, if it is the same "
            "model"
        )


def _has_content(folder: RunFolder, role: Literal["model", "extractor"]) -> bool:
    """Whether anything but failures is stored of an engine in that role."""
    if role == "model":
        return any(
            stored.outcome is not Outcome.ERROR
            for path in (folder.responses, folder.transcriptions)
            for stored in read_responses(path)
        )
    return any(not stored.failed for stored in read_extractions(folder.extractions))


def _addresses(starts: Sequence[EngineStart]) -> list[str]:
    return list(dict.fromkeys(address for start in starts for address in start.addresses))


def _at(addresses: Sequence[str]) -> str:
    return f" at {', '.join(addresses)}" if addresses else ""


def _when(reuse: Reuse) -> str:
    if reuse.since is None or reuse.until is None:
        return ""
    first, last = _minute(reuse.since), _minute(reuse.until)
    return f" of {first} UTC" if first == last else f" of {first} to {last} UTC"


def _on(time: float | None) -> str:
    return "" if time is None else f" ({_minute(time)} UTC)"


def _minute(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
