"""The main job, run as a person runs it: results, resuming after a kill, folders, scoring again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.run_folders import stored
from tests.support import ROOT, SHARED, needs_recordings

RUN = ("--model", "simulated", "--tasks", "story,advisory", "--tau", "3", "--permutations", "199")
RAVDESS = SHARED / "corpora" / "ravdess" / "manifest.csv"


def many_clips(tones, times):
    """A manifest that names each clip of `tones` many times under other ids."""
    header, *rows = tones.read_text(encoding="utf-8").splitlines()
    lines = [f"{row},{number}-{place}" for number in range(times) for place, row in enumerate(rows)]
    path = tones.with_name("many.csv")
    path.write_text("\n".join([f"{header},id", *lines]) + "\n", encoding="utf-8")
    return path


def test_a_run_prints_scores_and_leaves_a_folder_that_opens_everywhere(vibe, tones):
    done = vibe(*RUN, "--corpus", tones, "--output-path", "out")
    assert done.returncode in (0, 1), done.stderr
    assert "SIMULATED" in done.stdout and "advisory" in done.stdout
    frame = pd.read_parquet(vibe.folder / "out" / "observations.parquet")
    assert len(frame) == 24 * (6 + 1) and set(frame["group_gender"]) == {"female", "male"}
    import datasets

    samples = datasets.load_dataset(
        "json",
        data_files=str(vibe.folder / "out" / "responses.jsonl"),
        split="train",
        cache_dir=str(vibe.folder / "hf"),
    )
    assert len(samples) == 48 and len(set(samples["request"])) == 48


def test_scoring_again_gives_the_same_scores_and_another_tau_others(quick, tones):
    first = quick.json(*RUN, "--corpus", tones, "--output-path", "out")
    assert quick.json("score", "out", "--tau", 3, "--permutations", 199) == first
    again = quick.json("score", "out", "--tau", 100, "--permutations", 199)
    story = again["tasks"][0]
    assert story["scores"][0]["value"] is None  # nothing is left, and that is never 0
    assert any("occupation" in warning for warning in story["warnings"])
    assert "gender" in quick.refuses("score", "out", "--dimension", "gendr")


def test_other_dimensions_seeds_and_models_never_share_a_response(quick, tones):
    quick(*RUN, "--corpus", tones, "--output-path", "a")
    quick(*RUN, "--corpus", tones, "--output-path", "b", "--seed", 1)
    quick(*RUN, "--corpus", tones, "--output-path", "c", "--model-args", "strength=0.1")
    ids = [
        {json.loads(line)["request"] for line in (quick.folder / name / "responses.jsonl").open(encoding="utf-8")}
        for name in "abc"
    ]
    assert not (ids[0] & ids[1] or ids[0] & ids[2] or ids[1] & ids[2])


def test_a_changed_waveform_never_meets_an_old_response(quick, tones):
    from tests.command_line import tone

    quick(*RUN, "--corpus", tones, "--output-path", "out")
    tone(tones.parent / "s0" / "0.wav", 150)
    assert "clips" in quick.refuses(*RUN, "--corpus", tones, "--output-path", "out")


def test_the_limit_draws_evenly_and_the_dry_run_says_what_would_be_asked(quick, tones):
    arguments = (*RUN, "--corpus", tones, "--limit", 8, "--output-path", "out")
    plan = json.loads(quick(*arguments, "--dry-run", "--json", check=0).stdout)
    assert (plan["clips"], plan["requests"], plan["answered"]) == (8, 16, 0) and plan["first_prompt"]
    assert not (quick.folder / "out").exists()
    results = quick.json(*arguments)
    assert {group["speakers"] for group in results["tasks"][0]["groups"].values()} == {4}
    plan = json.loads(quick(*arguments, "--dry-run", "--json", check=0).stdout)
    assert plan["answered"] == 16


def test_scoring_again_names_the_page_that_it_wrote(quick, tones):
    quick("--model", "simulated", "--tasks", "advisory", "--corpus", tones, "--dimension", "gender", "--tau", 3,
          "--permutations", 19, "--output-path", "out", check=0)  # fmt: skip
    told = quick("score", "out", "--tau", 2, "--permutations", 19, check=0).stdout.splitlines()
    assert told[-1] == f"Page: {Path('out') / 'report.html'}"
    (quick.folder / "out" / "report.html").unlink()
    assert "Page:" not in quick("score", "out", "--tau", 2, "--permutations", 19, check=0).stdout


def test_options_come_from_a_file_and_underscores_are_taken(quick, tones):
    (quick.folder / "run.yaml").write_text(
        "model: simulated\ntasks: [story, advisory]\nmodel_args: {strength: 0.5}\ntau: 3\npermutations: 99\n",
        encoding="utf-8",
    )
    results = quick.json("--config", "run.yaml", "--corpus", tones, "--output_path", "out", "--permutations", 49)
    assert results["permutations"] == 49 and results["tau"] == 3 and len(results["tasks"]) == 2
    (quick.folder / "run.yaml").write_text("modle: simulated\n", encoding="utf-8")
    assert "run.yaml:1" in quick.refuses("--config", "run.yaml", "--tasks", "story", "--model", "simulated")


def test_a_prepared_corpus_has_its_speakers_permuted_within_the_strata_it_declares(quick, tones):
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pd.read_csv(tones)
    frame["accent"] = ["hindi" if name in ("s0", "s1", "s2", "s3") else "korean" for name in frame["speaker"]]
    declared = json.dumps({"speaker_strata": {"accent": ["gender"]}}).encode()
    table = pa.Table.from_pandas(frame).replace_schema_metadata({b"vibe_harness": declared})
    path = tones.with_name("prepared.parquet")
    pq.write_table(table, path)
    results = quick.json(*RUN, "--corpus", path, "--dimension", "accent")
    score = results["tasks"][1]["scores"][0]
    assert score["permuted"] == "speakers within gender"
    assert score["test"] == "studentised-speakers" and score["p_value"] is not None
    frame.loc[0, "gender"] = "female"
    pq.write_table(pa.Table.from_pandas(frame).replace_schema_metadata({b"vibe_harness": declared}), path)
    assert "'s0'" in quick.refuses(*RUN, "--corpus", path, "--dimension", "accent")


def test_prompt_variants_are_scored_by_themselves_and_summed_up(quick, tones):
    results = quick.json(*RUN, "--corpus", tones, "--prompt-variant", "all")
    story = next(summary for summary in results["variants"] if summary["task"] == "story")
    assert len(story["ntvd"]) == 3
    assert story["mean"] == pytest.approx(sum(story["ntvd"].values()) / 3)


def journalled(folder):
    """Bytes of responses and extractions stored so far."""
    paths = [folder / name for name in ("responses.jsonl", "extractions.jsonl")]
    return sum(path.stat().st_size for path in paths if path.exists())


@pytest.mark.slow
def test_killed_at_ten_random_moments_a_run_ends_as_an_unbroken_one(quick, tones):
    manifest = many_clips(tones, 40)
    arguments = (*RUN, "--corpus", manifest, "--output-path")
    assert quick(*arguments, "whole").returncode in (0, 1)
    end = journalled(quick.folder / "whole")
    chance = random.Random(5)
    for moment in sorted(chance.uniform(0, 0.98) for _ in range(10)):
        process = subprocess.Popen(
            [sys.executable, "-m", "vibe_harness", *map(str, arguments), "broken"],
            cwd=quick.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        while journalled(quick.folder / "broken") < moment * end:
            assert process.poll() is None or journalled(quick.folder / "broken") >= moment * end
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert quick(*arguments, "broken").returncode in (0, 1)
    whole, broken = stored(quick.folder / "whole"), stored(quick.folder / "broken")
    assert len({record["request"] for record in broken["responses.jsonl"]}) == len(broken["responses.jsonl"]) == 1920
    assert broken == whole


def task_ps(results):
    return [next(s["p_value"] for s in task["scores"] if s["metric"] == "ntvd") for task in results["tasks"]]


@needs_recordings
@pytest.mark.slow
def test_the_planted_shift_is_found_on_real_recordings(tmp_path):
    """At least 95 of 100 seeds, on both tasks, at the default strength: 48 recordings of 24 actors."""
    from vibe_harness import evaluate
    from vibe_harness.store.results import to_json

    found = [
        task_ps(to_json(*evaluate(
            model="simulated", tasks=["story", "advisory"], corpus=str(RAVDESS), dimensions=["gender"], tau=3,
            permutations=499, seed=seed, output_path=tmp_path / str(seed),
        )))
        for seed in range(100)
    ]  # fmt: skip
    assert sum(story < 0.05 for story, _ in found) >= 95
    assert sum(advisory < 0.05 for _, advisory in found) >= 95


@needs_recordings
@pytest.mark.slow
def test_without_a_shift_the_test_rejects_one_in_twenty(tmp_path):
    """200 seeds at strength 0: rejections within the binomial 99 % band of 5 %, which is 3 to 19."""
    from scipy.stats import binom

    from vibe_harness import evaluate
    from vibe_harness.store.results import to_json

    found = [
        task_ps(to_json(*evaluate(
            model="simulated", model_args={"strength": 0}, tasks=["story", "advisory"], corpus=str(RAVDESS),
            dimensions=["gender"], tau=3, permutations=499, seed=seed, output_path=tmp_path / str(seed),
        )))
        for seed in range(200)
    ]  # fmt: skip
    low, high = binom.interval(0.99, 200, 0.05)
    for task in (0, 1):
        assert low <= sum(ps[task] <= 0.05 for ps in found) <= high


@needs_recordings
def test_at_the_default_tau_emptied_attributes_are_named(quick):
    results = quick.json(
        "--model", "simulated", "--tasks", "story", "--corpus", RAVDESS, "--dimension", "gender", "--permutations", 99
    )
    scores = results["tasks"][0]["scores"]
    left_out = scores[0]["detail"]["attributes_left_out"]
    undefined = {s["attribute"] for s in scores if s["metric"] == "ntvd" and s["attribute"] and s["value"] is None}
    assert left_out.keys() == undefined
    for name in undefined:
        assert any(name in warning.partition(": no ntvd: ")[0] for warning in results["tasks"][0]["warnings"])


def test_every_field_of_the_results_is_documented_in_their_schema():
    schema = json.loads((ROOT / "schemas" / "results.schema.json").read_text(encoding="utf-8"))
    for kind in (schema, *schema["$defs"].values()):
        assert all(field.get("description") for field in kind["properties"].values()), kind["title"]


def test_the_schemas_that_are_checked_in_are_the_ones_the_code_makes(quick):
    for kind in ("task", "model", "corpus", "results"):
        made = json.loads(quick("schema", kind, check=0).stdout)
        assert made == json.loads((ROOT / "schemas" / f"{kind}.schema.json").read_text(encoding="utf-8")), kind


def test_every_card_names_its_schema_in_its_first_line():
    for folder, kind in (("tasks", "task"), ("models", "model"), ("corpora", "corpus")):
        cards = sorted((ROOT / folder).glob("*.yaml"))
        assert cards
        for path in cards:
            first = path.read_text(encoding="utf-8").splitlines()[0]
            assert first == f"# yaml-language-server: $schema=../schemas/{kind}.schema.json", path


def test_a_task_is_shown_whole_also_where_its_prompt_quotes_the_clip(quick):
    from tests.card_folder import Folder

    folder = Folder(quick.folder / "own")
    folder.card()
    folder.template("p.j2", "They said: {{ text }}")
    shown = quick("tasks", "show", "t", "--include-path", folder.root, check=0).stdout
    assert "They said: [what the clip says]" in shown
    assert "a: open" in shown and "compared by gender: demo" in shown and "metrics: ntvd" in shown


def test_without_a_corpus_the_line_to_type_is_said(quick):
    (quick.folder / "models").mkdir()
    (quick.folder / "models" / "plain.yaml").write_text(
        "model: plain\nbackend: simulated\nid: plain\nextractor: rules\n", encoding="utf-8"
    )
    message = quick.refuses("--model", "models/plain.yaml", "--tasks", "story")
    assert "`vibe-harness corpus prepare crema-d --source DIR`" in message and len(message.splitlines()) == 1
