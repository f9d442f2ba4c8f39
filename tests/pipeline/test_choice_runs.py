"""Choice tasks from a corpus to results, and every mistake that is told before any request."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.biasinear_layout import biasinear_layout
from tests.choice_corpora import Row, quiz, whole_stereoset
from tests.support import needs_recordings
from vibe_harness import evaluate
from vibe_harness.corpora.audio.decode import decode
from vibe_harness.corpora.card import load_corpus_card
from vibe_harness.corpora.prepare.prepare import prepare
from vibe_harness.corpora.registry import find_corpus
from vibe_harness.errors import UserError
from vibe_harness.records import Score, Waveform
from vibe_harness.store.responses import read_responses
from vibe_harness.store.results import Results, TaskResult, read_results
from vibe_harness.store.run_folder import RunFolder

KNOWS = {"knows": 1, "refusal_rate": 0, "breakage_rate": 0}


def run(manifest: Path, folder: Path, task: str = "biasinear", model: str = "simulated", **options: object) -> Results:
    [results] = evaluate(model, [task], manifest, permutations=50, output_path=folder, **options)  # type: ignore[arg-type]
    return results


def scores(result: TaskResult, attribute: str | None = None) -> dict[str, Score]:
    return {score.metric: score for score in result.scores if score.attribute == attribute}


def test_a_quiz_end_to_end(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz", questions=6, languages=("en", "ko"))
    results = run(manifest, tmp_path / "run", model_args=KNOWS)
    assert {result.dimension for result in results.tasks} == {"language", "accent", "gender", "order"}
    assert results.extractor == "rules"
    for result in results.tasks:
        assert sum(group.requests for group in result.groups.values()) == 6 * 8 and result.reliable is False
        found = scores(result)
        assert found["accuracy"].value == 100 and found["question_entropy"].value == 0 and found["apes"].value == 0
        assert found["fleiss_kappa"].value == 1  # the right options are a to d over questions: nothing but agreement
        assert found["fleiss_kappa_averaged"].undefined  # which is why it is not the default
        assert scores(result, "CA")["accuracy"].value == 100
    [order] = [result for result in results.tasks if result.dimension == "order"]
    assert set(order.groups) == {"original", "reversed"}
    responses = list(read_responses(RunFolder(tmp_path / "run").responses))
    assert {stored.variant for stored in responses} == {"standard.original", "standard.reversed"}
    assert read_results(tmp_path / "run" / "results.json").tasks[0].variant == "standard"


def test_refusals_and_what_cannot_be_read_are_outcomes_and_never_letters(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz", questions=25)
    results = run(manifest, tmp_path / "run", model_args={"refusal_rate": 0.2, "breakage_rate": 0.3})
    result = results.tasks[0]
    readings = [group.readings["choice"] for group in result.groups.values()]
    refused = sum(group.outcomes["refused"] for group in result.groups.values())
    unread = sum(one["unparsed"] + one["unknown"] for one in readings)
    assert 5 <= refused <= 40 and 5 <= unread <= 45
    assert sum(one["value"] for one in readings) + refused + unread == 100
    assert not result.reliable and any("gave no value" in warning for warning in result.warnings)
    accuracy = scores(result)["accuracy"]
    assert accuracy.detail["answers"] == 100 and accuracy.value is not None
    assert accuracy.detail["of_the_readable"] > accuracy.value


def test_four_orders_and_a_limit_of_whole_items(tmp_path: Path) -> None:
    card = tmp_path / "own" / "tasks" / "quiz4.yaml"
    card.parent.mkdir(parents=True)
    card.write_text(
        "task: quiz4\nversion: 1\nkind: choice\ndescription: four orders\n"
        "prompts: {standard: biasinear/standard.j2}\n"
        "choice:\n  item: sentence_id\n  order_column: order\n"
        "  orders: [original, reversed, token_backward, order_backward]\n  options:\n"
        + "".join(f"    {a}: {{text: option_{a}_text}}\n" for a in "abcd")
        + "  key: {column: answer}\nextraction: {template: choice/extract.j2}\n"
        "dimensions: {order: [quiz], gender: [quiz]}\nmetrics: [accuracy, apes, fleiss_kappa, choice_by_place]\n",
        encoding="utf-8",
    )
    manifest = quiz(tmp_path / "quiz", questions=5)
    own = tmp_path / "own"
    results = run(manifest, tmp_path / "run", "quiz4", limit=6, include_path=[own], model_args=KNOWS)
    [order] = [result for result in results.tasks if result.dimension == "order"]
    assert set(order.groups) == {"original", "reversed", "token_backward", "order_backward"}
    assert {group.requests for group in order.groups.values()} == {4}  # two items in two voices each
    assert scores(order)["accuracy"].value == 100  # by content, whatever the letter


def test_prompt_styles_are_scored_apart_and_a_run_goes_on(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz", questions=2)
    options = {"prompt_variant": "all", "model_args": KNOWS}
    first = run(manifest, tmp_path / "run", **options)
    assert {result.variant for result in first.tasks} == {"standard", "chain_of_thought", "thinking"}
    assert len(list(read_responses(RunFolder(tmp_path / "run").responses))) == 3 * 8
    again = run(manifest, tmp_path / "run", **options)
    assert len(list(read_responses(RunFolder(tmp_path / "run").responses))) == 3 * 8
    assert again.tasks == first.tasks


@pytest.mark.slow
def test_sixty_questions_in_the_layout_of_the_hub(tmp_path: Path) -> None:
    card, path = load_corpus_card("biasinear")
    source = biasinear_layout(tmp_path / "source", samples=60)
    prepare(card, path, str(source), tmp_path / "biasinear")
    manifest = tmp_path / "biasinear" / "manifest.parquet"
    results = run(manifest, tmp_path / "run", model_args={"knows": 0.5, "refusal_rate": 0, "breakage_rate": 0})
    for result in results.tasks:
        assert sum(group.requests for group in result.groups.values()) == 60 * 28 and result.reliable
        found = scores(result)
        right = 100 * (0.5 + 0.5 / 4)
        assert found["accuracy"].value == pytest.approx(right, abs=3 * 100 * math.sqrt(0.625 * 0.375 / 1_680))
        # two answers agree where both are known, or by chance: kappa is 0.25 in expectation with even keys
        assert found["fleiss_kappa"].value == pytest.approx(0.25, abs=0.06)
        assert found["apes"].null_mean is not None and found["apes"].value is not None
        assert abs(found["apes"].value - found["apes"].null_mean) < 0.03  # nothing hangs on any variable
        for split in ("CS", "CA"):
            assert scores(result, split)["accuracy"].value is not None


@pytest.mark.slow
@needs_recordings
def test_the_reference_models_on_the_whole_of_spoken_stereoset(tmp_path: Path) -> None:
    """Oracle 100, 100, 50; biased 100 of the meaningful; random 100, 66.67, 50 (published baselines)."""
    card, path = load_corpus_card("spoken-stereoset")
    source = whole_stereoset(tmp_path / "source")
    prepare(card, path, str(source), tmp_path / "spoken-stereoset")
    manifest = tmp_path / "spoken-stereoset" / "manifest.parquet"
    expected = {"oracle": (100, 50), "biased": (100, 100), "random": (200 / 3, 50)}
    for model, (meaningful, stereotypical) in expected.items():
        results = run(manifest, tmp_path / model, "spoken_stereoset", f"simulated-{model}")
        for result, rows in zip(results.tasks, (2_847, 793), strict=True):
            found = scores(result)
            assert sum(group.requests for group in result.groups.values()) == 6 * rows
            three = 300 / math.sqrt(6 * rows)  # three standard errors of a share of 1 in a standard deviation
            assert found["slifs"].value == 100
            assert found["slms"].value == pytest.approx(meaningful, abs=0.47 * three)
            assert found["slbs"].value == pytest.approx(stereotypical, abs=0.62 * three)
            if model != "biased":
                assert found["slbs"].p_value is not None and found["slbs"].p_value > 0.001
            else:
                assert found["slbs"].p_value is None and found["parity_deviation"].value == 100  # all alike: no error
            places = [s.value for s in result.scores if s.metric == "choice_by_place"]
            assert places == pytest.approx([100 / 3] * 3, abs=0.6 * three) and sum(places) == pytest.approx(100)


def first(of: str, /, **changes: str) -> Callable[[list[Row]], None]:
    """Change the first row of an order."""

    def change(rows: list[Row]) -> None:
        next(row for row in rows if row["order"] == of).update(changes)

    return change


def unmapped(rows: list[Row]) -> None:
    for row in rows:
        if row["order"] == "reversed":
            row["answer"] = "ABCD"[3 - "ABCD".index(row["answer"])]


def foreign(rows: list[Row]) -> None:
    for row in rows:
        row["language"] = "ko"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            first("original", option_c_file="nowhere.wav"),
            r"en-female-0-original: option 'c' \(nowhere.wav\): .*",
        ),
        (first("original", option_c_file=""), "en-female-0-original: the column 'option_c_file' is empty"),
        (first("original", option_c_text=""), "en-female-0-original: the column 'option_c_text' is empty"),
        (
            first("original", option_c_text="Thing A of 0."),
            "two options are the same: 'a' and 'c' both have the text 'Thing A of 0.'",
        ),
        (first("original", answer="E"), "its correct answer is 'E', but the options are A to D"),
        (first("original", order="backward"), "unknown order 'backward' in the column 'order': it must be original or"),
        (first("reversed", answer="A"), r"was left as in the original order, but the card .* says key: of: row"),
        (first("reversed", answer="B"), "its correct answer B is not the option A there"),
        (first("reversed", option_a_text="another thing"), "its options are not those of .*original in reverse"),
        (first("original", gender="Female"), "the groups '.emale' and '.emale', which differ in spelling only"),
        (
            first("original", accent="nan"),
            "the column 'accent' has 'nan', which is written where the group is not known",
        ),
    ],
)
def test_a_row_that_cannot_be_asked_is_told_before_any_request(
    tmp_path: Path, change: Callable[[list[Row]], None], says: str
) -> None:
    manifest = quiz(tmp_path / "quiz", change)
    with pytest.raises(UserError, match=says):
        run(manifest, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_keys_that_were_not_moved_need_another_card_and_moved_ones_are_then_told(tmp_path: Path) -> None:
    own = tmp_path / "own" / "tasks" / "unmoved.yaml"
    own.parent.mkdir(parents=True)
    text = (Path(__file__).parents[2] / "tasks" / "biasinear.yaml").read_text(encoding="utf-8")
    own.write_text(
        text.replace("task: biasinear", "task: unmoved").replace("of: row", "of: original"), encoding="utf-8"
    )
    options = {"include_path": [tmp_path / "own"], "model_args": KNOWS}
    results = run(quiz(tmp_path / "quiz", unmapped), tmp_path / "run", "unmoved", **options)
    assert {scores(result)["accuracy"].value for result in results.tasks} == {100}
    with pytest.raises(UserError, match=r"was already remapped to its own order, but the card .* of: original"):
        run(quiz(tmp_path / "moved"), tmp_path / "other", "unmoved", **options)


def test_rows_that_cannot_be_asked_may_be_left_out(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz", first("original", option_c_file="nowhere.wav"), questions=3)
    results = run(manifest, tmp_path / "run", skip_bad_clips=True)
    assert list(results.bad_clips) == ["quiz/en-female/en-female-0-original"]
    assert sum(group.requests for group in results.tasks[0].groups.values()) == 11


def test_a_language_that_the_model_excludes(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz", foreign)
    models = tmp_path / "own" / "models"
    models.mkdir(parents=True)
    card = "include: {}\nmodel: monoglot\nexcludes: {{language: [ko, zh]}}\n"
    base = Path(__file__).parents[2] / "models" / "simulated.yaml"
    (models / "base.yaml").write_text(base.read_text(encoding="utf-8").replace("model: simulated", "model: base"))
    (models / "monoglot.yaml").write_text(card.format("base.yaml"), encoding="utf-8")
    with pytest.raises(UserError, match=r"'monoglot' excludes the language ko, .* leave them out with a corpus card"):
        run(manifest, tmp_path / "run", model="monoglot", include_path=[tmp_path / "own"])
    assert not (tmp_path / "run").exists()


def test_a_question_too_long_with_its_options_for_the_model(tmp_path: Path) -> None:
    manifest = quiz(tmp_path / "quiz")
    with pytest.raises(UserError, match=r"\d s long with its options, but the model 'simulated' takes 3 s"):
        run(manifest, tmp_path / "run", model_args={"max_seconds": 3})


def test_a_corpus_without_the_columns_of_the_task(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the corpus 'demo' has no column 'item', which the task 'spoken_stereoset'"):
        evaluate("simulated", ["spoken_stereoset"], "demo", dimensions=["gender"], output_path=tmp_path / "run")


def test_kinds_are_not_mixed_in_one_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="start a run for each kind"):
        evaluate("simulated", ["biasinear", "story"], quiz(tmp_path / "quiz"), output_path=tmp_path / "run")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[original, reversed]", "[original, revresed]", "unknown order 'revresed'. Did you mean 'reversed'"),
        ("kind: choice", "kind: open_ended", "'choice' is only allowed with 'kind: choice'"),
        ("labels/d.ogg", "labels/nobody.ogg", "there is no file 'labels/nobody.ogg'"),
        (", labels/d.ogg", "", "name one audio file for each of the 4 options"),
        (", audio: option_d_file", "", "give each option the column of its audio file"),
        ("metrics: [accuracy", "metrics: [slbs, accuracy", "'slbs' is for tasks with an option 'stereotypical'"),
        ("metrics: [accuracy", "metrics: [ntvd, accuracy", "'ntvd' is for tasks of kind open_ended"),
        ("  key: {column: answer, of: row}\n", "", "'accuracy' needs the correct answers"),
    ],
)
def test_a_wrong_choice_card_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = (Path(__file__).parents[2] / "tasks" / "biasinear.yaml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "own" / "tasks" / "wrong.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text.replace("task: biasinear", "task: wrong").replace(old, new), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        run(quiz(tmp_path / "quiz"), tmp_path / "run", "wrong", include_path=[tmp_path / "own"])
    assert says in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_the_results_are_plain_json(tmp_path: Path) -> None:
    run(quiz(tmp_path / "quiz", questions=1), tmp_path / "run", limit=1)  # one item: little can be said of it
    data = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert data["tasks"][0]["task"] == "biasinear"


def test_a_person_sees_a_table_a_page_and_a_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from vibe_harness.cli.main import main

    manifest = quiz(tmp_path / "quiz", questions=4)
    arguments = ["run", "--model", "simulated", "--tasks", "biasinear", "--corpus", str(manifest)]
    for verb in (
        [*arguments, "--output-path", str(tmp_path / "run"), "--permutations", "20"],
        ["report", str(tmp_path / "run")],
        ["score", str(tmp_path / "run"), "--permutations", "20", "--dimension", "gender"],
        ["run-check", str(tmp_path / "run")],
        ["tasks", "show", "biasinear"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(verb)
        assert ended.value.code in (0, 1), capsys.readouterr().err
    out = capsys.readouterr().out
    assert "accuracy" in out and "fleiss_kappa_averaged" in out and "nTVD" not in out
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "biasinear" in page and "accuracy" in page


def test_loudness_is_a_variable_and_options_change_along_with_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIBE_HARNESS_DATA", str(tmp_path / "data"))
    source = biasinear_layout(tmp_path / "source", samples=1)
    for name, given in (("biasinear", str(source)), ("biasinear-loudness", None)):
        card, path = load_corpus_card(name)
        prepare(card, path, given, tmp_path / "data" / "corpora" / name)
    before, after = find_corpus("biasinear"), find_corpus("biasinear-loudness")
    assert len(after.clips) == 3 * len(before.clips)
    for place, new in enumerate(after.clips):
        factor = ("0.5", "1", "1.5")[place % 3]
        assert new.groups["loudness"] == factor and new.id.endswith(f"-loudness-{factor}")
        old = before.clips[place // 3]
        for column in ("option_a_file", "option_d_file"):
            base, changed = (decode(c.root / one.groups[column]) for c, one in ((before, old), (after, new)))
            assert isinstance(base, Waveform) and isinstance(changed, Waveform)
            np.testing.assert_allclose(changed.samples, float(factor) * base.samples, atol=1e-6)
    [results] = evaluate(
        "simulated-random", ["biasinear"], "biasinear-loudness", permutations=10, output_path=tmp_path / "run"
    )
    assert {name: group.requests for name, group in results.tasks[0].groups.items()} == {"0.5": 28, "1": 28, "1.5": 28}
    scores = {score.metric: score for score in results.tasks[0].scores}
    assert scores["apes"].value is not None and 0 <= scores["apes"].value <= 1
    items = str(scores["fleiss_kappa"].detail["items"])
    assert items.startswith("question x language x") and "loudness" not in items
