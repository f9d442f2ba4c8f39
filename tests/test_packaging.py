"""What surrounds the package agrees with it: versions, pinned dependencies, the workflow's scripts."""

import os
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pinned() -> dict[str, str]:
    """Distribution -> version, as .ci/constraints.txt pins them."""
    lines = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def test_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


@pytest.mark.parametrize("extra", ["", "dev", "perturb", "speech", "ray"])
def test_every_dependency_is_pinned_to_a_version_that_is_allowed(extra):
    lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    versions = pinned()
    for requirement in map(Requirement, lines):
        if requirement.name == "vibe-harness" or (requirement.marker and not requirement.marker.evaluate()):
            continue
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in .ci/constraints.txt"
        assert requirement.specifier.contains(version), f"{requirement.name} is pinned to {version}"


def test_scripts_of_the_workflow_can_be_run():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))
    lines = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    scripts = [line for line in lines if line.startswith(".ci/")]
    assert sorted(scripts) == [".ci/lowest", ".ci/run"]
    for script in (*scripts, ".ci/wheel", ".ci/engines"):
        assert os.access(ROOT / script, os.X_OK), f"{script} is not executable"
