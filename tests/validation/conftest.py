"""A small finished run, its sample, and a sample made by hand whose judgments can be counted on fingers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from vibe_harness import evaluate
from vibe_harness.cards.schema import Attribute
from vibe_harness.records import Reading
from vibe_harness.validation.drawing import draw
from vibe_harness.validation.sample import FORMAT, Claim, Sample, SampledResponse, SampledRun, SampledTask, write_sample


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two tasks over two dimensions; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    evaluate(
        "simulated", ["advisory", "story"], "demo", limit=48, tau=1, permutations=9, output_path=folder,
        model_args={"breakage_rate": 0.3},
    )  # fmt: skip
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run that a test may change."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def sampled(run: Path, tmp_path: Path) -> Path:
    """The folder of a sample of that run."""
    folder = tmp_path / "sample"
    folder.mkdir()
    write_sample(folder, draw([run], folder)[0])
    return folder


def claim(values: Sequence[str] = (), *extractors: str, reading: Reading = Reading.VALUE, **more: object) -> Claim:
    raw = more.pop("raw", values)
    spellings = more.pop("spellings", ())
    return Claim(
        extractors=list(extractors or ["rules"]), reading=reading, raw=list(raw), values=list(values),
        spellings=list(spellings),
    )  # fmt: skip


def drawn(number: int, text: str, claims: Mapping[str, Sequence[Claim]], **more: object) -> SampledResponse:
    place = {"task": "story", "dimension": "gender", "group": "female", "run": 0, **more}
    return SampledResponse(
        id=f"r{number:03}", request=f"request-{number}", variant="default", text=text, claims=claims, **place
    )


def made_sample(
    responses: Sequence[SampledResponse], extractors: Sequence[str] = ("rules",), run: str = "../run"
) -> Sample:
    attributes = {
        "occupation": Attribute(values="open", description="what the person does"),
        "situation": Attribute(values=["poor", "wealthy"]),
        "hobby": Attribute(values="open", up_to=9),
    }
    task = SampledTask(digest="0", prompts={"default": "Tell a story."}, attributes=attributes)
    of = SampledRun(path=run, digest="0", model="m", corpus="c", simulated=False, extractor=extractors[0])
    return Sample(
        format=FORMAT, id="", seed=0, per_cell=5, runs=[of], tasks={"story": task, "advisory": task},
        extractors=list(extractors), responses=list(responses),
    ).sealed()  # fmt: skip
