"""What the simulated model writes is what it drew, whatever the task; what it drew follows the voice as planted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from vibe_harness.backends.protocol import check_options
from vibe_harness.backends.simulated import engine as engine_module
from vibe_harness.backends.simulated.answers import choices_of
from vibe_harness.backends.simulated.engine import SimulatedEngine
from vibe_harness.backends.simulated.hearing import VoiceFeatures, hear
from vibe_harness.backends.simulated.seeded_choice import Chance
from vibe_harness.backends.simulated.truth import survival, true_distribution, true_ntvd, true_refusal_ntvd
from vibe_harness.cards.loading import CardIndex, Task
from vibe_harness.cards.schema import Attribute
from vibe_harness.errors import UserError
from vibe_harness.extraction.canonical import canonicalisers
from vibe_harness.extraction.rules import read_labelled
from vibe_harness.records import Generation, Outcome, Reading, Request, Waveform

NAMES = ("story", "advisory", "candidate", "casting", "shopper")
INDEX = CardIndex()
TASKS = {name: INDEX.tasks([name])[0] for name in NAMES}
CARD = INDEX.model("simulated")


def card(**args):
    return CARD.model_copy(update={"args": {**CARD.args, **args}})


def voice(pitch: float) -> Waveform:
    time = np.arange(8_000) / 16_000
    wave = sum(np.cos(2 * np.pi * pitch * k * time + k * k) / k for k in range(1, 20))
    return Waveform((0.05 * wave).astype(np.float32), 16_000)


VOICES = [voice(pitch) for pitch in (95, 120, 140, 160, 175, 200, 225)]


def ask(task: str, number: int, wave: Waveform, seed: int = 0) -> Request:
    return Request(f"{number:032x}", task, "default", "clip", "prompt", Generation(512, seed=seed), audio=lambda: wave)


def answers(a_card, task: Task, count: int, seed: int = 0):
    requests = [ask(task.name, number, VOICES[number % len(VOICES)], seed) for number in range(count)]
    return list(SimulatedEngine(a_card, [task]).generate(requests))


def with_attributes(**attributes: Attribute) -> Task:
    task = TASKS["advisory"]
    part = task.card.extraction.model_copy(update={"attributes": attributes})
    changed = task.card.model_copy(update={"task": "mine", "extraction": part})
    return replace(task, card=changed, aliases={})


@pytest.fixture
def drawn(monkeypatch):
    """Every list of values that the engine draws, in order."""
    lists: list[list[str]] = []

    def draw(*given):
        lists.append(engine_draw(*given))
        return lists[-1]

    engine_draw = engine_module.draw
    monkeypatch.setattr(engine_module, "draw", draw)
    return lists


@pytest.mark.parametrize("name", NAMES)
def test_what_was_drawn_is_what_is_read(name, drawn):
    """5,000 answers in all; format faults lose values and never change one."""
    task = TASKS[name]
    attributes = list(task.card.extraction.attributes)
    for rate in (0.0, 1.0):
        drawn.clear()
        lost: Counter[tuple[int, Reading]] = Counter()
        for response in answers(card(refusal_rate=0, breakage_rate=rate), task, 500):
            planted = dict(zip(attributes, (drawn.pop(0) for _ in attributes), strict=True))
            extraction = read_labelled(task, response)
            assert not extraction.refused
            assert all(len(set(values)) == len(values) for values in planted.values())  # without putting back
            for place, attribute in enumerate(attributes):
                if extraction.readings[attribute] is Reading.VALUE:
                    assert list(extraction.raw[attribute]) == planted[attribute], response.text
                else:
                    lost[place, extraction.readings[attribute]] += 1
        if rate == 0:
            assert not lost
            continue
        assert {reading for _, reading in lost} == {Reading.UNKNOWN, Reading.NONE}
        for place in range(len(attributes)):
            share = (lost[place, Reading.UNKNOWN] + lost[place, Reading.NONE]) / 500
            assert share == pytest.approx(1 - survival(place, len(attributes), 1.0), abs=4 * np.sqrt(0.25 / 500))


@pytest.mark.parametrize("name", NAMES)
def test_planted_values_stay_apart_as_canonical_values(name):
    task = TASKS[name]
    for attribute, choices in choices_of(task).items():
        canonical = canonicalisers(task)[attribute].canonical_values(choices.values)
        assert len(canonical) == len(choices.values)
        assert task.card.extraction.attributes[attribute].values != "open" or 10 <= len(canonical) <= 16
        for shares in (choices.base, choices.low, choices.high):
            assert shares.sum() == pytest.approx(1) and shares.min() > 0


def test_every_refusal_is_read_as_one_and_they_are_varied():
    texts = [response.text for response in answers(card(refusal_rate=1), TASKS["story"], 500)]
    for text in texts:
        extraction = read_labelled(TASKS["story"], replace(answers(CARD, TASKS["story"], 1)[0], text=text))
        assert extraction.refused and not extraction.raw, text
    assert len(set(texts)) > 250


def test_texts_are_hardly_ever_the_same():
    texts = [response.text for name in NAMES for response in answers(CARD, TASKS[name], 1_000)]
    assert len(set(texts)) > 0.98 * len(texts)
    assert max(Counter(texts).values()) <= 5


def test_without_strength_the_voice_makes_no_difference():
    for strength, alike in ((0.0, True), (0.7, False)):
        engine = SimulatedEngine(card(strength=strength), [TASKS["story"]])
        by_voice = [
            [response.text for response in engine.generate(ask("story", number, wave) for number in range(50))]
            for wave in VOICES
        ]
        assert all(texts == by_voice[0] for texts in by_voice) is alike


def test_the_seed_and_the_request_make_a_difference():
    one, other = (answers(CARD, TASKS["story"], 50, seed) for seed in (0, 1))
    assert all(a.text != b.text for a, b in zip(one, other, strict=True))
    assert [response.text for response in one] == [response.text for response in answers(CARD, TASKS["story"], 50)]


def test_shares_are_those_of_the_formula():
    """Draws of one attribute at three voices against (1 - s) base + s ((1 - h) low + h high), chi-squared."""
    choices = choices_of(TASKS["story"])["occupation"]
    for pitch in (0.0, 0.3, 1.0):
        shares = choices.shares(VoiceFeatures(None, None, pitch, 0.5), 0.7)
        expected = 0.3 * choices.base + 0.7 * ((1 - pitch) * choices.low + pitch * choices.high)
        counts = Counter(
            engine_module.draw(choices, shares, Chance(bytes([n % 256, n // 256])))[0] for n in range(4_000)
        )
        found = np.array([counts[value] for value in choices.values])
        statistic = ((found - 4_000 * expected) ** 2 / (4_000 * expected)).sum()
        assert statistic < 31.3  # 99.9 % point of chi-squared with 11 degrees of freedom


def test_timbre_moves_what_timbre_moves():
    high_bright, low_bright = VoiceFeatures(None, None, 1.0, 1.0), VoiceFeatures(None, None, 0.0, 1.0)
    choices = choices_of(TASKS["candidate"])
    for heard in (high_bright, low_bright):
        np.testing.assert_allclose(choices["cultural_fit"].shares(heard, 1.0), choices["cultural_fit"].high)
    np.testing.assert_allclose(choices["competency"].shares(low_bright, 1.0), choices["competency"].low)


def test_refusals_shift_towards_high_voices():
    arguments = engine_module.Arguments(refusal_rate=0.3, refusal_shift=0.4)
    chances = [arguments.refusal_chance(VoiceFeatures(None, None, pitch, 0.5)) for pitch in (0.0, 0.5, 1.0)]
    assert chances == pytest.approx([0.1, 0.3, 0.5])
    assert (
        engine_module.Arguments(refusal_rate=0.0, refusal_shift=-1).refusal_chance(VoiceFeatures(None, None, 1, 0)) == 0
    )


def test_a_weight_of_nothing_is_never_chosen():
    chance = Chance(b"seed")
    assert {chance.weighted([0.0, 2.0, 0.0, 1.0, 0.0]) for _ in range(1_000)} == {1, 3}


@pytest.mark.slow
def test_ever_more_answers_converge_to_the_truth_with_refusals_and_faults_in_it():
    """14,000 answers; refusals that follow the voice take some voices' answers out of the truth as well."""
    a_card = card(refusal_rate=0.3, refusal_shift=0.5, breakage_rate=0.3)
    task = TASKS["story"]
    groups = [number % len(VOICES) // 3 % 2 for number in range(7)]  # three low, three high, one low
    heard = {str(group): [hear(w) for w, g in zip(VOICES, groups, strict=True) if g == group] for group in (0, 1)}
    truth = true_distribution(a_card, task, heard, tau=0)
    counts = {name: [Counter(), Counter()] for name in truth}
    refused = np.zeros(2)
    rounds = 2_000
    for number, response in enumerate(answers(a_card, task, rounds * len(VOICES))):
        group = groups[number % len(VOICES)]
        extraction = read_labelled(task, response)
        refused[group] += extraction.refused
        for name, values in extraction.raw.items():
            counts[name][group].update(values)
    for name, distribution in truth.items():
        found = np.array([[by[value] for value in distribution.values] for by in counts[name]])
        assert np.abs(found / rounds - distribution.expected).max() < 0.07
        shares = found / found.sum(axis=1, keepdims=True)
        measured = 50 * np.abs(shares[0] - shares[1]).sum()
        assert measured == pytest.approx(true_ntvd(a_card, task, heard, tau=0)[name], abs=3)
    shares = refused / (rounds * np.array([len(clips) for clips in heard.values()]))
    assert 100 * abs(shares[0] - shares[1]) == pytest.approx(true_refusal_ntvd(a_card, heard), abs=2)


def test_the_truth_of_one_attribute_by_hand():
    """Two closed values, made up: base 1/2, 1/2, low 2/3, 1/3, high 1/3, 2/3. Strength 0.6 and pitch 0 and 1:
    P = 0.2 + 0.4, 0.2 + 0.2 and the reverse; nTVD = 100 |0.6 - 0.4| = 20."""
    task = with_attributes(mood=Attribute(values=["calm", "tense"]))
    heard = {"low": [VoiceFeatures(None, None, 0.0, 0.5)] * 4, "high": [VoiceFeatures(None, None, 1.0, 0.5)]}
    a_card = card(strength=0.6, refusal_rate=0.5, breakage_rate=0)
    assert true_ntvd(a_card, task, heard, tau=0) == {"mood": pytest.approx(20), "": pytest.approx(20)}
    # expected counts: calm 0.5 (4 * 0.6 + 0.4) = 1.4, tense 0.5 (4 * 0.4 + 0.6) = 1.1
    np.testing.assert_allclose(true_distribution(a_card, task, heard, 0)["mood"].expected, [[1.2, 0.8], [0.2, 0.3]])
    assert true_distribution(a_card, task, heard, tau=1.2)["mood"].values == ("calm",)
    assert true_ntvd(a_card, task, heard, tau=1.2) == {"mood": None, "": None}
    plain = card(strength=0, refusal_rate=0, breakage_rate=0)  # each value 5 / 2 times: exactly tau is enough
    assert true_distribution(plain, task, heard, tau=2.5)["mood"].values == ("calm", "tense")
    assert true_ntvd(a_card, task, heard, tau=9) == {"mood": None, "": None}
    with pytest.raises(ValueError, match="two groups"):
        true_ntvd(a_card, task, {"low": heard["low"]}, tau=1)
    with pytest.raises(ValueError, match="a clip"):
        true_ntvd(a_card, task, {**heard, "none": []}, tau=1)


def test_the_truth_at_strength_0_is_0():
    heard = {"low": [hear(VOICES[0])], "high": [hear(VOICES[-1])]}
    for name in NAMES:
        assert true_ntvd(card(strength=0), TASKS[name], heard, tau=0)[""] == pytest.approx(0)
        assert true_ntvd(CARD, TASKS[name], heard, tau=0)[""] > 20


def test_a_task_of_the_users_own_is_answered_from_its_card():
    task = with_attributes(
        mood=Attribute(values=["calm", "tense", "sad"]),
        favourite_thing=Attribute(values="open"),
        colours=Attribute(values=["red", "green", "blue", "black and white"], up_to=8),
        activity=Attribute(values="open", up_to=2),
    )
    seen = {name: Counter() for name in task.card.extraction.attributes}
    low_mood, high_mood = Counter(), Counter()
    for number, response in enumerate(answers(card(refusal_rate=0, breakage_rate=0), task, 1_400)):
        extraction = read_labelled(task, response)
        assert set(extraction.readings.values()) == {Reading.VALUE}, response.text
        for name, values in extraction.raw.items():
            seen[name].update(values)
        if number % len(VOICES) in (0, 6):
            (low_mood if number % len(VOICES) == 0 else high_mood).update(extraction.raw["mood"])
    assert set(seen["mood"]) == {"calm", "tense", "sad"}
    assert set(seen["colours"]) == {"red", "green", "blue", "black and white"} and seen["colours"].total() == 3 * 1_400
    assert len(seen["favourite_thing"]) == 12 and seen["activity"].total() == 2 * 1_400
    assert low_mood["calm"] > high_mood["calm"] and low_mood["sad"] < high_mood["sad"]


def test_a_card_with_another_closed_list_gets_values_of_its_own_list():
    task = TASKS["story"]
    attributes = {"family_status": Attribute(values=["alone", "paired"]), "personality": Attribute(values="open")}
    part = task.card.extraction.model_copy(update={"attributes": attributes})
    changed = choices_of(replace(task, card=task.card.model_copy(update={"extraction": part})))
    assert changed["family_status"].values == ("alone", "paired")
    assert changed["personality"].values == choices_of(task)["personality"].values
    assert changed["personality"].draws == 1


def test_it_is_no_extractor_and_says_that_it_is_simulated():
    engine = SimulatedEngine(CARD, [TASKS["story"]])
    assert "simulated" in engine.describe()["engine"] and CARD.simulated
    with pytest.raises(UserError, match="--extractor") as fault:
        list(engine.generate([replace(ask("story", 1, VOICES[0]), audio=None, schema={"type": "object"})]))
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize("name", ["strength", "refusal_rate", "breakage_rate"])
@pytest.mark.parametrize("value", [-0.1, 1.1, "much", None])
def test_arguments_out_of_range_are_refused(name, value):
    with pytest.raises(UserError, match=name):
        check_options(card(**{name: value}))


def test_cut_answers_end_as_truncated():
    outcomes = Counter(r.outcome for r in answers(card(refusal_rate=0, breakage_rate=1), TASKS["story"], 600))
    assert set(outcomes) == {Outcome.OK, Outcome.TRUNCATED}
    assert outcomes[Outcome.TRUNCATED] / 600 == pytest.approx(1 / 3, abs=4 * np.sqrt(2 / 9 / 600))
