"""Where cards, templates and corpora lie: the package's own, and folders that the user adds."""

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from vibe_harness.errors import UserError

CARDS_GROUP = "vibe_harness.cards"


def library_root() -> Path:
    """The folder that holds the built-in tasks/, models/, templates/ and corpora/.

    An installed package carries them as `vibe_harness/library`; in a checkout they stand at the top, for contributors.
    """
    package = Path(__file__).resolve().parent
    packed = package / "library"
    return packed if packed.is_dir() else package.parent


def package_roots() -> list[Path]:
    """Folders of cards that other packages add, sorted by entry-point name.

    An entry point of the group `vibe_harness.cards` names a package whose folder holds tasks/, models/,
    templates/ or corpora/.
    The package is found, not imported. Raises UserError where it cannot be found.
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
