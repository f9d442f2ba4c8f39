"""L2-ARCTIC: 24 speakers of six first languages read the ARCTIC prompts in English."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from vibe_harness.corpora.importers.base import Importer, LeftOut, Listing, folders, not_found
from vibe_harness.corpora.importers.hub import HubRow
from vibe_harness.corpora.importers.sources import open_source
from vibe_harness.errors import UserError
from vibe_harness.records import Clip

# First language and gender of each speaker, from the corpus's documentation (SKA is a woman).
SPEAKERS = {
    "arabic": {"male": ("ABA", "YBAA"), "female": ("SKA", "ZHAA")},
    "mandarin": {"male": ("BWC", "TXHC"), "female": ("LXC", "NCC")},
    "hindi": {"male": ("ASI", "RRBI"), "female": ("SVBI", "TNI")},
    "korean": {"male": ("HKK", "YKWK"), "female": ("HJK", "YDCK")},
    "spanish": {"male": ("EBVS", "ERMS"), "female": ("MBMPS", "NJS")},
    "vietnamese": {"male": ("HQTV", "TLV"), "female": ("PNV", "THV")},
}
FACTS = {
    speaker: {"gender": gender, "accent": language, "first_language": language}
    for language, genders in SPEAKERS.items()
    for gender, speakers in genders.items()
    for speaker in speakers
}
_NAME = re.compile(r"arctic_[ab]\d{4}")
_SUITCASE = "suitcase_corpus"  # spontaneous speech added in version 5: different content and conditions


def read(source: Path, work: Path, corpus: str) -> Listing:
    """Read the clips of SPEAKER/wav/, also from nested speaker folders, or from one zip per speaker.

    Raises UserError if some speakers are unpacked and others still zips, since those would silently be missing.
    """
    places = [source]
    unpacked = {folder.name.upper() for folder in folders(source) if (folder / "wav").is_dir()} & FACTS.keys()
    archives = _archives(source)
    if not unpacked:
        places = _unpacked(source, work, archives)
        source = work
    elif waiting := sorted(archives.keys() - unpacked):
        raise UserError(
            f"{source}: {len(unpacked)} speakers are unpacked and {len(waiting)} still zips "
            f"({archives[waiting[0]].name}{', ...' if len(waiting) > 1 else ''}): unpack these too, or name a folder "
            "of zips alone"
        )
    wavs, left_out = _speaker_folders(places, source)
    if not wavs:
        raise not_found(source, IMPORTER)
    texts = _texts(list(wavs.values()))
    clips = []
    seen: set[tuple[str, str]] = set()
    for speaker, folder in sorted(wavs.items()):
        for path in sorted((folder / "wav").iterdir()):
            file = path.relative_to(source).as_posix()
            sentence = path.stem.lower()
            if path.suffix.lower() != ".wav" or not _NAME.fullmatch(sentence):
                left_out.append(LeftOut(file, "name is not arctic_a0001.wav or the like"))
                continue
            if (speaker, sentence) in seen:
                left_out.append(LeftOut(file, "the same sentence under another name"))
                continue
            seen.add((speaker, sentence))
            groups = {**FACTS[speaker], "sentence_id": sentence}
            clips.append(Clip(f"{corpus}/{speaker}/{sentence}", file, speaker, groups, texts.get(sentence), sentence))
    absent = sorted(set(FACTS) - set(wavs))
    notes = [f"{len(absent)} of the 24 speakers are not there: {', '.join(absent)}"] if absent else []
    return Listing(source, clips, left_out, notes)


def read_hub(rows: Iterable[HubRow], work: Path, corpus: str) -> Listing:
    """Read a copy on the hub. The rows are written to `work` in the layout of the release, then read.

    A column gives the speaker (ABA, SKA, ...); the name of the audio, or a column, gives the sentence.
    """
    for row in rows:
        speaker = row.text("speaker", "speaker_id", "speaker_code", "speaker_name")
        match = _NAME.search(row.audio_name()) or _NAME.search(row.text("utterance_id", "id", "file", "path"))
        if not match:
            raise UserError(f"{row.place}: no sentence (arctic_a0001 or the like) in the name of its audio")
        row.write_audio(work, speaker, "wav", f"{match[0]}.wav")
        text = row.path(work, speaker, "transcript", f"{match[0]}.txt")
        text.parent.mkdir(exist_ok=True)
        text.write_text(row.text("text", "transcript", "transcription", "sentence"), encoding="utf-8")
    return read(work, work, corpus)


def _archives(source: Path) -> dict[str, Path]:
    """Speaker -> zip, as released."""
    found = sorted(path for folder in folders(source) for path in folder.iterdir() if path.suffix.lower() == ".zip")
    return {path.stem.upper(): path for path in reversed(found) if path.stem.upper() in FACTS}


def _unpacked(source: Path, work: Path, archives: Mapping[str, Path]) -> list[Path]:
    """Unpack the zips; returns their folders, without those of an earlier source in `work`."""
    if not archives:
        raise not_found(source, IMPORTER)
    work.mkdir(parents=True, exist_ok=True)
    return [open_source(archive, work / speaker) for speaker, archive in sorted(archives.items())]


def _speaker_folders(places: Iterable[Path], source: Path) -> tuple[dict[str, Path], list[LeftOut]]:
    """Speaker -> the folder that holds its wav/; and the folders that are left out."""
    wavs: dict[str, Path] = {}
    left_out: list[LeftOut] = []
    for folder in chain.from_iterable(map(folders, places)):
        below = folder.relative_to(source)
        speaker = folder.name.upper()  # some disks and programs change the case of names
        if folder.name == _SUITCASE:
            left_out.append(LeftOut(below.as_posix(), "spontaneous speech, not the prompts"))
        elif _SUITCASE in below.parts or not (folder / "wav").is_dir():
            continue
        elif speaker not in FACTS:
            left_out.append(LeftOut(below.as_posix(), "not a speaker of the corpus"))
        elif speaker in wavs:
            left_out.append(LeftOut(below.as_posix(), "a second copy of the speaker"))
        else:
            wavs[speaker] = folder
    return wavs, left_out


def _texts(speakers: list[Path]) -> dict[str, str]:
    """Sentence -> its text, from any speaker who has the transcript, since the prompts are shared."""
    texts: dict[str, str] = defaultdict(str)
    for folder in speakers:
        for path in sorted((folder / "transcript").glob("*.txt")):
            if path.stem.lower() not in texts:
                texts[path.stem.lower()] = " ".join(path.read_text(encoding="utf-8-sig", errors="replace").split())
    return texts


IMPORTER = Importer(
    title="L2-ARCTIC",
    licence="CC BY-NC 4.0",
    looks_for="a folder of each speaker (ABA, SKA, ...) with wav/ and transcript/ in it, or its zip (ABA.zip, ...)",
    read=read,
    columns=("gender", "accent", "first_language", "sentence_id"),
    hub=read_hub,
)
