"""The site: it builds without a warning, dead links and anchors are found, and the reference is that of the code."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.docs.guide import DOCS
from vibe_harness.cards.schema import ModelCard, TaskCard
from vibe_harness.cli.main import VERBS, cli
from vibe_harness.corpora.card import CorpusCard

pytestmark = pytest.mark.slow


def build(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-d", site / "trees", docs, site]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    docs = folder / "docs"
    shutil.copytree(DOCS, docs, ignore=shutil.ignore_patterns("reference"))
    done = build(docs, folder / "html")
    assert done.returncode == 0, done.stderr
    return folder


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def commands(command: click.Command, context: click.Context, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, context, f"{path} {name}")
    else:
        yield path, command


def test_every_verb_and_option_stands_in_the_reference(site: Path) -> None:
    page = text_of(site / "html" / "reference" / "cli.html")
    found = list(commands(cli, click.Context(cli), "vibe-harness"))
    assert len(found) >= len(VERBS)
    for path, command in found:
        assert path in page
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert all(name in page for name in parameter.opts), (path, parameter.opts)


@pytest.mark.parametrize("card", [TaskCard, ModelCard, CorpusCard])
def test_every_field_of_a_card_stands_in_the_reference(site: Path, card: type[TaskCard]) -> None:
    page = text_of(site / "html" / "reference" / "cards.html")
    for name, field in card.model_fields.items():
        assert name in page
        assert not field.description or " ".join(field.description.split()) in page, name


def test_every_page_is_in_the_navigation_of_the_first(site: Path) -> None:
    first = (site / "html" / "index.html").read_text(encoding="utf-8")
    pages = [page.relative_to(site / "docs").with_suffix(".html").as_posix() for page in site.glob("docs/**/*.md")]
    assert len(pages) > 12
    for page in pages:
        assert page == "index.html" or f'href="{page}"' in first, page


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("[gone](no-such-page.md)", "no-such-page.md"),
        ("[gone](method.md#no-such-heading)", "no-such-heading"),
        ("[gone](#no-such-heading)", "no-such-heading"),
    ],
)
def test_a_dead_link_is_found(site: Path, tmp_path: Path, link: str, said: str) -> None:
    for name in ("conf.py", "reference.py", "method.md", "statistics.md"):
        shutil.copy(DOCS / name, tmp_path / name)
    (tmp_path / "index.md").write_text(
        f"# Start\n\n{link}\n\n```{{toctree}}\nmethod\nstatistics\n```\n", encoding="utf-8"
    )
    done = build(tmp_path, tmp_path / "html")
    assert done.returncode != 0 and said in done.stderr
