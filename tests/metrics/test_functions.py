"""Metrics as plain functions on a frame, against values worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.metrics.frames import frame
from vibe_harness.metrics.diversity import diversity
from vibe_harness.metrics.metric import Settings
from vibe_harness.metrics.ntvd import ntvd
from vibe_harness.metrics.refusal_ntvd import refusal_ntvd


def as_read_from_a_run(made: pd.DataFrame) -> pd.DataFrame:
    """The same frame with the types that a run's frame has: categories, and lists as Arrow holds them."""
    import pyarrow as pa

    words = {name: "category" for name in made if name not in ("group", "raw", "values")}
    lists = dict.fromkeys(("raw", "values"), pd.ArrowDtype(pa.list_(pa.string())))
    return made.astype({**words, **lists})


@pytest.mark.parametrize("made", [frame(), as_read_from_a_run(frame())], ids=["by hand", "as read"])
def test_ntvd_by_hand(made: pd.DataFrame) -> None:
    whole, job = ntvd(made, Settings(tau=2))
    # P_a = (3/4, 1/4), P_b = (1/4, 3/4), mean (1/2, 1/2); TVD = (1/4 + 1/4) / 2 = 1/4; nTVD = 100 (1/4) / (1 - 1/2)
    assert whole.value == job.value == pytest.approx(50)
    # Of the 6 ways to part four speakers, 4 give 50 and 2 give 0.
    assert job.exact and job.permutations == 6
    assert job.p_value == pytest.approx(4 / 6) and job.null_mean == pytest.approx(200 / 6)
    assert job.detail["kept_share"] == pytest.approx(8 / 9) and job.detail["kept_values"] == 2
    assert job.detail["distribution"]["a"] == {"chef": 0.25, "nurse": 0.75}
    assert whole.detail["published_ntvd"] == pytest.approx(50)


def test_an_attribute_of_one_value_is_left_out_here_and_counts_0_in_the_published_score() -> None:
    made = frame()
    same = made.assign(attribute="mood", values=[["calm"]] * len(made), reading="value")
    whole = ntvd(pd.concat([made, same], ignore_index=True), Settings(tau=2, permutations=9))[0]
    assert whole.value == pytest.approx(50) and list(whole.detail["attributes_left_out"]) == ["mood"]
    assert whole.detail["published_ntvd"] == pytest.approx(25)


@pytest.mark.parametrize("made", [frame(), as_read_from_a_run(frame())], ids=["by hand", "as read"])
def test_diversity_by_hand(made: pd.DataFrame) -> None:
    whole, job = diversity(made[made["group"] == "b"], Settings())
    assert whole.value == job.value and whole.detail == {}  # a frame without digests of the responses
    assert job.value == pytest.approx(0.8112781)  # -(3/4) log2(3/4) - (1/4) log2(1/4)
    assert job.detail["distinct_raw"] == job.detail["distinct_canonical"] == 2
    assert job.detail["commonest_share"] == pytest.approx(3 / 4)


def test_refusals_by_hand() -> None:
    made = frame()
    made.loc[[0, 1, 2], "outcome"] = "refused"
    made.loc[9, "outcome"] = "error"
    [score] = refusal_ntvd(made, Settings())
    assert score.detail["refused_share_by_group"] == {"a": pytest.approx(3 / 6), "b": 0.0}
    assert score.value == pytest.approx(50)


def test_a_list_gives_every_item_once() -> None:
    made = frame().head(2)
    made["values"] = [["nurse", "chef"], ["chef"]]
    made["group"], made["speaker"] = ["a", "b"], ["a1", "b1"]
    _, job = ntvd(made, Settings(tau=1))
    assert job.detail["items"] == 3
    assert job.detail["distribution"] == {"a": {"chef": 0.5, "nurse": 0.5}, "b": {"chef": 1.0, "nurse": 0.0}}


def test_identical_responses_by_hand() -> None:
    made = frame()
    made["answer"] = ["one", "one", "two", "three", None, "four", "four", "four", "five", "six"]
    whole = diversity(made, Settings())[0]
    assert whole.detail["identical_share"] == pytest.approx(5 / 9)
    assert whole.detail["identical_share_by_group"] == {"a": 2 / 5, "b": 2 / 4}


def test_without_any_value_the_reason_names_how_the_answers_ended() -> None:
    made = frame()
    made["values"], made["reading"] = [[]] * len(made), "none"
    made["outcome"] = ["refused"] * 7 + ["blocked", "ok", "ok"]
    made.loc[8, "reading"] = "unparsed"
    whole, job = ntvd(made, Settings(permutations=9))
    assert whole.value is None and job.value is None
    why = "no answer gives a value: 7 refused, 1 blocked, 1 silent on it, 1 unparsed"
    assert job.undefined == whole.undefined == why
    assert whole.detail["attributes_left_out"] == {"job": job.undefined}
