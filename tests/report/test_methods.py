"""The Methods paragraph of a run, and the BibTeX of what it cites."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.choice_corpora import quiz
from tests.command_line import QuickCommand
from tests.report.boards import small_run
from vibe_harness import cite, evaluate
from vibe_harness.errors import UserError
from vibe_harness.report.methods import CORPUS_PAPERS, REFERENCES, TASK_PAPERS, bibtex, citation
from vibe_harness.store.checksums import write_sums
from vibe_harness.store.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(tmp_path_factory.mktemp("run") / "run")


def changed(run: RunFolder, folder: Path, model: dict[str, str] | None = None, **record: object) -> str:
    """The citation of a copy of the run whose record says something else."""
    copy = RunFolder(Path(shutil.copytree(run.path, folder / "copy", ignore=shutil.ignore_patterns(".lock"))))
    data = json.loads(copy.run_json.read_text(encoding="utf-8"))
    data["record"] |= record
    data["record"]["model"] |= model or {}
    copy.run_json.write_text(json.dumps(data), encoding="utf-8")
    write_sums(copy)
    return citation(copy)


def test_the_paragraph_says_what_the_run_recorded(run: RunFolder) -> None:
    paragraph, *entries = citation(run).split("\n\n")
    for said in (
        "We measured simulated (simulated, served as simulated-2) with vibe-harness", "on the task advisory",
        "corpus demo, which is synthetic speech,", "gender (female: 8 speakers, 8 clips; male: 8 speakers, 8 clips)",
        "read by rules", "at least 1 times (tau)", "99 permutations at most",
        "studentised-speakers (speakers permuted)",
        "at most 512 tokens at temperature 0 (seed 0)", "The model is simulated", run.record().made_with,
    ):  # fmt: skip
        assert said in paragraph, said
    assert "failed" not in paragraph and "hears" not in paragraph
    cited = list(dict.fromkeys(re.findall(r"\\cite\{(\w+)\}", paragraph)))
    assert [entry.partition("{")[2].partition(",")[0] for entry in entries] == cited
    assert cited[:2] == ["vibe_harness", "lin2026vibe"]


def test_a_real_model_is_named_with_its_revision_and_the_corpus_with_its_paper(run: RunFolder, tmp_path: Path) -> None:
    text = changed(
        run, tmp_path, {"id": "Org/A_7B", "revision": "abc123"}, corpus="crema-d-pitch-swapped",
        corpus_synthetic=False, bad_clips={"a": "cut"},
    )  # fmt: skip
    assert "simulated (Org/A\\_7B, revision abc123, served as simulated-2)" in text
    assert "corpus crema-d-pitch-swapped \\cite{cao2014crema} compared by" in text and "@article{cao2014crema," in text
    assert "left out as not usable: 1 clip." in text


def test_a_choice_task_names_its_figures_and_its_paper(tmp_path: Path) -> None:
    evaluate("simulated", ["biasinear"], quiz(tmp_path / "quiz"), permutations=19, output_path=tmp_path / "run")
    text = cite(tmp_path / "run")
    assert "biasinear \\cite{wei2026bias}" in text and "@inproceedings{wei2026bias," in text
    assert "We report accuracy" in text and "nTVD" not in text and "lin2026vibe" not in text


def test_every_paper_has_an_entry() -> None:
    for key in {*TASK_PAPERS.values(), *CORPUS_PAPERS.values(), "lin2026vibe", "benjamini1995controlling"}:
        assert bibtex(key).count("{") == bibtex(key).count("}")
    for entry in REFERENCES.read_text(encoding="utf-8").strip().split("\n\n"):
        assert re.fullmatch(r"@\w+\{\w+,\n(  \w+ = \{.*\},?\n)+\}", entry), entry


def test_the_command_prints_it_and_refuses_what_is_no_finished_run(run: RunFolder, quick: QuickCommand) -> None:
    assert quick("cite", run.path, check=0).stdout.strip() == citation(run)
    assert "not a run folder" in quick.refuses("cite", "nowhere")
    with pytest.raises(UserError, match="not a run folder"):
        cite("nowhere")


@pytest.mark.slow
def test_latex_takes_paragraph_and_bibtex(run: RunFolder, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None or shutil.which("bibtex") is None:
        pytest.skip("needs pdfLaTeX and BibTeX (Debian's texlive-latex-recommended)")
    paragraph, *entries = changed(run, tmp_path, corpus="l2-arctic_1 & 2 %").split("\n\n")
    (tmp_path / "refs.bib").write_text("\n\n".join(entries), encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        f"\\documentclass{{article}}\n\\begin{{document}}\n{paragraph}\n"
        "\\bibliographystyle{plain}\\bibliography{refs}\n\\end{document}\n",
        encoding="utf-8",
    )
    latex = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper"]
    for command in (latex, ["bibtex", "paper"], latex, latex):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="latin-1", check=False)
        assert done.returncode == 0, done.stdout[-1500:]
    assert "undefined" not in (tmp_path / "paper.log").read_text(encoding="latin-1")
