"""`vibe-harness power` says before a run what a corpus can show."""

import pytest

from vibe_harness.errors import UserError


@pytest.mark.slow
def test_more_speakers_show_smaller_shifts_and_the_curve_is_drawn(quick, tones):
    few = quick.json("power", "--corpus", tones, "--dimension", "gender", "--tasks", "candidate", "--tau", 1,
                    "--simulations", 40)  # fmt: skip
    many = quick.json("power", "--corpus", "demo", "--dimension", "gender", "--tasks", "candidate", "--tau", 1,
                     "--simulations", 40, "--figure", "power.svg")  # fmt: skip
    found = many["candidate"]
    assert few["candidate"]["detectable"] is None or found["detectable"] < few["candidate"]["detectable"]
    assert 0 < found["detectable"] < 100
    at_zero = found["curve"][0]
    assert at_zero["score"] == 0 and at_zero["share"] <= 0.25  # 5 % by chance, of 40 simulations
    assert (quick.folder / "power.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_corpus_that_can_show_nothing_is_told_so_in_a_sentence(quick, tones, monkeypatch):
    from vibe_harness import api
    from vibe_harness.stats.power import Power

    monkeypatch.setattr(api, "power", lambda *_, **__: {"story": Power(None, 0.8, (), "even 100 is seldom found")})
    told = quick("power", "--corpus", tones, "--dimension", "gender", "--tasks", "story", check=0).stdout
    assert ": even 100 is seldom found\n" in told and "from even" not in told


@pytest.mark.slow
def test_a_pilot_run_stands_for_the_corpus_and_must_have_asked_the_task(quick, tones):
    quick("--model", "simulated", "--tasks", "candidate", "--corpus", tones, "--output-path", "pilot", "--tau", 1,
         "--permutations", 20)  # fmt: skip
    base = ("power", "--corpus", "demo", "--dimension", "gender", "--pilot", "pilot", "--simulations", 20, "--tau", 1)
    assert "candidate" in quick.json(*base, "--tasks", "candidate")
    assert "'story'" in quick.refuses(*base, "--tasks", "story")
    assert "'gender'" in quick.refuses(*base[:4], "gendr", *base[5:], "--tasks", "candidate")


def test_speakers_are_exchanged_within_the_strata_that_the_corpus_declares(tmp_path):
    from vibe_harness.cards.loading import CardIndex
    from vibe_harness.corpora.manifest import Corpus
    from vibe_harness.planning.power import task_power
    from vibe_harness.records import Clip

    [task] = CardIndex().tasks(["candidate"])
    clips = tuple(
        Clip(f"{n}-{take}", "f", f"s{n:02}", {"accent": "ab"[n % 2], "gender": "fm"[n % 2]})
        for n in range(12)
        for take in range(20)
    )
    power = task_power(task, Corpus("c", tmp_path, clips), "accent", simulations=20)
    assert power.detectable is not None
    # Where each stratum holds one group only, nothing can be exchanged.
    strata = {"accent": ["gender"]}
    with pytest.raises(UserError, match="each of its levels stands in one group only"):
        task_power(task, Corpus("c", tmp_path, clips, speaker_strata=strata), "accent", simulations=20)
