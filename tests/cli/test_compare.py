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


def test_no_worse_opens_only_within_a_margin(runs):
    gate = "--no-worse-than"
    shown = runs("compare", "weak", gate, "strong", "--margin", 100, check=0).stdout
    assert "held: no-worse-than strong (simulated (args.strength 1)), margin 100: advisory by gender in weak" in shown
    shown = runs("compare", "weak", gate, "strong", check=1).stdout
    assert "NO GROWTH FOUND: no-worse-than strong" in shown and "nothing is shown without --margin" in shown
    runs("compare", "weak", gate, "strong", "--allow-inconclusive", check=0)
    shown = runs("compare", "strong", gate, "weak", "--margin", "advisory=0", check=1).stdout
    assert "NOT HELD: no-worse-than weak" in shown or "CANNOT TELL: no-worse-than weak" in shown
    found = runs.json("compare", "weak", gate, "strong", "--margin", "0.1,advisory=100")
    assert [one["held"] for one in found["gates"]] == [True]
    assert found["comparison"]["compared"][0]["whole"]["upper"] <= 100


def test_the_same_run_is_told_and_passes_no_gate(runs):
    shown = runs("compare", "weak", "weak", check=0).stdout
    assert "before and after are the same run" in shown and "+0.0" in shown
    shown = runs("compare", "weak", "--no-worse-than", "weak", "--margin", 50, "--allow-inconclusive", check=2)
    shown = runs("compare", "weak", "--no-worse-than", "weak", "--margin", 50, check=1).stdout
    assert "CANNOT TELL: no-worse-than weak" in shown and "the two are the same run" in shown


def test_score_keeps_the_settings_of_the_run(runs):
    from vibe_harness.store.results import read_results

    before = read_results(runs.folder / "weak" / "results.json")
    runs("score", "weak", check=None)
    after = read_results(runs.folder / "weak" / "results.json")
    assert (after.tau, after.permutations) == (before.tau, before.permutations) == (1, 20)
    runs("score", "weak", "--tau", 3, check=None)
    assert read_results(runs.folder / "weak" / "results.json").tau == 3


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
        (("strong", "weak", "--margin", 5), "go with --no-worse-than"),
        (("strong", "--no-worse-than", "weak", "--margin", "x"), "TASK=LIMIT"),
        (("strong", "--no-worse-than", "weak", "--margin", "nan"), "TASK=LIMIT"),
        (("strong", "--no-worse-than", "weak", "--margin", "5,6"), "two limits for all tasks"),
        (("strong", "--no-worse-than", "weak", "--margin", "advisry=5"), "'advisory'"),
        (("strong", "--max-ntvd", "5"), "TASK=LIMIT"),
    ):
        assert said in runs.refuses("compare", *arguments)


def test_gates_are_written_as_a_summary_and_as_junit(runs):
    given = ("--max-ntvd", "advisory=0", "--summary-markdown", "out/gates.md", "--junit", "out/gates.xml")
    runs("compare", "strong", *given, check=1)
    assert "0 of 1 gates pass" in (runs.folder / "out" / "gates.md").read_text(encoding="utf-8")
    assert 'failures="1"' in (runs.folder / "out" / "gates.xml").read_text(encoding="utf-8")
    runs("compare", "strong", "weak", "--summary-markdown", "both.md", check=0)
    assert "| advisory by gender | " in (runs.folder / "both.md").read_text(encoding="utf-8")
    assert "--junit writes gates" in runs.refuses("compare", "strong", "weak", "--junit", "gates.xml")
