"""From a corpus that declares strata of utterances to a score that is evened out over them, and crossed columns."""

import json

import pyarrow.csv
import pyarrow.parquet


def test_unbalanced_takes_of_a_prepared_corpus_are_evened_out(quick, tones):
    table = pyarrow.csv.read_csv(tones)
    names, sexes = (table[name].to_pylist() for name in ("file", "gender"))
    calm = [("angry" if int(name[-5]) < (2 if sex == "female" else 1) else "calm")
            for name, sex in zip(names, sexes, strict=True)]  # fmt: skip
    age = ["old" if int(name[1]) < 4 else "young" for name in names]
    table = table.append_column("emotion", [calm]).append_column("age", [age])
    declared = json.dumps({"strata": ["emotion"]}).encode()
    path = tones.parent / "manifest.parquet"
    pyarrow.parquet.write_table(table.replace_schema_metadata({b"vibe_harness": declared}), path)
    shown = quick("--model", "simulated", "--tasks", "advisory", "--corpus", path, "--dimension", "gender", "--tau", 1,
                  "--permutations", 99, "--also-test", "version-1,version-2", "--output-path", "run")  # fmt: skip
    assert "test of version-1 (utterances exchanged)" in shown.stdout
    assert "test of version-2 (speakers exchanged)" in shown.stdout
    assert "\n  evened out over emotion\n" in quick("show", "run").stdout
    [task] = quick.json("score", "run", "--tau", 1)["tasks"]
    detail = task["scores"][0]["detail"]
    # A woman is asked twice with an angry take of three, a man once.
    assert detail["standardised_over"] == ["emotion"] and round(detail["imbalance"]["emotion"], 6) == 33.333333
    [task] = quick.json("score", "run", "--tau", 1, "--dimension", "gender:age", "--also-test", "version-2")["tasks"]
    assert set(task["groups"]) == {"female:old", "female:young", "male:old", "male:young"}
    assert task["scores"][0]["detail"]["tests"]["version-2"]["permuted"] == "speakers"
    # Crossed with the emotion, a speaker stands in two groups, of one gender each.
    assert "no speaker has clips in 'female:angry' and in groups with 'male:angry'" in quick.refuses(
        "score", "run", "--dimension", "gender:emotion"
    )
    assert "version-1" in quick.refuses("score", "run", "--also-test", "version1")
    again = ("--model", "simulated", "--tasks", "advisory", "--corpus", path, "--also-test", "version1")
    assert "version-1" in quick.refuses("run", *again)
