"""Which clips a card takes, and which fall for which reason."""

from collections import Counter
from pathlib import Path

import pytest

from vibe_harness.corpora.card import Balancing, Selection
from vibe_harness.corpora.importers.base import counted
from vibe_harness.corpora.lexicon import load_lexicon, words_found
from vibe_harness.corpora.select import add_bands, balanced, keep_where, select, without_duplicates
from vibe_harness.errors import UserError
from vibe_harness.library import library_root
from vibe_harness.records import Clip


def _clip(speaker: str, sentence: str = "s1", text: str | None = "plain words", **groups: str) -> Clip:
    name = f"{speaker}/{sentence}-{'-'.join(groups.values())}"
    return Clip(f"c/{name}", f"{name}.wav", speaker, {**groups, "sentence_id": sentence}, text, sentence)


def test_bands() -> None:
    clips = [_clip("a", age="29"), _clip("b", age="30.0"), _clip("c", age="49"), _clip("d", age="50"), _clip("e")]
    clips += [_clip("f", age="NaN"), _clip("g", age="unknown")]
    banded = add_bands(clips, {"age": [30, 50]})
    assert [c.groups.get("age_group") for c in banded] == ["under 30", "30 to 49", "30 to 49", "50 and over"] + 3 * [
        None
    ]


def test_where() -> None:
    clips = [_clip("a", accent="dutch"), _clip("b", accent="korean"), _clip("c")]
    kept, left = keep_where(clips, {"accent": ["korean", "french"]})
    assert [clip.speaker for clip in kept] == ["b"] and counted(left) == {"accent is not selected": 2}
    with pytest.raises(UserError, match=r"no clip has the accent 'koraen'. Did you mean 'korean'"):
        keep_where(clips, {"accent": ["koraen"]})
    with pytest.raises(UserError, match="no clip has the column 'acent'"):
        keep_where(clips, {"acent": ["korean"]})


def test_copies_that_agree_and_copies_that_do_not() -> None:
    """CREMA-D holds byte-identical takes under two emotions: either label may be wrong."""
    happy, neutral = _clip("1006", "TIE", emotion="happy"), _clip("1006", "TIE", emotion="neutral")
    twice = [_clip("2", "x", emotion="sad"), Clip("c/2/again", "again.wav", "2", {"emotion": "sad", "sentence_id": "x"},
                                                 "plain words", "x")]  # fmt: skip
    other = _clip("3", "y")
    clips = [happy, neutral, *twice, other]
    same = {happy.file: "h1", neutral.file: "h1", twice[0].file: "h2", twice[1].file: "h2", other.file: "h3"}
    kept, left = without_duplicates(clips, same)
    assert [clip.id for clip in kept] == [twice[0].id, other.id]
    assert counted(left) == {"one waveform under two labels": 2, "a copy of another clip": 1}
    assert left[0].detail == f"the same as {neutral.file}" and left[1].detail == f"the same as {happy.file}"


WORDS = "# comment\n[gender]\nhe   # a pronoun\nmother\n[age]\nold\n"


def test_lexicon_and_what_it_finds(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    lexicon = load_lexicon(path)
    assert lexicon == {"he": "gender", "mother": "gender", "old": "age"}
    assert words_found("HE saw his Mother's old, old hat.", lexicon) == ["he", "mother", "old"]
    assert words_found("He’s there; he'll come", lexicon) == ["he"]
    assert words_found("The cold mothers held hope", lexicon) == []  # whole words only


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("he\n", ":1: 'he' has no heading above it"),
        ("[a]\ntwo words\n", ":2: 'two words' is not a single word"),
        ("[a]\nhe\n[b]\nHe\n", ":4: 'he' is listed twice"),
    ],
)
def test_a_lexicon_that_is_none(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "words.txt").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=said):
        load_lexicon(tmp_path / "words.txt")
    with pytest.raises(UserError, match="no such file"):
        load_lexicon(tmp_path / "absent.txt")
    (tmp_path / "words.txt").write_bytes("[a]\ncafé\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"words.txt:2: not UTF-8"):
        load_lexicon(tmp_path / "words.txt")


def test_a_lexicon_as_windows_saves_it(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes(b"\xef\xbb\xbf[a]\r\nhe\r\n")
    assert load_lexicon(tmp_path / "words.txt") == {"he": "a"}


def test_a_lexicon_lies_beside_its_card(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("[a]\nhe\n", encoding="utf-8")
    (tmp_path / "cards").mkdir()
    with pytest.raises(UserError, match="is outside of"):
        select([_clip("a")], Selection(lexicon="../words.txt"), tmp_path / "cards")


def test_the_list_that_comes_along() -> None:
    lexicon = load_lexicon(library_root() / "corpora" / "lexicons" / "demographic.txt")
    assert set(lexicon.values()) == {"gender", "age", "race"}
    for text, word in [
        ("She had a letter in her hand", "she"),
        ("An elderly neighbour waved", "elderly"),
        ("The boys ran down the hill", "boys"),
        ("A Chinese lantern hung there", "chinese"),
        ("It was his father's house", "father"),
    ]:
        assert word in words_found(text, lexicon)
    for text in ("The surface is slick", "We left at nine", "History is on the shelf", "A manual of chemistry"):
        assert not words_found(text, lexicon)


def test_the_selection_of_l2_arctic(tmp_path: Path) -> None:
    """Sentences that every speaker has, none with a word of the list, the same ones of all."""
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    texts = {f"s{i}": f"sentence number {i}" for i in range(10)} | {"he": "there he goes", "none": None}
    clips = [_clip(speaker, s, text) for speaker in ("A", "B", "C") for s, text in texts.items()]
    clips = [clip for clip in clips if (clip.speaker, clip.sentence_id) != ("B", "s3")]
    chosen = Selection(lexicon="words.txt", shared_sentences=True, sentences=4, seed=1)
    kept, left = select(clips, chosen, tmp_path)
    sentences = {clip.sentence_id for clip in kept}
    assert len(kept) == 12 and len(sentences) == 4 and not sentences & {"s3", "he", "none"}
    assert counted(left) == {
        "sentence not drawn": 15, "mentions gender": 3, "no transcript to look for listed words in": 3,
        "not every speaker has the sentence": 2,
    }  # fmt: skip
    assert next(one.detail for one in left if one.why == "mentions gender") == "he"
    more, _ = select(clips, chosen.model_copy(update={"sentences": 6}), tmp_path)
    assert sentences < {clip.sentence_id for clip in more}  # the larger selection keeps the smaller
    with pytest.raises(UserError, match="10 wanted, but only 9 remain"):
        select(clips, chosen.model_copy(update={"sentences": 10}), tmp_path)


def test_balance_within_each_language() -> None:
    clips = [_clip(f"kf{i}", accent="korean", gender="female") for i in range(5)]
    clips += [_clip(f"km{i}", accent="korean", gender="male") for i in range(2)]
    clips += [_clip(f"ff{i}", accent="french", gender="female") for i in range(1)]
    clips += [_clip(f"fm{i}", accent="french", gender="male") for i in range(3)]
    clips += [_clip("d1", accent="dutch", gender="male"), _clip("x", accent="korean")]
    kept, left = balanced(clips, Balancing(column="gender", within="accent"), seed=0)
    assert Counter((clip.groups["accent"], clip.groups["gender"]) for clip in kept) == {
        ("korean", "female"): 2, ("korean", "male"): 2, ("french", "female"): 1, ("french", "male"): 1,
    }  # fmt: skip
    assert counted(left) == {"speaker beyond an equal number of each gender": 6, "no gender stated": 1}
    assert kept == balanced(list(reversed(clips)), Balancing(column="gender", within="accent"), seed=0)[0][::-1]
