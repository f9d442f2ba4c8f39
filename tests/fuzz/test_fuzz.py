"""Readers of what comes from outside, given anything: they refuse it in words, and never fail otherwise or run on."""

import os
import random
import subprocess
import sys

import pytest

from tests.fuzz.targets import TARGETS, seeds
from tests.support import ROOT

MARKS = (b"\0", b"\xff\xfe", b"\n", b":", b"{", b"}", b"[", b"]", b"-", b'"', b",", b"!!", b"&a", b"*a", b"e999",
         b"null", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"1" * 5000, b"{{", b"%}", b"../", b"[" * 3000)  # fmt: skip


def mutated(data, others, chance):
    """The data with some pieces cut, doubled, moved, swapped for another input's or for what parsers trip over."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((0, 1, 1, 4, 30, 300)))
        other = chance.choice(others)
        at = chance.randint(0, len(other))
        data[start:end] = chance.choice(
            (
                b"",
                data[start:end] * 2,
                chance.choice(MARKS),
                chance.randbytes(3),
                other[at : at + chance.randint(1, 200)],
            )
        )
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_found_before_is_handled(name):
    for data in seeds(name):
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_inputs_are_refused_in_words(name):
    chance, given = random.Random(11), seeds(name)
    for _ in range(40):
        TARGETS[name](mutated(chance.choice(given), given, chance))


# About ten seconds' worth of each. A number and a seed, not a time: a faster machine is given what this one was.
INPUTS = {
    "card": 100,
    "model_card": 2_000,
    "manifest": 10_000,
    "extraction": 50_000,
    "answer": 40_000,
    "run_folder": 80,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_so_are_those_of_a_guided_fuzzer(name):
    """VIBE_FUZZ_SEED: for other inputs. What is found is kept beside this file."""
    pytest.importorskip("atheris", reason="the guided fuzzer has wheels for Linux alone")
    seed = os.environ.get("VIBE_FUZZ_SEED", "1")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.targets", name, str(INPUTS[name]), seed],
        cwd=ROOT, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    assert done.returncode == 0 and "none unhandled" in done.stdout, done.stdout[-500:] + done.stderr[-3000:]
