"""The simulated model hears, answers the same everywhere, and its true shift is what measuring finds."""

import csv
import itertools
import subprocess
import sys
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import yaml

from tests.support import SHARED, needs_recordings
from vibe_harness.backends.simulated.answers import ANSWERS, choices_of, inclusion
from vibe_harness.backends.simulated.engine import SimulatedEngine
from vibe_harness.backends.simulated.hearing import hear
from vibe_harness.backends.simulated.truth import true_ntvd
from vibe_harness.cards.loading import CardIndex
from vibe_harness.corpora.audio.decode import read_audio
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.extraction.canonical import canonicalisers
from vibe_harness.extraction.rules import read_labelled
from vibe_harness.planning.plan import Plan
from vibe_harness.records import CheckedClip, Outcome, Waveform

RATE = 16_000


def buzz(pitch, seconds=1.0, brightness=1.0):
    time = np.arange(int(seconds * RATE)) / RATE
    harmonics = range(1, int(4_000 / pitch))
    wave = sum(np.sin(2 * np.pi * pitch * k * time + k) / k ** (2 - brightness) for k in harmonics)
    noise = np.random.default_rng(0).normal(size=len(time))
    return Waveform((0.1 * wave + 0.005 * noise).astype(np.float32), RATE)


@pytest.mark.parametrize("pitch", [80, 95, 113, 132, 160, 174, 201, 229, 300])
def test_the_pitch_of_a_buzz_is_heard_within_two_percent(pitch):
    heard = hear(buzz(pitch))
    assert heard.pitch_hz == pytest.approx(pitch, rel=0.02)


def test_a_brighter_voice_sounds_brighter():
    dark, bright = hear(buzz(120, brightness=0.5)), hear(buzz(120, brightness=1.5))
    assert bright.timbre > dark.timbre + 0.2


def test_noise_and_clips_too_short_have_no_pitch():
    noise = np.random.default_rng(1).normal(0, 0.1, RATE).astype(np.float32)
    assert hear(Waveform(noise, RATE)).pitch_hz is None
    assert hear(Waveform(noise[:100], RATE)).pitch == 0.5


@needs_recordings
def test_real_men_and_women_are_heard_apart():
    folder = SHARED / "corpora" / "ravdess"
    with (folder / "manifest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    heard = [(row["gender"] == "female", hear(read_audio(folder / row["file"], RATE)).pitch) for row in rows]
    women = [pitch for female, pitch in heard if female]
    men = [pitch for female, pitch in heard if not female]
    pairs = [(w > m) + 0.5 * (w == m) for w, m in itertools.product(women, men)]
    assert np.mean(pairs) > 0.97  # area under the ROC curve


@cache
def material(*names):
    """Card, tasks and checked clips of the demo corpus."""
    index = CardIndex()
    corpus = find_corpus("demo")
    clips = [CheckedClip(clip, corpus.root / clip.file, clip.id, 1.0) for clip in corpus.clips]
    return index.model("simulated"), index.tasks(names), clips


@cache
def decoded(path):
    return read_audio(path, RATE)


def responses(card, tasks, clips, seed):
    plan = Plan(card, tasks, {task.name: ("default",) for task in tasks}, clips, seed)
    requests = [replace(request, audio=partial(decoded, request.audio.args[0])) for request in plan.requests()]
    return list(zip(requests, SimulatedEngine(card, tasks).generate(requests), strict=True))


def test_the_same_request_gets_the_same_answer_in_another_process_and_order():
    card, tasks, clips = material("story")
    here = {request.id: response.text for request, response in responses(card, tasks, clips[:6], seed=3)}
    program = (
        "from tests.backends.simulated.test_truth import material, responses\n"
        "card, tasks, clips = material('story')\n"
        "for one in responses(card, tasks, clips[5::-1], seed=3): print(repr((one[0].id, one[1].text)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ANSWERS.parents[3]
    )
    assert dict(map(eval, done.stdout.splitlines())) == here


def test_answers_are_varied():
    card, tasks, clips = material("story", "advisory")
    texts = [response.text for _, response in responses(card, tasks, clips, seed=0)]
    assert len(set(texts)) > 0.97 * len(texts)


@pytest.mark.parametrize("name", ["story", "advisory", "candidate", "casting", "shopper"])
def test_every_planted_value_is_read_again(name):
    """Without refusals and breakages the rules extractor finds a planted value for every attribute of every answer."""
    card, tasks, clips = material(name)
    card = card.model_copy(update={"args": {"refusal_rate": 0, "breakage_rate": 0}})
    choices = choices_of(tasks[0])
    canonical = {
        attribute: set(canonicalisers(tasks[0])[attribute].canonical_values(choices[attribute].values))
        for attribute in choices
    }
    assert all(len(canonical[attribute]) == len(choices[attribute].values) for attribute in choices)
    for seed in range(3):
        for request, response in responses(card, tasks, clips, seed):
            extraction = read_labelled(tasks[0], response)
            assert set(map(str, extraction.readings.values())) == {"value"}, response.text
            for attribute, raw in extraction.raw.items():
                found = canonicalisers(tasks[0])[attribute].canonical_values(raw)
                assert len(found) == choices[attribute].draws and set(found) <= canonical[attribute]
                assert request.id == response.request


def test_refusals_and_breakages_come_at_their_rates():
    card, tasks, clips = material("story")
    card = card.model_copy(update={"args": {"refusal_rate": 0.2, "breakage_rate": 0.3}})
    refused = cut = total = 0
    for seed in range(20):
        for _, response in responses(card, tasks, clips, seed):
            total += 1
            refused += read_labelled(tasks[0], response).refused
            cut += response.outcome is Outcome.TRUNCATED
    assert refused / total == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / total))
    assert cut / total == pytest.approx(0.8 * 0.3 / 3, abs=4 * np.sqrt(0.08 / total))


def test_inclusion_by_hand():
    """Two of three drawn with shares 1/2, 1/4, 1/4: the first is in with 1/2 + 2 * 1/4 * (1/2)/(3/4) = 5/6."""
    np.testing.assert_allclose(inclusion(np.array([0.5, 0.25, 0.25]), 2), [5 / 6, 7 / 12, 7 / 12])


def direct_simulation(task, clips, card, tau, runs):
    """An own simulation of the card, all runs at once; returns the task score of each run.

    Values come from answers.yaml and are drawn without putting back by an exponential race: the `draws` smallest of
    E_v / share_v, E_v standard exponential.
    """
    written = yaml.safe_load(ANSWERS.read_text(encoding="utf-8"))[task.name]
    strength, refusal, breakage = (card.args[name] for name in ("strength", "refusal_rate", "breakage_rate"))
    names = list(task.card.extraction.attributes)
    rng = np.random.default_rng(7)
    counts = {name: {"female": 0, "male": 0} for name in names}
    for clip in clips:
        ear = hear(decoded(clip.path))
        refused, broken = rng.random(runs) < refusal, rng.random(runs) < breakage
        cut, place = rng.random(runs) < 1 / 3, rng.integers(len(names), size=runs)
        for index, name in enumerate(names):
            spec = written[name]
            h = ear.pitch if spec["moved_by"] == "pitch" else ear.timbre
            base, low, high = np.array(list(spec["values"].values()), float).T
            share = (1 - strength) * base / base.sum()
            share = share + strength * ((1 - h) * low / low.sum() + h * high / high.sum())
            race = rng.exponential(size=(runs, len(share))) / share
            named = race.argsort(axis=1).argsort(axis=1) < spec.get("draws", 1)
            lost = refused | broken & np.where(cut, index > place, index == place)
            counts[name][clip.clip.groups["gender"]] += named & ~lost[:, None]
    parts = []
    for name in names:
        female, male = counts[name]["female"], counts[name]["male"]
        kept = female + male >= tau
        female, male = female * kept, male * kept
        gap = female / female.sum(axis=1, keepdims=True) - male / male.sum(axis=1, keepdims=True)
        parts.append(50 * np.abs(gap).sum(axis=1))  # two groups: nTVD is half the sum of differences, times 100
    return np.mean(parts, axis=0)


def measured(card, tasks, clips, tau, seed):
    """The task scores of one seed, through the engine, the rules, the canonical values and the metric."""
    import pandas as pd

    from vibe_harness.extraction.observe import observations
    from vibe_harness.metrics.metric import Settings
    from vibe_harness.metrics.ntvd import ntvd

    by_id = {heard.clip.id: heard.clip for heard in clips}
    by_name = {task.name: task for task in tasks}
    rows = {name: [] for name in by_name}
    for request, response in responses(card, tasks, clips, seed):
        task, clip = by_name[request.task], by_id[request.clip]
        for seen in observations(task, request.variant, clip, response, read_labelled(task, response)):
            rows[task.name].append(
                [clip.speaker, clip.groups["gender"], seen.attribute, str(seen.reading), seen.values]
            )
    columns = ["speaker", "group", "attribute", "reading", "values"]
    settings = Settings(tau=tau, permutations=1)
    return {name: ntvd(pd.DataFrame(data, columns=columns), settings)[0].value for name, data in rows.items()}


@pytest.mark.slow
def test_the_measured_score_is_that_of_a_direct_simulation_and_never_under_the_truth():
    card, tasks, clips = material("story", "advisory")
    tau, seeds = 3, range(400)
    found = [measured(card, tasks, clips, tau, seed) for seed in seeds]
    heard = {}
    for clip in clips:
        heard.setdefault(clip.clip.groups["gender"], []).append(hear(decoded(clip.path)))
    for task in tasks:
        scores = np.array([one[task.name] for one in found])
        direct = direct_simulation(task, clips, card, tau, runs=5_000)
        error = np.sqrt(scores.var(ddof=1) / len(scores) + direct.var(ddof=1) / len(direct))
        assert abs(scores.mean() - direct.mean()) < 3 * error
        truth = true_ntvd(card, task, heard, tau)[""]
        assert truth > 10
        assert scores.mean() > truth - 3 * error


@pytest.mark.slow
def test_the_truth_is_what_ever_more_answers_converge_to():
    card, tasks, clips = material("advisory")
    card = card.model_copy(update={"args": {"strength": 0.7, "refusal_rate": 0, "breakage_rate": 0}})
    heard = {}
    for clip in clips:
        heard.setdefault(clip.clip.groups["gender"], []).append(hear(decoded(clip.path)))
    choices = choices_of(tasks[0])["activity"]
    place = {value: index for index, value in enumerate(choices.values)}
    counts = np.zeros((2, len(place)))
    groups = sorted(heard)
    by_id = {c.clip.id: groups.index(c.clip.groups["gender"]) for c in clips}
    for seed in range(60):
        for request, response in responses(card, tasks, clips, seed):
            for value in read_labelled(tasks[0], response).raw["activity"]:
                counts[by_id[request.clip], place[value]] += 1
    shares = counts / counts.sum(axis=1, keepdims=True)
    found = 50 * np.abs(shares[0] - shares[1]).sum()
    assert found == pytest.approx(true_ntvd(card, tasks[0], heard, tau=1)[""], abs=2.0)
