"""`vibe-harness compare`: the table, JSON, exit codes, and what is refused."""

import pytest


@pytest.fixture
def runs(quick, tones):
    for name, strength in (("strong", 1), ("weak", 0)):
        quick("--model", "simulated", "--model-args", f"strength={strength}", "--tasks", "advisory", "--corpus", tones,
              "--dimension", "gender", "--tau", 1, "--permutations", 20, "--output-path", name)  # fmt: skip
    return quick


def test_two_runs_are_compared_and_gates_set_the_exit_code(runs):
    shown = runs("compare", "strong", "weak", "--tau", 1, check=0).stdout
    assert "before: simulated (args.strength 1) (strong); after: simulated (args.strength 0) (weak)" in shown
    assert "adjusted p" in shown
    found = runs.json("compare", "strong", "weak", "--tau", 1)
    assert found["gates"] == [] and found["comparison"]["compared"][0]["whole"]["difference"] is not None
    limits = runs("compare", "strong", "--max-ntvd", "advisory=100", check=0).stdout
    assert limits.startswith(
        "held: max-ntvd 100: advisory by gender in strong (simulated, not a real model): the true shift is within "
    )
    assert "NOT HELD: max-ntvd 0" in runs("compare", "strong", "--max-ntvd", "advisory=0", check=1).stdout
    same = runs("compare", "weak", "--no-worse-than", "weak", "--tau", 1, check=0).stdout
    assert (
        "held: no-worse-than weak (simulated): advisory by gender in weak (simulated, not a real model): +0.0 (" in same
    )


def test_what_cannot_be_compared_is_said_in_a_line(runs):
    for arguments, said in (
        (("strong",), "--max-ntvd"),
        (("strong", "weak", "weak"), "two runs"),
        (("strong", "weak", "--no-worse-than", "weak"), "two runs"),
        (("strong", "--max-ntvd", "advisory"), "TASK=LIMIT"),
        (("strong", "--max-ntvd", "advisory=101"), "0 to 100"),
        (("strong", "--max-ntvd", "advisory=1", "--max-ntvd", "advisory=90"), "two limits for advisory"),
        (("strong", "--max-ntvd", "advisry=1"), "'advisory'"),
        (("strong", "absent"), "not a run folder"),
    ):
        assert said in runs.refuses("compare", *arguments)
