"""Values of a run, and aliases accepted from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from tests.card_folder import Folder
from tests.command_line import QuickCommand
from vibe_harness import evaluate
from vibe_harness.authoring.alias_file import add_aliases
from vibe_harness.authoring.values import ValueCount, propose, run_values
from vibe_harness.cards.faults import CardError
from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import Attribute
from vibe_harness.cli.values import command
from vibe_harness.errors import UserError

ALIASES = "# Kept as it is.\ncedar: [Cedar tree]   # a tree\nbirch:\n  - silver birch\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "own")
    folder.card("{values: open}", "{values: open, up_to: 2, aliases: a.yaml}")
    folder.template("a.yaml", ALIASES)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("module")
    folder = Folder(root / "own")
    folder.card("{values: open}", "{values: open, up_to: 2, aliases: a.yaml}")
    folder.template("a.yaml", ALIASES)
    tasks = ["t", "story"]
    evaluate("simulated", tasks, limit=32, tau=1, permutations=9, include_path=[folder.root], output_path=root / "run")
    return root / "run"


def count(value: str, times: int, in_card: bool = False) -> ValueCount:
    return ValueCount(value, {"a": times}, {value: times}, in_card)


def test_counts_are_those_of_the_observations(run: Path) -> None:
    found = run_values(run, "a", dimension="gender")
    frame = pd.read_parquet(run / "observations.parquet")
    rows = frame[frame["attribute"] == "a"].explode("values")
    counted = pd.crosstab(rows["values"].astype(str), rows["group_gender"].astype(str))
    assert found.groups == ("female", "male")
    assert {one.value for one in found.values} == set(counted.index) - {"nan", "None"}
    for one in found.values:
        assert all(one.by_group.get(group, 0) == counted.loc[one.value, group] for group in found.groups)
        assert sum(one.raw.values()) == one.total
        assert one.in_card == (one.value in ("cedar", "birch"))
    totals = [one.total for one in found.values]
    assert totals == sorted(totals, reverse=True)
    assert found.alias_file and found.alias_file.startswith("a.yaml@")


def test_what_is_not_there(run: Path, tmp_path: Path) -> None:
    for arguments, said in (
        ({"attribute": "occupatoin"}, "Did you mean 'occupation'"),
        ({"attribute": "a", "task": "storry"}, "Did you mean 'story'"),
        ({"attribute": "a", "task": "story"}, "reads no such attribute"),
        ({"attribute": "a", "dimension": "gendr"}, "Did you mean 'gender'"),
    ):
        with pytest.raises(UserError, match=said):
            run_values(run, **arguments)
    with pytest.raises(UserError, match="not a run folder"):
        run_values(tmp_path, "a")


def test_proposals_put_the_rarer_under_the_commoner_and_never_chain() -> None:
    counts = [
        count("software engineer", 40), count("engineer software", 3), count("software engineers", 2),
        count("nurse", 20, in_card=True), count("nursery", 50), count("carer", 4),
    ]  # fmt: skip
    found = {proposal.spelling: proposal.value for proposal in propose(counts, Attribute(values="open"))}
    assert found == {"engineer software": "software engineer", "software engineers": "software engineer"}
    assert set(found).isdisjoint(found.values())


def test_a_value_of_the_card_stays_and_draws_others() -> None:
    counts = [count("archaeologist", 1, in_card=True), count("archologist", 9), count("archeologists", 3, in_card=True)]
    found = {proposal.spelling: proposal.value for proposal in propose(counts, Attribute(values="open"))}
    assert list(found) == ["archologist"]
    assert propose(counts, Attribute(values=["a", "b"])) == []


def test_accepted_aliases_are_written_and_the_rest_is_kept(folder: Folder) -> None:
    task = folder.load()
    path = add_aliases(task, "a", {"red cedar": "cedar", "downy birch": "Birch", "oak tree": "oak"})
    assert path.read_text(encoding="utf-8").splitlines() == [
        "# Kept as it is.",
        "cedar: [Cedar tree, red cedar] # a tree",
        "birch:",
        "- silver birch",
        "- downy birch",
        "oak: [oak tree]",
    ]
    assert folder.load().aliases["a"]["oak tree"] == "oak"


@pytest.mark.parametrize(
    ("accepted", "said"),
    [
        ({"cedar": "birch"}, "'cedar' is already the canonical value"),
        ({"cedar": "birch", "birch": "cedar"}, "'birch' is already the canonical value"),
        ({"red cedar": "silver birch"}, "'silver birch'"),  # a chain
        ({"silver birch": "cedar"}, "'silver birch' is already an alias of 'cedar'"),
        ({"!": "cedar"}, "contains no letter or digit"),
    ],
)
def test_chains_and_circles_are_refused_and_nothing_is_lost(
    folder: Folder, accepted: dict[str, str], said: str
) -> None:
    with pytest.raises(UserError, match="Nothing was written") as caught:
        add_aliases(folder.load(), "a", accepted)
    assert said in str(caught.value) and "a.yaml:" in str(caught.value) and ".part" not in str(caught.value)
    assert [path.name for path in (folder.root / "templates").iterdir() if "a.yaml" in path.name] == ["a.yaml"]
    assert (folder.root / "templates" / "a.yaml").read_text(encoding="utf-8") == ALIASES


def test_a_file_that_was_broken_before_is_left(folder: Folder) -> None:
    task = folder.load()
    folder.template("a.yaml", "a: [b]\nb: [a]")
    with pytest.raises(CardError, match="'b' is already"):
        add_aliases(task, "a", {"c": "d"})


def test_a_file_of_an_installed_package_is_left(monkeypatch: pytest.MonkeyPatch, folder: Folder) -> None:
    monkeypatch.setattr("vibe_harness.authoring.alias_file.package_roots", lambda: [folder.root])
    with pytest.raises(UserError, match="belongs to an installed package"):
        add_aliases(folder.load(), "a", {"red cedar": "cedar"})
    assert (folder.root / "templates" / "a.yaml").read_text(encoding="utf-8") == ALIASES


def test_a_card_without_an_alias_file_says_how_to_name_one(folder: Folder) -> None:
    folder.card()
    with pytest.raises(UserError, match=r"aliases: t/a\.yaml"):
        add_aliases(folder.load(), "a", {"b": "c"})
    folder.template("t.yaml", "{}")
    folder.card("{values: open}", "{values: open, aliases: t.yaml}")
    path = add_aliases(folder.load(), "a", {"b": "c"})
    assert path.read_text(encoding="utf-8") == "c: [b]\n"


def test_the_command(quick: QuickCommand, folder: Folder, run: Path) -> None:
    shown = quick("values", run, "--attribute", "a", "--dimension", "gender", check=0).stdout
    assert "a.yaml@" in shown and "female" in shown and "cedar" in shown
    written = quick(
        "values", run, "--attribute", "a", "--accept", "fjord=cedar", "--include-path", folder.root, check=0
    )
    assert "1 written to" in written.stdout and "No answer" not in written.stdout
    typed = quick(
        "values", run, "--attribute", "a", "--accept", "fjrod=cedar", "--include-path", folder.root, check=0
    )  # fmt: skip
    assert "No answer of this run says 'fjrod'" in typed.stdout
    assert CardIndex([folder.root]).tasks(["t"])[0].aliases["a"]["fjord"] == "cedar"
    assert "SPELLING=VALUE" in quick.refuses("values", run, "--attribute", "a", "--accept", "fjord")
    assert "two values" in quick.refuses("values", run, "--attribute", "a", "--accept", "a=b", "--accept", "a=c")


def test_the_command_prints_for_programs_and_names_a_damaged_file(
    quick: QuickCommand, run: Path, tmp_path: Path
) -> None:
    told = json.loads(quick("values", run, "--attribute", "occupation", "--json", check=0).stdout)
    counts = {one["value"]: one["by_group"] for one in told["values"]}
    assert counts == {one.value: one.by_group for one in run_values(run, "occupation").values}
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "observations.parquet").write_bytes(b"PAR1 no more")
    assert "observations.parquet" in quick.refuses("values", copy, "--attribute", "occupation")


def test_review_asks_about_each(monkeypatch: pytest.MonkeyPatch, folder: Folder, run: Path) -> None:
    monkeypatch.setattr("vibe_harness.authoring.values.ALIKE", 30.0)  # so that there is something to ask
    asked = run_values(run, "a").proposals
    answers = "y\n" + "n\n" * (len(asked) - 1)
    arguments = [str(run), "--attribute", "a", "--review", "--include-path", str(folder.root)]
    done = CliRunner().invoke(command, arguments, input=answers)
    assert done.exit_code == 0, done.output
    aliases = folder.load().aliases["a"]
    assert aliases[asked[0].spelling] == asked[0].value
    assert len(aliases) == 3
