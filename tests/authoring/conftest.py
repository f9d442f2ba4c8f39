"""What the tests of authoring share with those of the command line."""

from tests.cli.conftest import quick as quick
