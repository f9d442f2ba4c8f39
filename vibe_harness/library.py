"""Where cards, templates and corpora lie: the package's own, and folders that the user adds."""

from pathlib import Path


def library_root() -> Path:
    """The folder that holds the built-in tasks/, models/, templates/ and corpora/.

    An installed package carries them as `vibe_harness/library`; in a checkout they stand at the top, for contributors.
    """
    package = Path(__file__).resolve().parent
    packed = package / "library"
    return packed if packed.is_dir() else package.parent
