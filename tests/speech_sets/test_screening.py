"""Error rates worked by hand, bins, and the sample for people."""

import csv
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.errors import UserError
from vibe_harness.speech_sets.card import Rating, Voice
from vibe_harness.speech_sets.rating import draw, largest_remainders, rated, write_sheet
from vibe_harness.speech_sets.screening import BINS, ScreenedClip, error_rate, screened, shares, write_screening
from vibe_harness.speech_sets.synthesis import SpokenClip
from vibe_harness.speech_sets.texts import SpokenText


@pytest.mark.parametrize(
    ("said", "heard", "unit", "rate"),
    [
        ("The cat sat.", "the cat sat", "word", 0.0),
        ("It's five o'clock", "its five oclock", "word", 0.0),
        ("the cat sat down", "the cat sat", "word", 1 / 4),  # one deletion
        ("the cat sat down", "a cat sat down here", "word", 2 / 4),  # a substitution and an insertion
        ("Paris", "ah nice", "word", 2.0),  # may exceed 1
        ("你好吗", "你好", "character", 1 / 3),
        ("你好 吗？", "你好吗", "character", 0.0),
        ("Four", "", "word", 1.0),
    ],
)
def test_error_rates_by_hand(said: str, heard: str, unit: str, rate: float) -> None:
    assert error_rate(said, heard, unit) == pytest.approx(rate)  # type: ignore[arg-type]


def test_a_text_without_words_cannot_be_screened() -> None:
    with pytest.raises(UserError, match="holds no word"):
        error_rate("...", "dots")


def clip(
    item: str, errors: dict[str, float], accent: str = "x", part: str = "question", language: str = "en"
) -> ScreenedClip:
    voice = Voice(voice=f"{language}-{accent}", groups={"accent": accent, "language": language})
    text = SpokenText(item, part, "said", "said", "said")
    file = f"audio/{language}-{accent}/{item}_{part}.wav"
    return ScreenedClip(SpokenClip(text, voice, file, f"hash of {file}", 1.0), errors)


@pytest.mark.parametrize(
    ("errors", "name"),
    [
        ((0.0, 0.9), "0"),
        ((0.2, 0.3), "0 to 0.2"),
        ((0.21, 5), "0.2 to 0.6"),
        ((0.6, 0.7), "0.2 to 0.6"),
        ((0.61, 2), "over 0.6"),
    ],
)
def test_the_smaller_error_rate_makes_the_bin(errors: tuple[float, float], name: str) -> None:
    assert clip("1", {"a": errors[0], "b": errors[1]}).bin == name


def test_shares_are_of_each_language() -> None:
    rows = [clip("1", {"a": 0.0}), clip("2", {"a": 0.1}), clip("1", {"a": 0.9}, language="ko")]
    assert shares(rows) == {
        "en": {"0": 0.5, "0 to 0.2": 0.5, "0.2 to 0.6": 0.0, "over 0.6": 0.0},
        "ko": {"0": 0.0, "0 to 0.2": 0.0, "0.2 to 0.6": 0.0, "over 0.6": 1.0},
    }


def test_largest_remainders_by_hand() -> None:
    # 10 seats over 7, 7 and 1: exact 4.67, 4.67, 0.67; floors 4, 4, 0; two seats are left: ties go by name
    assert largest_remainders({"b": 7, "a": 7, "c": 1}, 10) == {"b": 5, "a": 5, "c": 0}
    assert largest_remainders({"a": 3, "b": 1}, 2) == {"a": 2, "b": 0}


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=6), st.data())
def test_seats_are_all_given_and_within_one_of_the_share(sizes: dict[str, int], data: st.DataObject) -> None:
    total = sum(sizes.values())
    seats = data.draw(st.integers(0, total))
    given_ = largest_remainders(sizes, seats)
    assert sum(given_.values()) == seats
    assert all(abs(given_[name] - seats * size / total) < 1 and given_[name] <= size for name, size in sizes.items())


def test_the_sample_keeps_accents_prefers_questions_and_takes_turns_over_subjects() -> None:
    rows = [
        clip(f"{item}", {"a": 0.1}, accent, part)
        for accent, items in (("british", range(30)), ("indian", range(10)))
        for item in items
        for part in ("question", "option_a")
    ] + [clip("99", {"a": 0.0}), clip("98", {"a": 0.9}, "british")]
    subjects = {str(item): "abc"[item % 3] for item in range(30)}
    drawn = draw(rows, Rating(per_bin=12, rotate="subject"), subjects, "question")
    low = [row for row in drawn if row.bin == BINS[1]]
    assert Counter(row.clip.voice.groups["accent"] for row in low) == {"british": 9, "indian": 3}
    assert {row.clip.text.part for row in low} == {"question"}
    british = [row for row in low if row.clip.voice.groups["accent"] == "british"]
    assert Counter(subjects[row.clip.text.item] for row in british) == {"a": 3, "b": 3, "c": 3}
    assert [row.clip.text.item for row in drawn if row.bin == BINS[3]] == ["98"]
    assert not [row for row in drawn if row.bin == BINS[0]]
    assert drawn == draw(rows, Rating(per_bin=12, rotate="subject"), subjects, "question")
    assert drawn != draw(rows, Rating(per_bin=12, rotate="subject", seed=1), subjects, "question")


def test_too_few_items_are_filled_up_from_the_pool() -> None:
    rows = [clip("1", {"a": 0.1}, part=part) for part in ("question", "option_a", "option_b")]
    assert {row.clip.text.part for row in draw(rows, Rating(per_bin=3), {}, "question")} == {
        "question",
        "option_a",
        "option_b",
    }


def test_ratings_are_kept_counted_and_never_lost(tmp_path: Path) -> None:
    sheet = tmp_path / "rating.csv"
    rows = [clip("1", {"a": 0.1}), clip("2", {"a": 0.9})]
    assert write_sheet(sheet, rows) == 2
    assert rated(sheet) == {}
    table = list(csv.DictReader(sheet.open(encoding="utf-8")))
    table[0]["rating"] = " Correct"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    assert write_sheet(sheet, rows) == 2
    assert rated(sheet) == {("en", "0 to 0.2"): {"correct": 1, "acceptable": 0, "incorrect": 0}}
    with pytest.raises(UserError, match="1 ratings are of clips that are not in the sample"):
        write_sheet(sheet, rows[1:])
    sheet.write_text(sheet.read_text(encoding="utf-8").replace("correct", "superb"), encoding="utf-8")
    with pytest.raises(UserError, match=r"rating.csv:2: the rating 'superb' is none of"):
        rated(sheet)


@pytest.mark.parametrize(("language", "rate"), [("zh", 1 / 3), ("zh-CN", 1 / 3), ("ko-KR", 1.0)])
def test_a_region_does_not_change_what_is_counted(language: str, rate: float) -> None:
    spoken = SpokenClip(
        SpokenText("1", "q", "你好吗", "你好吗", "你好吗"),
        clip("1", {}, language=language).clip.voice,
        "1.wav",
        "h",
        1.0,
    )
    units: dict[str, Literal["word", "character"]] = {"zh": "character"}
    assert screened([spoken], {"r": {"1.wav": "你好"}}, units)[0].error == pytest.approx(rate)


def test_no_sheet_holds_a_formula(tmp_path: Path) -> None:
    said = SpokenText("1", "q", "=1+1", "=1+1", "=1+1")
    row = ScreenedClip(SpokenClip(said, clip("1", {}).clip.voice, "1.wav", "h", 1.0), {"r": 1.0})
    write_sheet(tmp_path / "rating.csv", [row])
    write_screening(tmp_path / "screening.csv", [row], {"r": {"1.wav": "@SUM(1)"}})
    for name in ("rating.csv", "screening.csv"):
        with (tmp_path / name).open(encoding="utf-8-sig", newline="") as file:
            cells = [cell for line in csv.reader(file) for cell in line]
        assert "'=1+1" in cells and not [cell for cell in cells if cell.startswith(("=", "@"))]
