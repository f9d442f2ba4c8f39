"""Whatever befalls a run, the command given again ends it as if nothing had happened."""

import os
import random
import shutil
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.command_line import tone
from tests.pipeline.faults import Starter, lose_power
from tests.run_folders import stored
from vibe_harness.analysis.run_check import check_run
from vibe_harness.store.run_folder import RunFolder

STARTS = 360  # of runs that something befalls, over all lanes: a number, so that no machine is too slow for the test
LANES = 2
KINDS = 5  # runs, killed, torn, full, doubled
RUN = ("--model", "simulated", "--tasks", "advisory", "--tau", "3", "--permutations", "19", "--corpus", "m.csv",
       "--output-path")  # fmt: skip

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of Unix")


def starter_of(folder, clips):
    """A corpus of so many clips over 12 files of 6 speakers."""
    rows = ["file,speaker,gender,id"]
    for speaker in range(6):
        for take in range(2):
            tone(folder / f"s{speaker}" / f"{take}.wav", (110, 200)[speaker % 2] + 3 * speaker + take)
            sex = ("male", "female")[speaker % 2]
            rows += [f"s{speaker}/{take}.wav,s{speaker},{sex},{take}-{again}" for again in range(clips // 12)]
    (folder / "m.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return Starter(folder, RUN)


@pytest.mark.slow
def test_killed_ahead_of_any_change_to_its_folder_it_ends_as_an_unbroken_run(tmp_path):
    starter = starter_of(tmp_path, 12)
    starter.whole("whole")
    changes = 0
    for folder in starter.killed_ahead_of_each_change():
        checked = check_run(RunFolder(folder))
        assert checked.whole and checked.answered == checked.planned == 12, checked.faults
        assert stored(folder) == stored(tmp_path / "whole")
        assert {path.name for path in folder.iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}
        changes += 1
    assert changes > 30


@pytest.mark.slow
def test_killed_torn_filled_and_doubled_hundreds_of_times_it_ends_as_an_unbroken_run(tmp_path):
    starter = starter_of(tmp_path, 240)
    seed = int(os.environ.get("VIBE_FAULT_SEED", random.SystemRandom().randrange(2**32)))
    print(f"VIBE_FAULT_SEED={seed}")  # shown where the test fails, and with -s
    starter.whole("first")  # imports what was not imported ahead
    takes = starter.whole("whole")
    whole = stored(starter.folder / "whole")
    begun = time.monotonic()
    faults: Counter[str] = Counter()
    with ThreadPoolExecutor(LANES) as lanes:
        for found in lanes.map(
            lambda lane: struck(starter, lane, random.Random(seed + lane), takes, whole), range(LANES)
        ):
            faults += found
    print(f"as the unbroken run ({takes:.2f} s), after {dict(faults)} in {time.monotonic() - begun:.0f} s")
    assert len(faults) == KINDS


def struck(starter, lane, chance, takes, whole):
    """Runs under faults, each compared with the unbroken one; how often each fault struck."""
    faults: Counter[str] = Counter()
    starts = 0
    while starts < STARTS // LANES or len(+faults) < KINDS:  # until each has struck
        output = f"lane{lane}-run{faults['runs']}"
        number = chance.randint(5, 20)
        for _ in range(number):
            strike(starter, output, takes, chance, faults)
        starts += number
        starter.whole(output)
        checked = check_run(RunFolder(starter.folder / output))
        assert checked.whole and checked.answered == checked.planned == 240, checked.faults
        assert stored(starter.folder / output) == whole
        shutil.rmtree(starter.folder / output)
        faults["runs"] += 1
    return faults


def strike(starter, output, takes, chance, faults):
    """One start of the run and what befalls it."""
    moment = chance.uniform(0.1, 1.1) * takes
    kind = chance.choice(["killed", "torn", "torn", "full", "doubled"])
    if kind == "full":
        process = starter.start(output, full_at=chance.randint(1, 120_000))
        process.join(600)
        assert process.exitcode in (0, 1, 2, 4), said(starter)
        faults["full"] += process.exitcode == 4
        return
    first = starter.start(output)
    if kind == "doubled":
        time.sleep(moment / 2)
        second = starter.start(output)
        second.join(600)
        first.join(600)
        assert {first.exitcode, second.exitcode} <= {0, 1, 2}, said(starter)
        assert not first.exitcode == second.exitcode == 2, said(starter)
        faults["doubled"] += 2 in (first.exitcode, second.exitcode)
        return
    first.join(moment)
    first.kill()
    first.join()
    faults["killed"] += first.exitcode == -9
    if kind == "torn" and lose_power(starter.folder / output, chance):
        faults["torn"] += 1


def said(starter):
    return (starter.folder / "said").read_text(encoding="utf-8")[-3000:]
