"""Every mistake of a person gets a line that says what, where and what to do, and spoils nothing that is stored."""

import shutil

import filelock
import numpy as np
import pytest
import soundfile

from tests.support import ROOT, SHARED, needs_recordings

RUN = ("--model", "simulated", "--tasks", "story,advisory", "--tau", "3", "--permutations", "99")


def test_a_missing_corpus(quick):
    assert "nowhere.csv" in quick.refuses(*RUN, "--corpus", "nowhere.csv")


def test_a_mistyped_name_gets_a_suggestion(quick):
    assert "'advisory'" in quick.refuses("--model", "simulated", "--tasks", "advisry")
    assert "'simulated'" in quick.refuses("--model", "simulatd", "--tasks", "story")
    assert "'gender'" in quick.refuses(*RUN, "--dimension", "gendr")
    assert "'run'" in quick.refuses("rum")
    assert "--tasks" in quick.refuses("--model", "simulated", "--task", "story")
    assert "strength" in quick.refuses(*RUN, "--model-args", "strenght=1")
    assert "'rules'" in quick.refuses(*RUN, "--extractor", "rule")


def own_card(quick, change):
    """The advisory card in a folder of the user's own, with one change."""
    folder = quick.folder / "own"
    for name in ("tasks", "templates"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "templates" / "advisory", folder / "templates" / "mine", dirs_exist_ok=True)
    text = (ROOT / "tasks" / "advisory.yaml").read_text(encoding="utf-8")
    text = text.replace("task: advisory", "task: mine").replace("advisory/", "mine/")
    (folder / "tasks" / "mine.yaml").write_text(change(text), encoding="utf-8")
    return ("--model", "simulated", "--tasks", "mine", "--include-path", folder)


def test_a_card_with_a_wrong_key(quick):
    message = quick.refuses(*own_card(quick, lambda text: text.replace("metrics:", "metrcs:")))
    assert "mine.yaml:" in message and "'metrcs'" in message and "'metrics'" in message


def test_a_yaml_tag_that_builds_objects(quick):
    tag = "notes: !!python/object/apply:os.system ['touch pwned']\n"
    assert "mine.yaml:" in quick.refuses(*own_card(quick, lambda text: text + tag))
    assert not (quick.folder / "pwned").exists()


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("Say {{ sex }}.", "'sex'"),
        ("{{ ''.__class__.__mro__ }}", "__class__"),
        ("{{ text.__init__.__globals__ }}", "__init__"),
        ("{% for i in range(1000000000) %}x{% endfor %}", "range"),
        ("{% include '../../../etc/passwd' %}", "outside"),
        ("{{ text", ".j2:"),
    ],
)
def test_a_hostile_or_broken_template(quick, template, said):
    arguments = own_card(quick, lambda text: text)
    for path in (quick.folder / "own" / "templates" / "mine").glob("[!e]*.j2"):
        path.write_text(template, encoding="utf-8")
    assert said in quick.refuses(*arguments)


def test_a_manifest_that_climbs_out(quick, tones):
    secret = quick.folder / "secret.wav"
    shutil.copy(tones.parent / "s0" / "0.wav", secret)
    tones.write_text("file,speaker,gender\n../secret.wav,a,male\n", encoding="utf-8")
    assert "../secret.wav" in quick.refuses(*RUN, "--corpus", tones)


def test_two_clips_with_one_id(quick, tones):
    tones.write_text(
        "file,speaker,gender,id\ns0/0.wav,a,male,1\ns0/1.wav,a,male,1\ns1/0.wav,b,female,1\n", encoding="utf-8"
    )
    message = quick.refuses(*RUN, "--corpus", tones)
    assert "manifest.csv" in message and "a/1" in message


def test_a_group_with_one_speaker(quick, tones):
    lines = tones.read_text(encoding="utf-8").splitlines()
    tones.write_text("\n".join(line.replace(",s1,female", ",s1,other") for line in lines), encoding="utf-8")
    message = quick.refuses(*RUN, "--corpus", tones, "--dimension", "gender")
    assert "'other'" in message and "one speaker" in message


def test_a_speaker_in_two_groups_is_refused_before_the_model_is_asked(quick, tones):
    text = tones.read_text(encoding="utf-8")
    tones.write_text(text.replace("s1/0.wav,s1,female", "s1/0.wav,s1,male"), encoding="utf-8")
    message = quick.refuses(*RUN, "--corpus", tones, "--dimension", "gender", "--output-path", "out")
    assert "'s1'" in message and "male" in message and len(message.splitlines()) == 1
    assert not (quick.folder / "out").exists()


def test_every_bad_clip_is_named_at_once_and_may_be_skipped(quick, tones):
    folder = tones.parent
    soundfile.write(folder / "s0/0.wav", np.zeros(16_000), 16_000)
    soundfile.write(folder / "s1/1.wav", np.full(160, 0.3), 16_000)
    (folder / "s2/2.wav").write_bytes(b"")
    soundfile.write(folder / "s3/0.wav", np.full(16_000, np.nan), 16_000, subtype="FLOAT")
    (folder / "s4/1.wav").unlink()
    message = quick.refuses(*RUN, "--corpus", tones)
    for name in ("s0/0.wav", "s1/1.wav", "s2/2.wav", "s3/0.wav", "s4/1.wav"):
        assert name in message
    results = quick.json(*RUN, "--corpus", tones, "--skip-bad-clips")
    assert len(results["bad_clips"]) == 5
    assert sum(group["clips"] for group in results["tasks"][0]["groups"].values()) == 24 - 5


def test_a_clip_longer_than_the_model_takes_is_refused_by_name_before_it_is_asked(quick, tones):
    from tests.command_line import tone

    tone(tones.parent / "s0" / "0.wav", 110, seconds=1.5)
    limited = (*RUN, "--model-args", "max_seconds=1", "--corpus", tones)
    message = quick.refuses(*limited, "--output-path", "out")
    assert "s0/0.wav" in message and "1.5 s" in message and not (quick.folder / "out").exists()
    results = quick.json(*limited, "--skip-bad-clips")
    assert list(results["bad_clips"]) == ["tones/s0/s0/0"] and results["long_clips"] == {"refused": 1}


@pytest.mark.parametrize(("how", "said"), [("split", "split"), ("truncate", "truncated")])
def test_clips_that_came_in_pieces_or_cut_are_counted_in_the_result(quick, tones, how, said):
    from tests.command_line import tone

    for name, pitch in (("s0/0.wav", 110), ("s1/1.wav", 130)):
        tone(tones.parent / name, pitch, seconds=1.5)
    limited = (*RUN, "--model-args", f"max_seconds=1,long_clips={how}", "--corpus", tones)
    assert quick.json(*limited, "--output-path", "out")["long_clips"] == {said: 2}
    assert f"longer than the model takes: 2 {said}" in quick(*limited, "--output-path", "out").stdout


def test_clips_of_one_name_keep_their_speakers_apart(quick, tones):
    results = quick.json(*RUN, "--corpus", tones)  # every speaker has a 0.wav
    assert sum(group["clips"] for group in results["tasks"][0]["groups"].values()) == 24


def test_another_runs_folder_keeps_what_it_holds(quick, tones):
    arguments = (*RUN, "--corpus", tones, "--output-path", quick.folder / "out")
    quick(*arguments)
    before = {path.name: path.read_bytes() for path in (quick.folder / "out").glob("[!.]*")}
    message = quick.refuses(*arguments, "--seed", "5")
    assert "another run" in message and "seed" in message
    assert {path.name: path.read_bytes() for path in (quick.folder / "out").glob("[!.]*")} == before


def test_a_folder_with_other_peoples_files(quick, tones):
    (quick.folder / "out").mkdir()
    (quick.folder / "out" / "thesis.docx").write_text("mine", encoding="utf-8")
    assert "thesis.docx" in quick.refuses(*RUN, "--corpus", tones, "--output-path", quick.folder / "out")


def test_a_second_process_is_refused(quick, tones):
    (quick.folder / "out").mkdir()
    with filelock.FileLock(quick.folder / "out" / ".lock"):
        message = quick.refuses(*RUN, "--corpus", tones, "--output-path", quick.folder / "out")
    assert "another process" in message


def test_a_prompt_variant_that_does_not_exist(quick, tones):
    message = quick.refuses(*RUN, "--corpus", tones, "--prompt-variant", "nosuch")
    assert "nosuch" in message and "default" in message


@needs_recordings
def test_lfs_pointers_are_named_as_such(quick):
    done = quick("corpus", "check", SHARED / "corpora" / "crema-d-lfs-pointers" / "manifest.csv", check=1)
    told = [line for line in done.stdout.splitlines() if "git-lfs" in line]
    assert len(told) == 1 and "git lfs pull" in told[0]


@pytest.mark.parametrize("verb", ["tasks", "models"])
def test_a_broken_card_is_named_where_cards_are_listed_and_hides_no_other(quick, verb):
    (quick.folder / verb).mkdir()
    broken = quick.folder / verb / "broken.yaml"
    broken.write_text(f"{verb[:-1]}: broken\n", encoding="utf-8")
    done = quick(verb, "list", "--include-path", quick.folder)
    assert done.returncode == 2 and "broken.yaml:1" in done.stderr
    assert {"tasks": "advisory", "models": "simulated"}[verb] in done.stdout
    quick("--model", "simulated", "--tasks", "advisory", "--include-path", quick.folder, "--dry-run", check=0)


@pytest.mark.parametrize(
    "option", ["--corpus", "--dimension", "--extractor", "--tasks", "--include-path", "--output-path", "--also-test"]
)
def test_a_variable_that_is_not_set_never_has_something_else_measured(quick, tones, option):
    """An empty --corpus meant the default corpora, an empty --include-path this folder."""
    for given in ([option, ""], [f"{option}="], [option, "  "]):
        assert f"an argument is empty after {option}" in quick.refuses(*RUN, "--corpus", tones, *given)
    assert not (quick.folder / "runs").exists()
    (quick.folder / "run.yaml").write_text(f"{option[2:]}: ''\n", encoding="utf-8")
    assert f"run.yaml:1: '{option[2:]}' is empty" in quick.refuses(*RUN, "--config", "run.yaml")
    assert "an argument is empty" in quick.refuses("score", "")


def test_a_path_too_long_is_said_in_a_line(quick, tones):
    long = "x" * 300
    for arguments in (
        (*RUN, "--corpus", long),
        (*RUN, "--include-path", long, "--corpus", tones),
        (*RUN, "--config", long),
        ("corpus", "show", long),
        ("corpus", "new", long),
    ):
        message = quick.refuses(*arguments)
        assert long in message and message.endswith(": File name too long\n") and message.count("\n") == 1


def test_a_page_or_a_figure_takes_no_other_files_place(quick, tones):
    run = quick.folder / "out"
    quick(*RUN, "--corpus", tones, "--output-path", run)
    kept = {path.name: path.read_bytes() for path in run.glob("[!.]*")}
    for name in ("responses.jsonl", "results.json"):
        assert "exists, and its name does not end with" in quick.refuses("report", run, "--output", run / name)
        assert "exists, and its name does not end with" in quick.refuses(
            "corpus", "show", tones, "--figure", run / name
        )
        power = ("power", "--tasks", "story", "--corpus", tones, "--dimension", "gender", "--simulations", "20")
        assert "exists, and its name does not end with" in quick.refuses(*power, "--figure", run / name)
    assert {path.name: path.read_bytes() for path in run.glob("[!.]*")} == kept
    for _ in range(2):  # a page and a figure are written over as ever
        quick("report", run, "--output", "page.html", check=0)
        quick("corpus", "show", tones, "--figure", "groups.svg", check=0)


def test_columns_in_other_letters_have_figures_of_their_own(quick, tones):
    text = tones.read_text(encoding="utf-8")
    lines = [f"{line},{line.rsplit(',', 1)[1]}" for line in text.splitlines()]
    tones.write_text("\n".join(["file,speaker,\u6027\u5225,\u58f0", *lines[1:]]) + "\n", encoding="utf-8")
    run = ("--dimension", "\u6027\u5225,\u58f0", "--output-path", "out")
    quick("--model", "simulated", "--tasks", "advisory", "--tau", "3", "--permutations", "9", "--corpus", tones, *run)
    quick("report", "out", "--figures", "figures", check=0)
    assert len(list((quick.folder / "figures").glob("advisory-default-*-activity*one-column.svg"))) == 2
