"""BiasInEar: multiple-choice questions as speech, 400 questions in 28 configurations; Parquet files or the hub."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vibe_harness.corpora.importers.base import Importer, Listing, folders, not_found
from vibe_harness.corpora.importers.hub import HubRow
from vibe_harness.corpora.table_rows import require_columns
from vibe_harness.errors import UserError
from vibe_harness.records import Clip

CONFIGS = tuple(f"{language}_{gender}" for language in ("en", "zh", "ko") for gender in ("Female", "Male"))
PARTS = ("question", "option_a", "option_b", "option_c", "option_d")
REVERSED = {"A": "D", "B": "C", "C": "B", "D": "A"}
PLAIN = ("sample_id", "subject", "subject_category", "order", "accent", "answer", "cultural_sensitivity_label")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class _Row:
    """What is needed of a row to compare reversed rows with original ones."""

    place: str
    order: str
    options: tuple[str, ...]
    answer: str


def read(source: Path, work: Path, corpus: str) -> Listing:
    """Rows of the Parquet files of each configuration (a folder CONFIG/, or files named CONFIG-*)."""
    files = {config: _files(source, config) for config in CONFIGS}
    if not any(files.values()):
        raise not_found(source, IMPORTER)
    rows = (row for config, paths in files.items() for path in paths for row in _parquet(path, config))
    return read_hub(rows, work, corpus)


def read_hub(rows: Iterable[HubRow], work: Path, corpus: str) -> Listing:
    """Write the five audio files of each row below `work`, and make it a clip: the question, with options in columns.

    Each accent and gender of a language is one synthetic voice, which is taken as the speaker. Raises UserError if the
    rows are not as the benchmark documents them: a repeated sample, a reversed row whose options are not those of the
    original row, answers remapped in some reversed rows and not in others.
    """
    clips: list[Clip] = []
    pairs: dict[tuple[str, str, str], dict[str, _Row]] = defaultdict(dict)
    taken: dict[tuple[str, str], str] = {}  # config and name of its files -> sample
    for row in rows:
        config = row.config
        facts = _facts(row)
        language, gender = config.split("_")
        place = _place(row, facts)
        answer = facts["answer"].upper()
        options = tuple(row.text(f"{part}_text") for part in PARTS[1:])
        pair = pairs[config, facts["sample_id"], facts["accent"]]
        if facts["order"] in pair:
            raise UserError(f"{place}: is repeated, so sample_id does not identify a question within {config}")
        pair[facts["order"]] = _Row(place, facts["order"], options, answer)
        name = _UNSAFE.sub("-", f"{facts['sample_id']}_{facts['accent']}_{facts['order']}")
        if (config, name.lower()) in taken:
            raise UserError(
                f"{place}: sample '{taken[config, name.lower()]}' would have the same file names: rename one"
            )
        taken[config, name.lower()] = facts["sample_id"]
        files = {part: f"{config}/{name}_{part}{row.audio_suffix(part)}" for part in PARTS}
        for part, file in files.items():
            row.write_audio(work, *file.split("/"), column=part)
        speaker = _UNSAFE.sub("-", f"{language}-{facts['accent']}-{gender}".lower())
        groups = {
            "language": language,
            "gender": gender.lower(),
            "accent": facts["accent"],
            "order": facts["order"],
            "subject": facts["subject"],
            "subject_category": facts["subject_category"],
            "cultural_sensitivity": facts["cultural_sensitivity_label"],
            "sentence_id": facts["sample_id"],
            "answer": answer,
            **{f"{part}_file": files[part] for part in PARTS[1:]},
            **{f"{part}_text": text for part, text in zip(PARTS[1:], options, strict=True)},
        }
        clip_id = f"{corpus}/{speaker}/{facts['sample_id']}-{facts['order']}"
        kept = {column: fact for column, fact in groups.items() if fact}
        clips.append(Clip(clip_id, files["question"], speaker, kept, row.text("question_text"), facts["sample_id"]))
    return Listing(work, clips, [], _checked_answers(pairs.values()))


def _facts(row: HubRow) -> dict[str, str]:
    """The plain columns of a row. Raises UserError for a missing column and for a value that the benchmark lacks."""
    if row.config not in CONFIGS:
        raise UserError(f"{row.place}: the configurations of BiasInEar are {', '.join(CONFIGS)}, not '{row.config}'")
    require_columns(row.place, row.cells, [*PLAIN, *PARTS, *(f"{part}_text" for part in PARTS)])
    facts = {name: row.text(name) for name in PLAIN}
    if facts["answer"].upper() not in REVERSED or facts["order"] not in ("original", "reversed"):
        raise UserError(f"{_place(row, facts)}: answer '{facts['answer']}' is not A to D, or the order is unknown")
    return facts


def _place(row: HubRow, facts: Mapping[str, str]) -> str:
    return f"{row.place}: sample '{facts['sample_id']}', accent '{facts['accent']}', order '{facts['order']}'"


def _checked_answers(pairs: Iterable[Mapping[str, _Row]]) -> list[str]:
    """Compare reversed rows with the original ones. Returns notes on what the answers of reversed rows mean."""
    remapped: dict[bool, _Row] = {}
    alone = 0
    for pair in pairs:
        if len(pair) < 2:
            alone += 1
            continue
        first, second = pair["original"], pair["reversed"]
        if second.options != first.options[::-1]:
            raise UserError(f"{second.place}: its options are not those of the original row in reverse")
        if second.answer not in (first.answer, REVERSED[first.answer]):
            raise UserError(f"{second.place}: answer {second.answer}, where the original row has {first.answer}")
        remapped[second.answer != first.answer] = second
    if len(remapped) == 2:
        raise UserError(
            f"{remapped[True].place}: its answer was moved along with the options, and that of {remapped[False].place} "
            "was not: the answers cannot be trusted"
        )
    notes = [f"{alone} samples have one order only"] if alone else []
    if True in remapped:
        notes.append("answers of reversed rows name the option as it stands in that row")
    elif False in remapped:
        notes.append("answers of reversed rows name the option of the original order: column answer is as published")
    return notes


def _files(source: Path, config: str) -> list[Path]:
    for folder in folders(source):
        found = sorted(folder.glob(f"{config}/*.parquet")) or sorted(folder.glob(f"{config}*.parquet"))
        if found:
            return found
    return []


def _parquet(path: Path, config: str) -> Iterator[HubRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=16):
            for cells in batch.to_pylist():
                number += 1
                yield HubRow(f"{path}, row {number}", str(path.parent.resolve()), config, cells)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file, or damaged: {error}") from None


IMPORTER = Importer(
    title="BiasInEar",
    licence="see its page on the hub",
    looks_for=f"Parquet files in folders {', '.join(CONFIGS)}",
    read=read,
    columns=(
        "language",
        "gender",
        "accent",
        "order",
        "subject",
        "subject_category",
        "cultural_sensitivity",
        "sentence_id",
        "answer",
        *(f"{part}_file" for part in PARTS[1:]),
        *(f"{part}_text" for part in PARTS[1:]),
    ),
    hub=read_hub,
    synthetic=True,
)
