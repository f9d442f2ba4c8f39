"""The folders of the built-in cards, templates and corpora, and of those that other packages add."""

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from vibe_harness.errors import UserError

CARDS_GROUP = "vibe_harness.cards"


def library_root() -> Path:
    """The folder that holds the built-in tasks/, models/, templates/ and corpora/.

    They are in `vibe_harness/library` in an installed package, and at the top level in a checkout.
    """
    package = Path(__file__).resolve().parent
    packed = package / "library"
    return packed if packed.is_dir() else package.parent


def package_roots() -> list[Path]:
    """Folders of cards from other packages, sorted by entry-point name.

    An entry point of the group `vibe_harness.cards` names a package whose folder contains tasks/, models/, templates/
    or corpora/. The package is not imported. Raises UserError if it cannot be found.
    """
    roots = []
    for point in sorted(entry_points(group=CARDS_GROUP), key=lambda point: point.name):
        try:
            spec = find_spec(point.value)
        except ImportError:
            spec = None
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"the entry point '{point.name}' of {CARDS_GROUP} names '{point.value}', which is no package"
            )
        roots.append(Path(next(iter(spec.submodule_search_locations))))
    return roots
