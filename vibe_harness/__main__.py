"""`python -m vibe_harness` is `vibe-harness`."""

from vibe_harness.cli.main import main

main()
