"""One name for one thing: class names, file names and the size of functions."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "vibe_harness"

SAME_ROLE = {
    "base.py": "the interface of a room: a task kind, a corpus importer",
    "card.py": "the schema of a room's own cards",
    "protocol.py": "the interface that a room's engines implement: back ends, extractors",
    "registry.py": "a room's registry, and the class they all are of",
    "schema.py": "cards/schema.py for cards, extraction/schema.py for replies; cli/schema.py prints them",
    "results.py": "the results of a run, and those of a validation: typed, written as JSON",
    "server.py": "an HTTP server: the models', and the judges' page",
    "observe.py": "extraction/ makes the observations of one response, pipeline/ those of a run",
    "prepare.py": "what a command does before its work: a corpus, a run",
    "run_check.py": "cli/ calls the module of the same name in analysis/",
    "compare.py": "cli/ calls the module of the same name in analysis/",
    "leaderboard.py": "cli/ calls the module of the same name in report/",
    "power.py": "cli/ calls planning/, which calls stats/",
    "run.py": "cli/ calls the module of the same name in pipeline/",
    "score.py": "cli/ calls the module of the same name in scoring/",
    "study.py": "cli/ calls the module of the same name in studies/",
    "values.py": "cli/ calls authoring/; stats/values.py computes what each value adds to a score",
    "consistency.py": "metrics/ presents the statistic of the same name in stats/",
    "diversity.py": "metrics/ presents the statistic of the same name in stats/",
    "ntvd.py": "metrics/ presents the statistic of the same name in stats/",
}
"""Files whose name may stand in more than one room, and why."""

MOST = 15  # cyclomatic complexity of a function
TOO_COMPLEX = {
    "cli/compare.py:command",
    "cli/options.py:read_config",
    "cli/study.py:command",
    "cli/validate_extraction.py:_print",
    "report/relations.py:beside_choice",
}
"""Functions that are still to be split. Never add one."""


def modules() -> dict[str, ast.Module]:
    """Path below the package -> syntax tree of each module."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(file)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_file_names_repeat_only_where_the_roles_are_the_same() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in modules():
        places[file.rpartition("/")[2]].append(file)
    repeated = {name: files for name, files in places.items() if len(files) > 1 and name != "__init__.py"}
    assert {name: files for name, files in repeated.items() if name not in SAME_ROLE} == {}
    assert {name for name in SAME_ROLE if name not in repeated} == set(), "remove what no longer repeats"


def test_no_function_is_too_complex() -> None:
    pytest.importorskip("radon")
    from radon.visitors import ComplexityVisitor, Function

    found: set[str] = set()
    for file, tree in modules().items():
        blocks = ComplexityVisitor.from_ast(tree).blocks
        functions = [block for block in blocks if isinstance(block, Function)]
        methods = [method for block in blocks if not isinstance(block, Function) for method in block.methods]
        found |= {f"{file}:{block.name}" for block in [*functions, *methods] if block.complexity > MOST}
    assert found - TOO_COMPLEX == set()
    assert TOO_COMPLEX - found == set(), "remove what was split"
