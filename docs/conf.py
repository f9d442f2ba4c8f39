"""The site: `python -m sphinx -W docs site`. Pages are Markdown; the reference is written from the code each time."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "vibe-harness"
version = release = version_of("vibe-harness")
copyright = "the contributors of vibe-harness, Apache-2.0"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4  # so that links to headings are checked
smartquotes = False  # code in prose stays as it is
html_theme = "furo"
html_title = "vibe-harness"
html_copy_source = False


def write_reference(_: Sphinx) -> None:
    """Write the pages of docs/reference/ anew."""
    import reference

    reference.write(HERE / "reference")


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_reference)
