"""From observations to arrays of speakers, groups and values."""

import pandas as pd
import pytest

from vibe_harness.errors import UserError
from vibe_harness.metrics.frame_counts import Cells, speakers_of, strata_codes, value_counts


def frame_of(rows):
    """Observations out of (speaker, group, gender, values)."""
    return pd.DataFrame(
        [
            {
                "request": str(number), "speaker": speaker, "group": group, "group_gender": gender, "attribute": "a",
                "reading": "value" if values else "none", "values": values,
            }
            for number, (speaker, group, gender, values) in enumerate(rows)
        ]
    )  # fmt: skip


ROWS = [
    ("b", "hindi", "male", ["x", "y"]),
    ("a", "hindi", "female", ["x"]),
    ("c", "korean", "female", []),
    ("a", "hindi", "female", ["x"]),
]


def test_strata_are_found_under_the_names_that_observations_give_them():
    frame = frame_of(ROWS)
    speakers = speakers_of(frame)
    assert speakers.names == ("a", "b", "c")
    codes = strata_codes(frame, speakers, ["gender"])
    assert codes is not None and codes.tolist() == [0, 1, 0]
    assert strata_codes(frame, speakers, []) is None
    with pytest.raises(UserError, match="'age'"):
        strata_codes(frame, speakers, ["age"])


def test_strata_of_several_columns_are_not_mixed_up_by_their_words():
    pairs = {"a": ("x and y", "z"), "b": ("x", "y and z"), "c": (None, "z"), "d": ("nan", "z"), "e": ("x", "y and z")}
    frame = frame_of([(name, name, None, ["v"]) for name in pairs])
    frame["group_sex"] = [sex for sex, _ in pairs.values()]
    frame["group_age"] = [age for _, age in pairs.values()]
    for made in (frame, frame.astype({"group_sex": "category", "group_age": "category"})):
        codes = strata_codes(made, speakers_of(made), ["sex", "age"])
        assert codes[1] == codes[4] and len(set(codes.tolist())) == 4
        cells = Cells.of(made, ("sex", "age"))
        assert cells.codes[1] == cells.codes[4] and len(set(cells.codes.tolist())) == 4
        assert cells.names == ("nan and z", "none and z", "x and y and z", "x and y and z")
    twice = pd.concat([frame, frame.tail(1).assign(group_age="young")], ignore_index=True)
    with pytest.raises(UserError, match="speaker 'e' is in more than one stratum of sex and age"):
        strata_codes(twice, speakers_of(twice), ["sex", "age"])


def test_a_speaker_in_two_groups_is_refused():
    with pytest.raises(UserError, match="'a'"):
        speakers_of(frame_of([*ROWS, ("a", "korean", "female", [])]))


def test_values_are_counted_by_speaker_whatever_the_order_of_arrival():
    frame = frame_of(ROWS)
    values, counts = value_counts(frame, speakers_of(frame))
    assert values == ("x", "y")
    assert counts.tolist() == [[2, 0], [1, 1], [0, 0]]
    turned = frame.iloc[::-1]
    assert value_counts(turned, speakers_of(turned))[1].tolist() == counts.tolist()
